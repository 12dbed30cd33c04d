"""docs/panel.md names what the panel has: pages, permissions, settings, limits, failures."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from admin_panel import audit, health, permissions, service
from admin_panel.answering import answering
from admin_panel.models import Channel, Connection, Publication
from admin_panel.operators import UserOperator
from admin_panel.pages import PAGES, channel, channels, console
from admin_panel.panel import PanelPage
from admin_panel.publishing import forms, reach, recent, threshold
from realtime.cluster import peers, survey
from realtime.errors import EngineUnavailable, InternalError, NotServing

ROOT = Path(__file__).resolve().parents[2]
PANEL = ROOT / "admin_panel"
TEXT = (ROOT / "docs" / "panel.md").read_text()
FLOWING = " ".join(TEXT.split())
"""The text, wherever its lines end."""

NAMESPACES = "publish_<namespace>"
"""How the documentation names the permissions of namespaces."""


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        yield row.split(" | ")


def sources() -> str:
    """All Python code of the panel."""
    return "\n".join(path.read_text() for path in sorted(PANEL.rglob("*.py")))


# pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_documented_with_its_url_name(page: PanelPage) -> None:
    assert f"| [{page.label}](#{page.name}) | `{page.name}` |" in TEXT
    assert f"\n### {page.label}\n" in TEXT


def test_no_other_page_is_documented() -> None:
    labels = [cells[0] for cells in rows("The pages")]
    assert labels == [f"[{page.label}](#{page.name})" for page in PAGES]


# permissions


def codenames() -> list[str]:
    """The permissions that the models make, and one for those of namespaces."""
    made = [
        codename
        for model in (Publication, Channel, Connection)
        for codename, _name in model._meta.permissions
    ]
    return [*made, NAMESPACES]


def test_every_permission_is_documented_and_no_other() -> None:
    documented = [cells[0].strip("`") for cells in rows("Permissions")]
    assert sorted(documented) == sorted(f"{permissions.APP_LABEL}.{name}" for name in codenames())


class Holder:
    """A user with one permission."""

    def __init__(self, codename: str) -> None:
        self._permission = f"{permissions.APP_LABEL}.{codename}"

    def has_perm(self, perm: str, /) -> bool:
        return perm == self._permission


@pytest.mark.parametrize("codename", ["view", "publish"])
def test_pages_that_a_permission_opens_are_documented(codename: str) -> None:
    operator = UserOperator(Holder(codename))  # type: ignore[arg-type]
    opened = {str(page.label) for page in PAGES if page.allowed(operator)}
    [text] = [
        cells[1] for cells in rows("Permissions") if cells[0] == f"`realtime_admin.{codename}`"
    ]
    labels = {str(page.label) for page in PAGES}
    assert {word for word in labels if re.search(rf"\b{word}\b", text)} == opened


def test_groups_of_the_example_have_permissions_that_exist() -> None:
    [groups] = re.findall(r"^groups = (\{.*?^\})", TEXT, re.MULTILINE | re.DOTALL)
    named = {codename for names in ast.literal_eval(groups).values() for codename in names}
    assert {name for name in named if name not in codenames()} == {permissions.codename("news")}
    assert named > set(codenames()) - {NAMESPACES}


# the log


KINDS = [kind for kind in vars(audit).values() if isinstance(kind, audit.ActionKind)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.words))
def test_message_of_the_log_is_documented(kind: audit.ActionKind) -> None:
    messages = [cells[2] for cells in rows("The log")]
    assert [text for text in messages if re.match(rf"`{kind.words}(: )?`", text)]
    assert len(messages) == len(KINDS)


# settings


def test_every_setting_is_documented() -> None:
    settings = set(re.findall(r"\bREALTIME_ADMIN_[A-Z_]+\b", sources()))
    assert settings == set(re.findall(r"\bREALTIME_ADMIN_[A-Z_]+\b", TEXT))


def test_documented_threshold_is_the_default() -> None:
    [value] = re.findall(rf"^{threshold.SETTING} = (.*)$", TEXT, re.MULTILINE)
    assert threshold.Threshold(**ast.literal_eval(value)) == threshold.Threshold()


@pytest.mark.parametrize("check", sorted(set(re.findall(r'"(realtime_admin\.E\d+)"', sources()))))
def test_system_check_is_documented(check: str) -> None:
    assert f"`{check}`" in TEXT


# limits and times


def thousands(number: int) -> str:
    """10 000 from five digits on, 2000 below."""
    return f"{number:,}".replace(",", " ") if number >= 10_000 else str(number)


SENTENCES = [
    f"the list has {thousands(channels.LISTED)} channels",
    f"history: the newest {thousands(channel.HISTORY_READ)};",
    f"loaded at once up to {thousands(channel.PRESENCE_READ)} subscribers",
    f"each node reports {survey.MAX_CONNECTIONS} connections",
    f"and {survey.MAX_CHANNELS} channels of a connection, in about"
    f" {survey.MAX_ANSWER_BYTES // 2**20} MB",
    f"{forms.MAX_CHANNELS} channels at once; {reach.SHOWN} are listed",
    f"the first {thousands(console.LONGEST)} characters of a response",
    f"the last {recent.SHOWN} publications of all operators",
    f"up to {audit.DETAIL_MAX_LENGTH} characters",
    f"more than {threshold.Threshold().channels} channels",
    f"more than {threshold.Threshold().subscribers} subscribers",
    f"longer than {health.SLOW_ROUND_TRIP * 1000:g} ms",
    f"a heartbeat every {peers.HEARTBEAT_INTERVAL:g} seconds",
    f"After {peers.HEARTBEAT_LIFETIME:g} seconds without one",
    f"longer than {permissions.CODENAME_MAX_LENGTH - len(permissions.codename(''))} characters",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_number_is_that_of_the_code(sentence: str) -> None:
    assert sentence in FLOWING


def test_token_of_the_tail_is_valid_as_long_as_documented() -> None:
    assert channel.TOKEN_TTL == 5 * 60
    assert "valid for five minutes at a time" in FLOWING


SCRIPTS = [
    ("tail.js", "LIMIT", "tail: {} entries"),
    ("commands.js", "KEPT", "The last {} commands"),
]


@pytest.mark.parametrize(("file", "constant", "sentence"), SCRIPTS)
def test_number_is_that_of_the_script(file: str, constant: str, sentence: str) -> None:
    script = (PANEL / "static" / "admin_panel" / file).read_text()
    [number] = re.findall(rf"^const {constant} = (\d+);", script, re.MULTILINE)
    assert sentence.format(number) in FLOWING


# failures


@pytest.mark.parametrize("error", [EngineUnavailable, NotServing, InternalError])
def test_failure_has_a_section_under_the_title_of_its_page(error: type[Exception]) -> None:
    with pytest.raises(service.Unavailable) as caught, answering():
        raise error
    assert f"\n### {caught.value.title}\n" in TEXT.partition("\n## Troubleshooting\n")[2]


# the architecture


def modules() -> Iterator[str]:
    """Modules and packages of the panel, but for what Django finds by its name."""
    for path in sorted(PANEL.iterdir()):
        if path.name in ("__init__.py", "migrations", "templatetags"):
            continue
        if path.suffix == ".py" or (path / "__init__.py").exists():
            yield f"{path.name}/" if path.is_dir() else path.name


@pytest.mark.parametrize("name", list(modules()))
def test_module_is_in_the_tree_of_the_architecture(name: str) -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text().partition("\nadmin_panel/\n")[2]
    assert name in tree.partition("messaging_project/")[0].split()
