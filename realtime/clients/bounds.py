"""Bounds of recovery: how much a client may get at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from realtime import logs
from realtime.clients.session import ClientSession
from realtime.config.options import Config
from realtime.node.outbox import ClientOutbox
from realtime.protocol.messages import ChannelName, Publication
from realtime.streams import recovery

logger = logging.getLogger("realtime.client")


def fit(
    session: ClientSession,
    outbox: ClientOutbox,
    config: Config,
    channel: ChannelName,
    publications: Sequence[Publication],
) -> bool:
    """Return whether recovery may send so much, and reserve the room for it if so."""
    if not publications:
        return True
    most = config.client_recovery_max_publication_limit
    if most and len(publications) > most:
        why = "more publications than client_recovery_max_publication_limit"
    elif not outbox.reserve(recovery.size_of(publications), config.client_recovery_max_size):
        why = "more bytes than client_recovery_max_size"
    else:
        return True
    about = logs.of(session, channel=channel)
    logger.info("Client %s does not recover %r: %s", session.id, channel, why, extra=about)
    return False
