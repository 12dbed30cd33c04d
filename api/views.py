"""The server API as a REST framework view: works wherever Django works.

Under `realtime.asgi.application` the same requests are answered in front of Django.
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

    The key is checked in the endpoint, not by an authentication class, because the status
    of a wrong method comes before that of a wrong key.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    versioning_class = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse, or go on to `post`; every verb comes by here."""
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
        """There is one form of answer; what the client accepts is not asked."""
        return self.get_renderers()[0], "application/json"

    def post(self, request: Request) -> HttpResponse:
        """Run the commands of the body."""
        try:
            body = request._request.body
        except RequestDataTooBig:
            return _response(http.TOO_LARGE)
        content_type = request.headers.get("Content-Type", "")
        try:
            answer = serving.call(lambda node: http.handle(node, content_type, body))
        except (NotServing, InternalError) as error:
            logger.error("A command cannot be served: %s", error)
            answer = http.UNAVAILABLE
        return _response(answer)


def _response(response: http.Response) -> HttpResponse:
    answer = HttpResponse(response.body, status=response.status)
    if response.content_type is None:
        del answer["Content-Type"]
    else:
        answer["Content-Type"] = response.content_type
    return answer
