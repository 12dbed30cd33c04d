"""The endpoints of the reference server's web panel, for its tools: docs/protocol.md, 9.

    POST admin/auth   password -> token
    POST admin/api    commands of the server API, with `Authorization: token <token>`

They ignore cookies, so a page of another site cannot use those of a browser. Therefore they need
no CSRF token.
"""

from __future__ import annotations

import json
import time

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from realtime.config import sources
from realtime.server_api import http

from ..commands import run_commands
from . import signin
from .limiter import Limited, address_of

TEXT = "text/plain; charset=utf-8"


@csrf_exempt
@never_cache
@sensitive_post_parameters("password")
@sensitive_variables("password")
def auth(request: HttpRequest) -> HttpResponse:
    """Send a token in exchange for the password."""
    if request.method != "POST":
        return respond(http.METHOD_NOT_ALLOWED)
    config = sources.current()
    if signin.needs_no_password(config):
        return _send_token(signin.INSECURE_TOKEN)
    try:
        password = find_password(request)
    except RequestDataTooBig:
        return respond(http.TOO_LARGE)
    except (BadRequest, MultiPartParserError, SuspiciousOperation):
        return respond(http.BAD_REQUEST)
    if not password or not signin.has_password(config):
        return respond(http.BAD_REQUEST)
    now = time.time()
    try:
        is_right = signin.try_password(config, password, address_of(request, config), now)
    except Limited as limited:
        response = respond(http.Response(429, b"Too Many Requests\n", TEXT))
        response["Retry-After"] = str(limited.seconds)
        return response
    return _send_token(signin.issue_token(config, now)) if is_right else respond(http.BAD_REQUEST)


@csrf_exempt
@never_cache
@sensitive_variables("token")
def commands(request: HttpRequest) -> HttpResponse:
    """Run the commands of the body; see docs/http-api.md."""
    if request.method != "POST":
        return respond(http.METHOD_NOT_ALLOWED)
    match request.headers.get("Authorization", "").split():
        case [scheme, token] if scheme.lower() == "token":
            if not signin.is_token(sources.current(), token, time.time()):
                return respond(http.UNAUTHORIZED)
        case _:
            return respond(http.UNAUTHORIZED)
    try:
        body = request.body
    except RequestDataTooBig:
        return respond(http.TOO_LARGE)
    return respond(run_commands(request.headers.get("Content-Type", ""), body))


@sensitive_variables("passwords")
def find_password(request: HttpRequest) -> str:
    """Return the first password in the form, otherwise in the query; "" for none.

    Raises:
        BadRequest, MultiPartParserError, SuspiciousOperation: the body is not a form.
    """
    passwords = [*request.POST.getlist("password"), *request.GET.getlist("password")]
    return passwords[0] if passwords else ""


def _send_token(token: str) -> HttpResponse:
    body = json.dumps({"token": token}, separators=(",", ":")) + "\n"
    response = HttpResponse(body, content_type="application/json")
    response["X-Content-Type-Options"] = "nosniff"
    return response


def respond(response: http.Response) -> HttpResponse:
    """Return the Django form of a response of the server API."""
    answer = HttpResponse(response.body, status=response.status)
    if response.content_type is None:
        del answer["Content-Type"]
    else:
        answer["Content-Type"] = response.content_type
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
