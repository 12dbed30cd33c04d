"""The documentation lists what the code has."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from realtime.cluster import peers
from realtime.config import nested, redis_options, sources
from realtime.config.names import NOT_USED
from realtime.config.options import CONFIG_FIELDS, Config
from realtime.config.reader import from_strings, load
from realtime.errors import ERRORS
from realtime.node import drain, node
from realtime.redis.blocking import MAX_CONNECTIONS
from realtime.redis.hosts import Host
from realtime.server_api.methods import METHODS
from realtime.transports.servers import daphne_start

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]


def read(name: str) -> str:
    return (DOCS / name).read_text()


@pytest.mark.parametrize("method", [row.name for row in METHODS if row.name != "rpc"])
def test_method_of_the_server_api_is_documented(method: str) -> None:
    assert f"| `{method}` |" in read("http-api.md")


def test_errors_of_the_documented_server_api_exist() -> None:
    documented = re.findall(r"^\| (1\d\d) \| ([^|]+) \|", read("http-api.md"), re.MULTILINE)
    existing = {(str(error.code), error.message) for error in ERRORS}
    assert documented
    assert {(code, message.strip()) for code, message in documented} <= existing


def test_protocol_and_http_api_document_the_same_errors_of_the_server_api() -> None:
    section = read("protocol.md").partition("### 5.2 ")[2].partition("\n### ")[0]
    rows_of_codes = re.findall(r"^\| ([13]\d\d) \|", read("http-api.md"), re.MULTILINE)
    assert re.findall(r"\b[13]\d\d\b", section) == rows_of_codes


# logs


def test_every_logger_is_documented_and_no_other() -> None:
    code = "".join(
        path.read_text()
        for folder in ("realtime", "admin_panel", "api")
        for path in (ROOT / folder).rglob("*.py")
        if "testing" not in path.parts
    )
    section = read("deployment.md").partition("\n## Logs\n")[2].partition("\n## ")[0]

    used = set(re.findall(r'getLogger\("(realtime\.\w+)"\)', code))
    assert used == set(re.findall(r"`(realtime\.\w+)`", section))


# moving here


def test_config_files_of_the_migration_can_be_used() -> None:
    files = re.findall(r"^ *```json\n(.*?)^ *```", read("migrating.md"), re.M | re.S)
    flat, nested_names = map(json.loads, files)
    translation = nested.translate(nested_names)

    assert nested.is_nested(nested_names)
    assert not nested.is_nested(flat)
    assert translation.problems == []
    for config in (load(flat), load(translation.options)):
        assert config.namespaces["chat"].history_recover
        assert config.namespaces["chat"].allow_subscribe_for_client


@pytest.mark.parametrize("name", sorted(NOT_USED))
def test_option_without_effect_has_a_row_in_the_migration(name: str) -> None:
    section = read("migrating.md").partition("### Options without an effect\n")[2]
    table = rows(section.partition("\n### ")[0])
    patterns = [pattern for row in table for pattern in re.findall("`([^`]+)`", row.split("|")[1])]
    assert any(fnmatchcase(name, pattern) for pattern in patterns)


def test_rows_about_options_without_effect_name_such_options() -> None:
    section = read("migrating.md").partition("### Options without an effect\n")[2]
    for row in rows(section.partition("\n### ")[0])[2:]:
        for pattern in re.findall("`([^`]+)`", row.split("|")[1]):
            assert any(fnmatchcase(name, pattern) for name in NOT_USED), pattern
            assert not any(fnmatchcase(name, pattern) for name in CONFIG_FIELDS), pattern


# links and the tree


def anchor(heading: str) -> str:
    """What the usual renderers call a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if fragment:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert fragment in map(anchor, headings), link


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_page_is_in_the_index(page: Path) -> None:
    assert page.name == "index.md" or f"({page.name})" in read("index.md")


@pytest.mark.parametrize(
    "name",
    sorted(
        f"{path.name}/" if path.is_dir() else path.name
        for path in (ROOT / "realtime").iterdir()
        if (path.suffix == ".py" and path.name != "__init__.py") or (path / "__init__.py").exists()
    ),
)
def test_module_is_in_the_tree_of_the_architecture(name: str) -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text().split("```")[5]
    assert name in tree.split()


LISTED = (
    *("transports/emulation", "transports/sockjs", "clients", "hooks", "server_api", "node"),
    *("cluster", "streams", "engine", "engine/redis", "redis", "auth", "protocol", "config"),
)
"""Rooms of which the tree of the architecture names every module."""


@pytest.mark.parametrize("room", LISTED)
def test_modules_of_a_listed_room_are_in_the_tree_of_the_architecture(room: str) -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text().split("```")[5]
    modules = {path.stem for path in (ROOT / "realtime" / room).glob("*.py")} - {"__init__"}
    assert modules <= set(re.findall(r"\w+", tree))


# Redis


def rows(text: str) -> list[str]:
    """The rows of the tables in a text, as they are written."""
    return re.findall(r"^ *(\|.*\|) *$", text, re.MULTILINE)


