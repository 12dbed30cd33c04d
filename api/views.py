"""The HTTP API as a view of Django REST framework, for every Django site.

`realtime.asgi.application` answers the same requests in front of Django.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from realtime.config import sources
from realtime.errors import InternalError, NotServing
from realtime.server_api import http
from realtime.serving import serving

logger = logging.getLogger("realtime.api")


class CommandView(APIView):
    """POST one or more commands; see docs/http-api.md.

    `server_api.http` checks the key, and not an authentication class: a wrong method is refused
    before a wrong key.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    versioning_class = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a request, or pass it on to `post`. Called for every HTTP method."""
        refused = http.refuse(
            sources.current(),
            request.method or "",
            request.headers.get("Authorization", ""),
            request.META.get("QUERY_STRING", ""),
        )
        if refused is not None:
            return _response(refused)
        return super().dispatch(request, *args, **kwargs)

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Ignore the header Accept: responses have one form."""
        return self.get_renderers()[0], "application/json"

    def post(self, request: Request) -> HttpResponse:
        """Run the commands of the body."""
        try:
            body = request._request.body
        except RequestDataTooBig:
            return _response(http.TOO_LARGE)
        content_type = request.headers.get("Content-Type", "")
        try:
            response = serving.call(lambda member: http.handle(member, content_type, body))
        except (NotServing, InternalError) as error:
            logger.error("Could not run an API command: %s", error)
            response = http.UNAVAILABLE
        return _response(response)


def _response(response: http.Response) -> HttpResponse:
    converted = HttpResponse(response.body, status=response.status)
    if response.content_type is None:
        del converted["Content-Type"]
    else:
        converted["Content-Type"] = response.content_type
    return converted
