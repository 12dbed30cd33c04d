"""Django signals that say what happens to clients and channels.

    @receiver(realtime.signals.connected)
    def seen(user, client, **kwargs): ...

They are sent after the fact, one after another, on a thread of their own, and never make a
client wait. Receivers may be synchronous or asynchronous, use the database, and publish. When
more than `hooks.events.EVENTS_ALLOWED` wait for slow receivers, further ones are dropped, and
the log says so. Each process tells of its own clients; `sender` is None.

Of one client `connected` comes first and `disconnected` last, and every `subscribed` is
followed by an `unsubscribed`. A process that is killed tells nothing of its end.
"""

from __future__ import annotations

from django.dispatch import Signal

connected = Signal()
"""A client connected. `user`: user ID, "" for nobody; `client`: connection ID."""

disconnected = Signal()
"""A client that was connected is gone. `user`, `client`, and `code`: of the disconnect, 0 when
the client left by itself."""

subscribed = Signal()
"""A client subscribed. `user`, `client`, `channel`."""

unsubscribed = Signal()
"""A subscription ended, for whatever reason. `user`, `client`, `channel`."""

channel_occupied = Signal()
"""A channel has its first subscriber, counting all processes; sent by its process. `channel`."""

channel_vacated = Signal()
"""A channel has lost its last subscriber, counting all processes; sent by its process.
`channel`. Not sent for the channels of a process that was killed."""
