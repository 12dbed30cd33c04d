"""Hub: the clients of this process by ID and user, and the feeds of their channels.

Everything here is synchronous and of this process only; `node` connects the processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from realtime.config.options import ChannelOptions
from realtime.engine.base import Joined, Notice
from realtime.engine.lists import Kind, NodeLists, is_listable
from realtime.metrics import Deliveries
from realtime.node.feed import ChannelFeed
from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import ChannelName, ClientID, UserID


@dataclass(eq=False, repr=False)
class Hub:
    """The clients and feeds of this process."""

    _deliveries: Callable[[ChannelName], Deliveries] = lambda _: Deliveries("")
    """Returns what counts the deliveries in the namespace of a channel."""
    _lists: NodeLists | None = None
    """Has the users of all nodes; None: nobody asks for them."""
    clients: dict[ClientID, Subscriber] = field(default_factory=dict)
    users: dict[UserID, dict[Subscriber, None]] = field(default_factory=dict)
    feeds: dict[ChannelName, ChannelFeed] = field(default_factory=dict)

    def add(self, client: Subscriber) -> None:
        """Add a connected client."""
        self.clients[client.id] = client
        self.users.setdefault(client.user, {})[client] = None
        if self._lists is not None and is_listable(client.user):
            self._lists.add(Kind.USERS, client.user)

    def remove(self, client: Subscriber) -> None:
        """Remove a client; unknown ones are ignored. Its subscriptions are removed one by one."""
        if self.clients.pop(client.id, None) is None:
            return
        connections = self.users.get(client.user)
        if connections is not None:
            connections.pop(client, None)
            if not connections:
                del self.users[client.user]
                if self._lists is not None:
                    self._lists.discard(Kind.USERS, client.user)

    def connections(self, user: UserID) -> list[Subscriber]:
        """Return the clients of a user in this process, those that are closing left out.

        A closing client is in the hub until all of its subscriptions have ended, for as long as the
        engine takes, and must neither be counted nor shown.
        """
        return [client for client in self.users.get(user, ()) if not client.is_closing()]

    def add_subscription(
        self,
        channel: ChannelName,
        client: Subscriber,
        options: ChannelOptions,
        *,
        visible: bool = True,
        hears_joins: bool = True,
    ) -> ChannelFeed:
        """Add a client to a channel, held, and return its feed, made for the first subscriber.

        See `ChannelFeed.hold`.
        """
        feed = self.feeds.get(channel)
        if feed is None:
            feed = self.feeds[channel] = ChannelFeed(channel, options, self._deliveries(channel))
        feed.hold(client, visible=visible, hears_joins=hears_joins)
        return feed

    def remove_subscription(self, channel: ChannelName, client: Subscriber) -> ChannelFeed | None:
        """Remove a client from a channel; return the feed if that was its last subscriber."""
        feed = self.feeds.get(channel)
        if feed is None:
            return None
        feed.remove(client)
        if feed:
            return None
        del self.feeds[channel]
        return feed

    def on_notice(self, channel: ChannelName, notice: Notice) -> None:
        """Deliver a join or leave to the subscribers of a channel."""
        feed = self.feeds.get(channel)
        if feed is None:
            return
        if isinstance(notice, Joined):
            feed.broadcast(lambda codec: codec.join(channel, notice.info))
        else:
            feed.broadcast(lambda codec: codec.leave(channel, notice.info))
