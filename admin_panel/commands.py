"""Commands of the server API, as the console and /admin/api run them.

Beside `service` and `people` the only way of the panel to the service.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

import realtime
from realtime.errors import BadRequest, NotServing
from realtime.protocol.json_stream import Malformed
from realtime.server_api import http, methods
from realtime.serving import serving

from .answering import answering
from .service import Position

logger = logging.getLogger("realtime.admin_panel")


def decode_params(method: str, params: bytes) -> Any:
    """Return the params of a command as the server API reads them; None if it refuses them.

    Args:
        method: a name of `methods.METHODS`.
        params: JSON text, or nothing.
    """
    decode = methods.METHODS[methods.METHOD_NUMBERS[method]].decode
    try:
        return decode(params)
    except Malformed:
        return None


def run_command(method: str, params: bytes) -> bytes:
    """Run a command of the server API and return its result as JSON, as /api would.

    Args:
        method: a name of `methods.METHODS`.
        params: JSON text, or nothing.

    Raises:
        Unavailable: the service does not answer.
        Error: the service refuses the command.
    """
    number = methods.METHOD_NUMBERS[method]
    with answering():
        return serving.call(lambda member: methods.run(member, number, params))


def publish(channels: Sequence[str], data: str) -> list[Position | None]:
    """Publish into channels whose names were checked, as "publish" and "broadcast" do.

    Their results do not say where the publications are.

    Args:
        channels: at least one.
        data: JSON text.

    Returns:
        The position of each; None without history.

    Raises:
        Unavailable: the service does not answer; some may have been published.
        Error: code 107, the data are not JSON that the service accepts.
    """
    value = msgspec.Raw(data.encode())
    try:
        with answering():
            return realtime.publish_many(
                [(channel, value) for channel in channels], on_commit=False
            )
    except ValueError:
        raise BadRequest from None


def run_commands(content_type: str, body: bytes) -> http.Response:
    """Respond to a request of the server API from an authorised caller. Never raises."""
    try:
        return serving.call(lambda member: http.handle(member, content_type, body))
    except NotServing as error:
        logger.error("Could not run a command of the server API: %s", error)
        return http.UNAVAILABLE
