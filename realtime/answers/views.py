"""Views of answers. Include `realtime.answers.urls` in the site's URLconf."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from realtime.answers import http, permission, rows
from realtime.answers.models import Answer, Status
from realtime.errors import Disconnect, EngineUnavailable, Error, InternalError


def _row(pk: UUID) -> Answer:
    row = rows.fetch(pk)
    if row is None:
        raise Http404
    return row


@never_cache
@require_GET
def events(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stream an answer, to those who may read it."""
    row = _row(pk)
    try:
        permission.check_read(row, http.request_of(request))
    except InternalError:
        return HttpResponse("The permission check failed.\n", status=500)
    except (Error, Disconnect):
        raise DjangoPermissionDenied from None
    return http.response(request, row, as_html=request.GET.get("format") == "html")


@never_cache
@require_POST
def stop(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stop an answer, for those who may. It answers with the status that the answer has then."""
    row = _row(pk)
    try:
        permission.check_stop(row, http.request_of(request))
        row = rows.end(row, Status.STOPPED)
    except (InternalError, EngineUnavailable):
        return HttpResponse("The answer could not be stopped now.\n", status=503)
    except (Error, Disconnect):
        raise DjangoPermissionDenied from None
    return JsonResponse({"status": row.status})
