"""Typed channels as an AsyncAPI document. tests/live/client_module/test_typed.py has it parsed."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.reader import load
from realtime.tools.typed.asyncapi import address_of, document, draft_7
from realtime.tools.typed.components import Components
from realtime.typed.adapters import adapter_of
from realtime.typed.declarations import Declaration
from tests.unit.typed.shop import Changed, Comment, Payment, Shipped

SHOP = [
    Declaration("orders:{pk}", Changed | Shipped, Comment),
    Declaration("$stock:*:{part}", Payment, None),
]


def made(declarations: list[Declaration], **options: Any) -> dict[str, Any]:
    return document(
        declarations,
        load(options),
        url="wss://example.com",
        title="Shop",
        version="2",
        session_cookie="sid",
    )


def test_server_is_that_of_the_options() -> None:
    content = made(SHOP, session_authentication=True, websocket_handler_prefix="/ws")

    assert content["servers"]["site"] == {
        "host": "example.com",
        "pathname": "/ws",
        "protocol": "wss",
        "security": [
            {"$ref": "#/components/securitySchemes/token"},
            {"$ref": "#/components/securitySchemes/session"},
        ],
    }
    assert content["components"]["securitySchemes"]["session"]["name"] == "sid"
    assert content["info"] == {"title": "Shop", "version": "2"}
    assert content["operations"]["send_stock_part"]["security"] == [
        {"$ref": "#/components/securitySchemes/subscriptionToken"}
    ]


def test_schemas_of_two_types_of_one_name_have_two_names() -> None:
    def other() -> Any:
        class Comment(Payment):
            pass

        return Comment

    components = Components(reserved=("Shipped",))

    names = [
        components.add(adapter_of(each))["$ref"] for each in (Comment, other(), Comment, Shipped)
    ]

    assert [name.rpartition("/")[2] for name in names] == [
        "Comment",
        "Comment_2",
        "Comment",
        "Shipped_2",
    ]


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("news", "news"),
        ("a:*", "a:{rest}"),
        ("a:*:{rest}:**", "a:{rest_2}:{rest}:{rest_3}"),
    ],
)
def test_stars_are_parameters_of_an_address(pattern: str, address: str) -> None:
    assert address_of(pattern) == address


def test_tuples_are_written_as_in_draft_7() -> None:
    schema = {"type": "array", "prefixItems": [{"type": "null"}], "items": False}
    assert draft_7(schema) == {
        "type": "array",
        "items": [{"type": "null"}],
        "additionalItems": False,
    }
