"""The HTTP API as views of Django REST framework, for every Django site.

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

from realtime.cluster.member import Member
from realtime.config import sources
from realtime.config.reader import InvalidOptions
from realtime.errors import InternalError, NotServing
from realtime.server_api import http, http_v2
from realtime.serving import serving

logger = logging.getLogger("realtime.api")


class _APIView(APIView):
    """What both views share.

    `server_api` checks the key, and not an authentication class: a wrong method is refused before a
    wrong key.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    versioning_class = None

    def head(self, request: HttpRequest) -> http.Head:
        """Return what counts of the head of a request."""
        return http.Head(
            request.method or "",
            request.META.get("QUERY_STRING", ""),
            request.headers.get("X-API-Key"),
            request.headers.get("Authorization"),
            request.headers.get("X-Centrifugo-Error-Mode"),
        )

    async def handle(self, member: Member, request: HttpRequest, body: bytes) -> http.Response:
        """Return the response to a request that was not refused."""
        raise NotImplementedError

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Refuse a request, or pass it on to `post`. Called for every HTTP method."""
        self.kwargs = kwargs
        try:
            refused = http.refuse(sources.current(), self.head(request))
        except InvalidOptions as error:
            logger.error("The server API cannot be served: %s", error)
            refused = http.UNAVAILABLE
        if refused is not None:
            return _response(refused)
        return super().dispatch(request, *args, **kwargs)

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Ignore the header Accept: responses have one form."""
        return self.get_renderers()[0], "application/json"

    def post(self, request: Request, **kwargs: Any) -> HttpResponse:
        """Run what the body asks for."""
        plain = request._request
        try:
            body = plain.body
        except RequestDataTooBig:
            return _response(http.TOO_LARGE)
        try:
            response = serving.call(lambda member: self.handle(member, plain, body))
        except (NotServing, InternalError) as error:
            logger.error("Could not run an API command: %s", error)
            response = http.UNAVAILABLE
        return _response(response)


class CommandView(_APIView):
    """POST one or more commands; see docs/http-api.md."""

    def head(self, request: HttpRequest) -> http.Head:
        """As for methods, without the header X-API-Key."""
        return super().head(request)._replace(key=None)

    async def handle(self, member: Member, request: HttpRequest, body: bytes) -> http.Response:
        """See `server_api.http.handle`."""
        return await http.handle(member, request.headers.get("Content-Type", ""), body)


class MethodView(_APIView):
    """POST the params of one method, which the path names; see docs/http-api.md."""

    async def handle(self, member: Member, request: HttpRequest, body: bytes) -> http.Response:
        """See `server_api.http_v2.handle`."""
        return await http_v2.handle(member, self.kwargs["name"], self.head(request), body)


def _response(response: http.Response) -> HttpResponse:
    converted = HttpResponse(response.body, status=response.status)
    if response.content_type is None:
        del converted["Content-Type"]
    else:
        converted["Content-Type"] = response.content_type
    return converted
