"""Traces: spans of OpenTelemetry around publications, deliveries, hooks and the server API.

There are spans only where the site has set up an SDK of OpenTelemetry before the service starts. It
is decided once, at the start of a node or member; everywhere else nothing is called for traces.
There is never a span for a client or a connection.

    publish ──traceparent in the message──► deliver, at each node: the same trace, and a link
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

NAME = "realtime"
"""Of the tracer."""

_HEADER = "traceparent"


def spans() -> Spans | None:
    """Return what makes spans; None if no SDK is set up in this process."""
    if "opentelemetry.trace" not in sys.modules:  # an SDK imports it
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return Spans(provider.get_tracer(NAME))


class Spans:
    """Makes spans. Attributes have the names of OpenTelemetry's conventions for messaging."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation import tracecontext

        self._tracer = tracer
        self._kinds = trace.SpanKind
        self._link = trace.Link
        self._current = trace.get_current_span
        self._propagator = tracecontext.TraceContextTextMapPropagator()

    @contextmanager
    def publish(self, namespace: str, count: int = 1) -> Iterator[str]:
        """Make the span of publishing. Yield the `traceparent` of the publications.

        Args:
            namespace: of the channels; "" for the top level.
            count: publications that are sent together.
        """
        with self._tracer.start_as_current_span(
            f"publish {namespace}".strip(),
            kind=self._kinds.PRODUCER,
            attributes={**_messaging("send", namespace), "messaging.batch.message_count": count},
        ):
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier)
            yield carrier.get(_HEADER, "")

    def deliver(self, namespace: str, traceparent: str) -> AbstractContextManager[Any]:
        """Make the span of the delivery to the clients of this node, in the trace of the publisher.

        Args:
            namespace: of the channel; "" for the top level.
            traceparent: of the publication.
        """
        parent = self._extracted(traceparent)
        return self._tracer.start_as_current_span(
            f"deliver {namespace}".strip(),
            context=parent,
            kind=self._kinds.CONSUMER,
            attributes=_messaging("process", namespace),
            links=[self._link(self._current(parent).get_span_context())],
        )

    def hook(self, kind: str) -> AbstractContextManager[Any]:
        """Make the span of a call of a hook, or of an endpoint in its place."""
        return self._tracer.start_as_current_span(
            f"hook {kind}", attributes={"realtime.hook": kind}
        )

    def api(self, method: str, traceparent: str) -> AbstractContextManager[Any]:
        """Make the span of a request to the server API.

        Args:
            method: the name of the method; "commands" for a body of commands.
            traceparent: the header of the request; "" if it has none.
        """
        return self._tracer.start_as_current_span(
            f"api {method}",
            context=self._extracted(traceparent),
            kind=self._kinds.SERVER,
            attributes={"rpc.method": method},
        )

    def _extracted(self, traceparent: str) -> Context | None:
        return self._propagator.extract({_HEADER: traceparent}) if traceparent else None


def _messaging(operation: str, namespace: str) -> dict[str, str | int]:
    return {
        "messaging.system": NAME,
        "messaging.operation.type": operation,
        "realtime.namespace": namespace,
    }
