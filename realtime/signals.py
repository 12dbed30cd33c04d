"""Django signals about clients and channels.

    @receiver(realtime.signals.connected)
    def seen(user, client, **kwargs): ...

They are sent after the event, one after another, on a thread of their own; clients do not wait
for receivers. Receivers may be sync or async, use the database, and publish. When 10 000 signals
wait for slow receivers, further ones are dropped, and the log says so. Each node sends the signals
of its own clients; `sender` is None.

For one client `connected` comes first and `disconnected` last, and every `subscribed` is followed
by an `unsubscribed`. A node that is killed sends none of them; other nodes send what that means
for channels and users.
"""

from __future__ import annotations

from typing import Any

from django.dispatch import Signal


class ClientSignal(Signal):
    """A signal of which the service logs failed receivers, so that Django does not log them too."""

    def _log_robust_failure(self, receiver: Any, err: Exception) -> None:
        """Do nothing. Django's lines go to a logger that only sends e-mails by default."""


connected = ClientSignal()
"""A client connected. `user`: user ID, "" if it is anonymous; `client`: client ID."""

disconnected = ClientSignal()
"""A client that was connected has gone. `user`, `client`, and `code`: of the disconnect, 0 if the
client closed the connection."""

subscribed = ClientSignal()
"""A client subscribed. `user`, `client`, `channel`."""

unsubscribed = ClientSignal()
"""A subscription ended, for any reason. `user`, `client`, `channel`."""

channel_occupied = ClientSignal()
"""A channel got its first subscriber, over all nodes; sent by the subscriber's node. `channel`."""

channel_vacated = ClientSignal()
"""A channel lost its last subscriber, over all nodes; sent by the subscriber's node. `channel`, and
`certain`: False if that node died, or is cut off. Then another node sends it, within 15 seconds."""

user_online = ClientSignal()
"""A user has the first connection, over all nodes. `user`: user ID. With the app `realtime.online`
only."""

user_offline = ClientSignal()
"""A user has lost the last connection, over all nodes. `user`; `certain` as for
`channel_vacated`. With the app `realtime.online` only."""
