"""Renewal: the site is asked whether a connection may go on, when it expires or anything changed.

While nobody can say, the connection goes on, and the site is asked again later.

Spec: Connection expiry; Application callbacks (proxy options).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from realtime.errors import Disconnect, DisconnectExpired, Error, InternalError
from realtime.hooks.base import Renewal

if TYPE_CHECKING:
    from realtime.client import Client

logger = logging.getLogger("realtime.client")

RENEWAL_RETRY = 60.0
"""Seconds until the site is asked again whether a connection may go on, when it cannot say."""


async def renew(client: Client) -> None:
    """Ask the site whether the connection may go on; close it if not. Never raises."""
    try:
        renewal = await _ask(client)
    except Disconnect as disconnect:
        # its traceback holds frames that hold the client
        client.close(disconnect.with_traceback(None))
        return
    except Exception as error:  # whatever it is, the connection must not be left without an expiry
        logger.warning(
            "The site cannot say whether client %s may stay; asking later",
            client.id,
            exc_info=not isinstance(error, InternalError),  # which was logged where it happened
        )
        client.extend(client.node.timers.now() + RENEWAL_RETRY, None)
        return
    if renewal is None or renewal.expires_at <= time.time():
        client.close(DisconnectExpired())
        return
    client.extend(client.expiry_deadline(renewal.expires_at), renewal.info)


async def _ask(client: Client) -> Renewal | None:
    try:
        return await client.node.hooks.refresh(client.caller(), client.session.login)
    except InternalError:
        raise
    except Error:
        return None