LOGGERS = ("realtime.redis", "realtime.engine", "realtime.node")
LOGGED = ("info", "warning", "error", "exception", "log")
QUIET = ("debug",)
"""Levels whose lines may be documented, and need not be."""


def log_lines(*methods: str) -> Iterator[str]:
    """What is logged with these methods of the loggers whose lines are documented, up to what
    varies."""
    for path in sorted((ROOT / "realtime").rglob("*.py")):
        text = path.read_text()
        if not any(f'getLogger("{name}")' in text for name in LOGGERS):
            continue
        for call in ast.walk(ast.parse(text)):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and ast.unparse(call.func.value) == "logger"
                and call.func.attr in methods
            ):
                text_at = 1 if call.func.attr == "log" else 0  # behind the level
                yield fixed_part(call.args[text_at])
            elif isinstance(call, ast.Call):  # a method that is passed on, with its text
                for method, text_of in pairwise(call.args):
                    if ast.unparse(method) in {f"logger.{name}" for name in methods}:
                        yield fixed_part(text_of)


def fixed_part(text: ast.expr) -> str:
    return str(re.split(r"[%:]", ast.literal_eval(text))[0].strip())


def test_log_lines_about_engines_are_documented() -> None:
    documented: set[str] = set()
    for page in ("redis.md", "postgresql.md"):
        section = read(page).partition("## Log lines\n")[2].partition("\n## ")[0]
        lines = re.findall(r"^\| `(.+?)(?::? \.\.\..*)?` \|", section, re.MULTILINE)
        assert len(lines) == len(set(lines))
        documented |= set(lines)
    assert len(documented) > 10
    assert set(log_lines(*LOGGED)) <= documented <= set(log_lines(*LOGGED, *QUIET))


def assignment(line: str) -> tuple[str, str]:
    """What a shell assigns to which option in a line of an example; it is the whole line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    assert len(words) == 1, f"a shell splits {line}"
    name, _, value = words[0].partition("=")
    return name.removeprefix("SERVICE_"), value


def shell_options() -> Iterator[dict[str, str]]:
    """The options that the examples for the shell give, each alternative by itself."""
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            options: dict[str, str] = {}
            for line in re.findall(r"^SERVICE_\w+=.+$", block, re.MULTILINE):
                name, value = assignment(line)
                if name.lower() in options:
                    yield options
                    options = {}
                options[name.lower()] = value
            if options:
                yield options


@pytest.mark.parametrize("strings", list(shell_options()), ids=lambda strings: " ".join(strings))
def test_example_of_redis_options_can_be_used(strings: dict[str, str]) -> None:
    config = load(from_strings(strings))
    assert [Host(entry) for entry in redis_options.hosts(config)]


def test_command_that_shows_the_prefix_in_redis_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    section = read("redis.md").partition("### The prefix\n")[2]
    [command] = re.findall(r"^python manage\.py (shell .+)$", section, re.MULTILINE)
    call_command(*shlex.split(command))
    assert capsys.readouterr().out.strip() == sources.redis_prefix(sources.current())


def python_settings(page: str, heading: str) -> dict[str, Any]:
    """The names that the first Python block under a heading assigns, up to the next file."""
    section = (ROOT / page).read_text().partition(f"\n## {heading}\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"INSTALLED_APPS": []}
    exec(code.partition("\n# mysite/asgi.py")[0], names)
    return {name: value for name, value in names.items() if name.isupper()}


def test_settings_of_the_readme_are_those_of_the_quick_start() -> None:
    short = python_settings("README.md", "In your own site")
    assert short == python_settings("docs/quickstart.md", "The same by hand")
    assert load(short["REALTIME"]).v3_use_offset


def test_documented_times_leave_room_for_those_of_the_code() -> None:
    text = read("deployment.md")
    stop = re.findall(r"TimeoutStopSec=(\d+)", text)
    quiet = re.findall(r"proxy_(?:read|send)_timeout (\d+)s", text)
    assert stop
    assert quiet
    assert min(map(int, stop)) > Config().drain_seconds + node.SHUTDOWN_TIMEOUT
    assert min(map(int, quiet)) > daphne_start.PING_INTERVAL + daphne_start.PING_TIMEOUT


@pytest.mark.parametrize(
    "sentence",
    [
        f"`drain_seconds` ({Config().drain_seconds:g}) and the {node.SHUTDOWN_TIMEOUT:g} seconds",
        f"{drain.CLOSE_AT_ONCE} at once, and",
        f"one that died is listed for {peers.HEARTBEAT_LIFETIME:g} seconds",
        f"at most {MAX_CONNECTIONS} per process",
        f"({daphne_start.PING_INTERVAL} and {daphne_start.PING_TIMEOUT} seconds",
    ],
)
def test_number_in_the_documentation_is_that_of_the_code(sentence: str) -> None:
    assert sentence in " ".join(read("deployment.md").split())
