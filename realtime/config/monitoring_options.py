"""Options by which operators see the service run. They are fields of `options.Config`."""

from __future__ import annotations

from dataclasses import dataclass

from realtime.config.fields import option


@dataclass(frozen=True)  # of several bases only one may have slots
class MonitoringOptions:
    """The options of metrics and health."""

    metrics_key: str = option("", "The key with which metrics may be read.", secret=True)
    metrics_addresses: tuple[str, ...] | None = option(
        None, "Addresses and networks from which metrics may be read without a key."
    )
    metrics_handler_prefix: str = option("/realtime/metrics", "Path of the metrics.")
    health: bool = option(
        False, "Serve live and ready: whether this process is alive, and ready for clients."
    )
    health_handler_prefix: str = option("/realtime", "Their paths are this, and /live or /ready.")

    @property
    def serves_metrics(self) -> bool:
        """Whether anyone may read the metrics."""
        return bool(self.metrics_key or self.metrics_addresses)
