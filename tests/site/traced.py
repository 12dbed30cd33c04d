"""The test site with an SDK of OpenTelemetry that keeps its spans; GET /spans returns them."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)


def spans() -> list[dict[str, Any]]:
    """Return the spans that have ended."""
    return [_shown(span) for span in exporter.get_finished_spans()]


def _shown(span: ReadableSpan) -> dict[str, Any]:
    context, parent = span.context, span.parent
    assert context is not None
    return {
        "name": span.name,
        "kind": span.kind.name,
        "trace": f"{context.trace_id:032x}",
        "span": f"{context.span_id:016x}",
        "parent": f"{parent.span_id:016x}" if parent else None,
        "links": [f"{link.context.span_id:016x}" for link in span.links],
        "attributes": dict(span.attributes or {}),
    }


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve the test site, and the spans."""
    from tests.site.asgi import application as site

    if scope.get("path") != "/spans":
        await site(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(spans()).encode()})
