"""Config files with nested names, for tests."""

from __future__ import annotations

from typing import Any

from realtime.config.nested import translate

CLIENT = {"allowed_origins": ["https://example.org"]}


def tree(path: str, value: object) -> dict[str, Any]:
    """A file with one option."""
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def namespace(**options: object) -> dict[str, Any]:
    return {"channel": {"namespaces": [{"name": "chat", **options}]}}


def rules(content: dict[str, Any]) -> list[str]:
    return [problem.id for problem in translate(content).problems]
