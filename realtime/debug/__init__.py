"""A panel for django-debug-toolbar: what a request asks of the service.

    DEBUG_TOOLBAR_PANELS = [*PANELS_DEFAULTS, "realtime.debug.RealtimePanel"]

Nothing of the service imports it, and it is no app.
"""

from __future__ import annotations

from realtime.debug.panel import RealtimePanel

__all__ = ["RealtimePanel"]
