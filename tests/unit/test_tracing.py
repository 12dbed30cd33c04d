"""Spans: only with an SDK, around hooks, and their name in the message between processes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from realtime import tracing
from realtime.config.reader import read
from realtime.engine import records
from realtime.errors import PermissionDenied
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import NO_HANDSHAKE, Caller
from realtime.payload import check
from realtime.protocol.messages import Publication

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_without_an_sdk_there_are_no_spans() -> None:
    """Also where the API is imported, as here."""
    assert tracing.spans() is None


async def test_call_of_a_hook_has_a_span() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    registry = Registry()

    def refuse(request: Any) -> None:
        raise PermissionDenied

    registry.methods["refused"] = refuse
    site = SiteHooks(read({})[0], registry, spans=tracing.Spans(provider.get_tracer(tracing.NAME)))

    with pytest.raises(PermissionDenied):
        await site.rpc(Caller("C", "17", NO_HANDSHAKE), "refused", b"")

    assert [span.name for span in exporter.get_finished_spans()] == ["hook rpc"]
    await site.close()


@pytest.mark.parametrize("tags", [None, {"kind": "news"}])
def test_span_of_a_publication_travels_where_older_nodes_do_not_look(
    tags: dict[str, str] | None,
) -> None:
    publication = Publication(check(b"1"), tags=tags, traceparent=TRACEPARENT)
    message = records.of_publication(publication)
    assert set(message) == {"record", "checked", "more"}
    assert records.to_publication(message, 0) == publication


def test_publication_without_a_span_travels_as_before() -> None:
    assert "more" not in records.of_publication(Publication(check(b"1")))


@pytest.mark.parametrize("traceparent", [1, None, ["x"], {}])
def test_span_that_is_no_text_was_written_by_no_node(traceparent: Any) -> None:
    message = records.of_publication(Publication(check(b"1")))
    message["more"] = {"traceparent": traceparent}
    with pytest.raises(TypeError):
        records.to_publication(message, 0)
