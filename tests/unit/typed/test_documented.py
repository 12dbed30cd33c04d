"""The examples of docs/typed-channels.md, run in their order as they stand there."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from realtime.errors import Error
from realtime.testing import TestService

PAGE = Path(__file__).resolve().parents[3] / "docs" / "typed-channels.md"


def test_examples_of_the_page_work(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    module, options, code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [refused] = re.findall(r"^    107: (.*)$", text, re.MULTILINE)
    configured: dict[str, Any] = {}
    exec(options, configured)
    settings.REALTIME = configured["REALTIME"]
    made = ModuleType("orders.realtime")
    for name in ("orders", "orders.realtime"):
        monkeypatch.setitem(sys.modules, name, made)
    exec(module, made.__dict__)

    with TestService() as service, service.client("17") as client:
        client.subscribe("orders:42")
        client.publish("orders:42", {"text": "hi"})
        with pytest.raises(Error) as error:
            client.publish("orders:42", {"text": 5})
        exec(code, {})
        comment, shipped = made.orders(pk=42).history()

    assert comment == made.Comment("hi")
    assert isinstance(shipped, made.OrderShipped)
    assert shipped.at <= datetime.now(UTC)
    assert (error.value.code, error.value.message) == (107, refused)
