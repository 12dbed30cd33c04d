"""Fields of log records: on every record of the service, whatever formats it."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

from realtime import logs
from tests.imports import files


def loggers_of(path: Path) -> set[str]:
    """The names that a module gives to `getLogger`."""
    return {
        str(call.args[0].value)
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "logging.getLogger"
        and isinstance(call.args[0], ast.Constant)
    }


def test_every_logger_of_the_service_gives_fields() -> None:
    found = {name for path in files("realtime", "api", "admin_panel") for name in loggers_of(path)}
    assert found - {"realtime.testing"} == set(logs.LOGGERS)


@pytest.mark.parametrize("name", logs.LOGGERS)
def test_record_has_every_field(name: str, caplog: pytest.LogCaptureFixture) -> None:
    logs.name_node("")  # a node of another test may have had a name
    logging.getLogger(name).warning("About a client", extra={"client": "C", "code": 3012})

    (record,) = caplog.records
    fields = {field: getattr(record, field) for field in logs.FIELDS}
    assert fields == {
        "client": "C",
        "user": None,
        "channel": None,
        "code": 3012,
        "node": logs.default_node_name(),
        "duration": None,
    }


def test_fields_are_no_attributes_of_records_of_the_library() -> None:
    assert not set(logs.FIELDS) & set(vars(logging.makeLogRecord({})))
