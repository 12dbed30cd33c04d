"""Options of later versions under flat names: the same sentences as in files with nested names."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.checks.options import check_unused
from realtime.config import sources
from realtime.config.merging import Merged
from realtime.config.names import NOT_USED
from realtime.config.nested import translate
from realtime.config.nested_names import (
    CHANNEL_UNSUPPORTED,
    CHANNEL_UNUSED,
    OFF,
    UNSUPPORTED,
    UNUSED,
)
from realtime.config.options import Problem, find_option
from realtime.config.reader import read
from tests.unit.config.nested_files import tree


def told(options: dict[str, Any]) -> tuple[list[Problem], list[str]]:
    """The mistakes in options, and what the check says of those without effect."""
    config, problems = read(options)
    merged = Merged()
    merged.add("settings", options)
    gathered = sources.Sources(merged.options, [], [], {}, [])
    return problems, [each.msg for each in check_unused(sources.Report(gathered, config, problems))]


def flat(path: str) -> str:
    return path.removeprefix("engine.").replace(".", "_")


# sections of nested files whose flat name is an option here, or was one without effect before
PATHS = [
    path
    for path in (*UNUSED, *UNSUPPORTED)
    if find_option(flat(path)) is None and flat(path) not in NOT_USED
]


@pytest.mark.parametrize("path", PATHS)
def test_flat_name_is_told_as_its_path(path: str) -> None:
    [nested] = translate(tree(path, True)).file_options
    problems, unused = told({flat(path): True})

    if nested.kind == "unsupported":
        assert [(each.id, each.message) for each in problems] == [
            ("E043", f"Option {flat(path)!r} is not supported: {nested.meaning}.")
        ]
        assert unused == []
        assert [told({flat(path): off}) for off in (*OFF, "false")] == [([], [])] * (len(OFF) + 1)
    else:
        assert nested.kind == "unused"
        assert problems == []
        assert unused == [f"Option {flat(path)!r} has no effect: {nested.meaning}."]


@pytest.mark.parametrize("inside", [False, True], ids=["top level", "namespace"])
@pytest.mark.parametrize("name", [*CHANNEL_UNUSED, *CHANNEL_UNSUPPORTED])
def test_channel_option_is_told_as_in_a_nested_file(name: str, inside: bool) -> None:
    options = {"namespaces": [{"name": "chat", name: "x"}]} if inside else {name: "x"}
    problems, unused = told(options)
    place = " in namespace 'chat'" if inside else ""

    if name in CHANNEL_UNSUPPORTED:
        [problem] = problems
        assert problem.id == "E043"
        assert problem.message == (
            f"Option {name!r}{place} is not supported: {CHANNEL_UNSUPPORTED[name]}."
        )
        assert unused == []
    else:
        where = f"{name} of namespace chat" if inside else name
        assert problems == []
        assert unused == [f"Option {where!r} has no effect: {CHANNEL_UNUSED[name]}."]


@pytest.mark.parametrize("name", ["uni_grpc_port", "swagger_handler_prefix", "consumers_x"])
def test_options_of_what_is_not_offered_are_told(name: str) -> None:
    problems, unused = told({name: 1})
    assert problems == []
    assert unused == [f"Option {name!r} has no effect: this service does not offer it."]


@pytest.mark.parametrize("name", ["websocket_handler_prefx", "client_prox", "log_leve", "rpcs"])
def test_misspelt_name_is_still_unknown(name: str) -> None:
    assert [each.id for each in told({name: 1})[0]] == ["E002"]


def test_environment_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_DELTA_PUBLISH", "true")
    monkeypatch.setenv("SERVICE_CLIENT_USER_ID_HTTP_HEADER", "X-User")
    report = sources.examine()
    assert [each.id for each in report.problems] == ["E043"]
    assert report.sources.unknown_variables == []
    assert "delta_publish" in check_unused(report)[0].msg
