"""`manage.py realtime schema` and `types`."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

import realtime
from tests.unit.typed.shop import Changed, Comment


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What a command writes, and its warnings."""
    call_command("realtime", *arguments)
    return capsys.readouterr()


def test_schema_prints_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    realtime.channel("orders:{pk}", sends=Changed, accepts=Comment)
    out, err = printed(capsys, "schema", "--url", "wss://example.com/ws", "--title", "Shop")
    content = json.loads(out)
    assert content["info"] == {"title": "Shop", "version": "1.0.0"}
    assert content["servers"]["site"]["pathname"] == "/ws"
    assert content["channels"]["orders_pk"]["address"] == "orders:{pk}"
    assert err == ""
    assert json.loads(printed(capsys, "schema", "--json")[0])["asyncapi"] == "3.0.0"


def test_types_prints_the_declarations(capsys: pytest.CaptureFixture[str]) -> None:
    realtime.channel("orders:{pk}", sends=Changed)
    out, err = printed(capsys, "types", "--module", "django-realtime-messaging")
    assert '} from "django-realtime-messaging";' in out
    assert 'declare module "django-realtime-messaging" {' in out
    assert "    receives: Changed;\n    accepts: never;\n" in out
    assert err == ""


@pytest.mark.parametrize("name", ["schema", "types"])
def test_site_without_typed_channels_is_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, name)
    assert out
    assert "No module realtime.py of the site declares a typed channel." in err


@pytest.mark.parametrize("name", ["schema", "types"])
def test_mistake_in_a_declaration_is_said(name: str) -> None:
    realtime.channel("orders:{pk}", sends=object)
    with pytest.raises(CommandError, match="sends a type that no library knows"):
        call_command("realtime", name)


@pytest.mark.parametrize("url", ["example.com", "http://example.com", "ws://", ""])
def test_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="--url must be the address of a WebSocket"):
        call_command("realtime", "schema", "--url", url)
