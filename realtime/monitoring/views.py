"""Health as views, for sites that are served without `realtime.asgi`, or at paths of their own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from realtime.monitoring import health


@never_cache
@login_not_required
@non_atomic_requests  # no database: it may be away, and the service is alive
@require_safe
async def live(request: HttpRequest) -> HttpResponse:
    """Answer 200 if the event loop of this process turns, otherwise 503."""
    return _response(await health.is_process_alive())


@never_cache
@login_not_required
@non_atomic_requests
@require_safe
async def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 if this process is ready for clients, otherwise 503."""
    return _response(await health.is_process_ready())


def _response(is_well: bool) -> HttpResponse:
    status, text = (200, "ok\n") if is_well else (503, "unavailable\n")
    return HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
