"""publish_html: a rendered template as a publication."""

from __future__ import annotations

from typing import Any

import django
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.template import TemplateDoesNotExist
from django.test import RequestFactory

import realtime
from realtime.live import apublish_html, publish_html
from realtime.testing import TestService, capture

ORDER = {"order": {"pk": 1, "title": "<script>alert(1)</script>"}}
ESCAPED = '<li data-key="1">&lt;script&gt;alert(1)&lt;/script&gt;</li>\n'


def test_page_gets_the_template_escaped_and_where_it_belongs(service: TestService) -> None:
    with service.client("17") as client:
        client.subscribe("team:7")

        position = publish_html("team:7", "shop/order.html", ORDER, swap="append", target="#list")

        assert client.expect("team:7").data == {
            "op": "swap",
            "swap": "append",
            "target": "#list",
            "html": ESCAPED,
        }
    assert position == realtime.position("team:7")


def test_without_target_the_live_element_gets_the_html() -> None:
    with capture() as outbox:
        publish_html("team:7", "shop/order.html", ORDER)
    assert outbox == [("team:7", {"op": "swap", "swap": "inner", "html": ESCAPED})]


def test_remove_has_no_template() -> None:
    with capture() as outbox:
        publish_html("team:7", None, swap="remove", target="#row-1")
    assert outbox == [("team:7", {"op": "swap", "swap": "remove", "target": "#row-1"})]


@pytest.mark.django_db(transaction=True)
def test_html_goes_out_after_the_commit_and_not_after_a_rollback() -> None:
    with capture() as outbox:
        with transaction.atomic():
            assert publish_html("team:7", "shop/order.html", ORDER) is None
            assert outbox == []
        with transaction.atomic():
            publish_html("team:7", "shop/order.html", ORDER)
            transaction.set_rollback(True)
    assert len(outbox) == 1


def test_options_are_those_of_publish() -> None:
    first = publish_html("team:7", "shop/order.html", ORDER, once="a")
    assert publish_html("team:7", "shop/order.html", ORDER, once="a") == first
    assert publish_html("team:7", "shop/order.html", ORDER, skip_history=True) is None
    with pytest.raises(ValueError, match="durable"):
        publish_html("team:7", "shop/order.html", ORDER, durable=True, on_commit=False)


@pytest.mark.django_db(transaction=True)
async def test_coroutines_publish_templates_that_use_the_database() -> None:
    """A queryset is read while the template is rendered."""
    await User.objects.acreate(username="Ann")
    rows = {"rows": User.objects.order_by("pk")}
    with capture() as outbox:
        position = await apublish_html("team:7", "shop/users.html", rows, target="#users")
    assert [data["html"].strip() for _, data in outbox] == ["<li>Ann</li>"]
    assert position is not None


def test_request_is_for_templates_that_need_one() -> None:
    request = RequestFactory().get("/orders")
    with capture() as outbox:
        publish_html("team:7", "shop/path.html", request=request)
    assert outbox[0].data["html"] == "/orders\n"


WRONG: dict[str, tuple[Any, dict[str, Any], type[Exception]]] = {
    "swap": ("shop/order.html", {"swap": "outer"}, ValueError),
    "replace without target": ("shop/order.html", {"swap": "replace"}, ValueError),
    "remove without target": (None, {"swap": "remove"}, ValueError),
    "remove with template": ("shop/order.html", {"swap": "remove", "target": "a"}, ValueError),
    "no template": (None, {}, ValueError),
    "target": ("shop/order.html", {"target": 5}, TypeError),
    "unknown template": ("shop/none.html", {}, TemplateDoesNotExist),
    "unknown included template": ("shop/broken.html", {}, TemplateDoesNotExist),
}


@pytest.mark.parametrize(("template", "options", "error"), WRONG.values(), ids=WRONG)
def test_mistake_publishes_nothing(template: Any, options: Any, error: type[Exception]) -> None:
    with capture() as outbox, pytest.raises(error):
        publish_html("team:7", template, **options)
    assert outbox == []


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="has partials")
def test_partial_without_partials_is_a_clear_error() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"Django 6\.0"):
        publish_html("team:7", "shop/order.html#row")


@pytest.mark.skipif(django.VERSION < (6, 0), reason="has no partials")
def test_partial_of_a_template_is_published() -> None:
    with capture() as outbox:
        publish_html("team:7", "shop/partials.html#row", {"text": "<i>"})
    assert outbox[0].data["html"] == "<b>&lt;i&gt;</b>"
