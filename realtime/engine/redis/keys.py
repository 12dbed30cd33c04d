"""The names of all keys in Redis. Other versions use the same keys: do not rename one."""

from __future__ import annotations

import hashlib

from realtime.channel_rules import CONTROL
from realtime.engine.lists import Kind
from realtime.engine.redis.partitions import Partitions
from realtime.protocol.messages import ChannelName


class Keys:
    """The keys below one prefix.

    | key | type | lifetime |
    | `P:stream:<channel>` | stream: offset → message | history_lifetime after the last one |
    | `P:meta:<channel>` | hash: top, time, UID, epoch, version | redis_history_meta_ttl, or 1 h |
    | `P:epoch` | string: the epoch of channels without a meta | forever |
    | `P:seal` | string: replication ID of a master that was left, with Sentinels | a minute |
    | `P:once:<digest>` | string: offset and epoch, of an idempotency key | once_lifetime |
    | `P:map:<channel>` | hash: key → entry | until the entries are removed |
    | `P:map.keys:<channel>` | sorted set: keys, by their bytes | the same |
    | `P:map.expiry` | sorted set: channel and key → ms, of all maps | the same |
    | `P:presence:<channel>` | hash: client ID → client info | until all entries expire |
    | `P:presence.expiry:<channel>` | sorted set: client ID → ms | the same |
    | `P:nodes`, `P:nodes.expiry` | as presence: node ID → node info | the same |
    | `P:nodes.seen`, `P:nodes.seen.expiry` | the same, with dead nodes | five minutes longer |
    | `P:channels:<node ID>` | set: the channel list of a node | five minutes longer than the node |
    | `P:users:<node ID>` | set: the users of a node, with `realtime.online` | the same |
    | `P:channel_users:<node ID>` | set: channel and user, with `join_leave` "user" | the same |
    | `P:lists.expiry` | sorted set: node ID → ms from which others sweep its lists | the same |
    | `P:swept.expiry` | sorted set: ID of a node that was swept → ms | a day |
    | `P:sweep` | hash: the names that were swept last | a minute |
    | `P:seen` | hash: user → ms, until the database has when it was online last | forever |
    | `P:owner:<name>` | string: the ID of the node that claimed a name | while it is renewed |
    | `P:blocked`, `P:blocked.expiry` | as presence: digest of a user → user and end | the same |
    | `P:blocked.version` | string: when it was made and changed; grows with each change | forever |
    | `P:debts` | sorted set: rate and digest of a user → ms, see `Debt` | until all are over |
    | `P:connections:<node ID>` | hash: digest of a user → number, see `Places` | as the node |
    | `P:panel:<name>` | string: a count or mark of the panel | 10 minutes or a session |
    | `P:answers:<survey ID>` | list: the answers of nodes | two seconds |

    With partitions, `P` is followed by the hash tag of the partition: `P:{17}:stream:<channel>`.
    Each partition has an epoch of its own. What belongs to the whole service is in the partition
    of the control stream.

    Groups of the channel layer are named by digests, because a layer allows few characters.
    """

    def __init__(self, prefix: str, partitions: Partitions = Partitions()) -> None:  # noqa: B008
        """
        Args:
            prefix: begins the name of every key.
            partitions: give the hash tags, if there are any.
        """
        self._prefix = prefix
        self._partitions = partitions
        self._service = root = self._root(CONTROL)
        self.seal = f"{prefix}:seal"
        self.nodes = (f"{root}:nodes", f"{root}:nodes.expiry")
        self.blocked = (
            f"{root}:blocked",
            f"{root}:blocked.expiry",
            f"{root}:blocked.version",
        )
        self.debts = f"{root}:debts"
        self.seen = (f"{root}:nodes.seen", f"{root}:nodes.seen.expiry")
        self.lists = f"{root}:lists.expiry"
        self.swept = f"{root}:swept.expiry"
        self.sweep = f"{root}:sweep"
        self.seen_users = f"{root}:seen"

    def _root(self, channel: ChannelName) -> str:
        if not self._partitions.count:
            return self._prefix
        return self._partitions.root(self._prefix, self.group(channel))

    def stream(self, channel: ChannelName) -> tuple[str, str, str]:
        """Return the keys of a stream, of its meta, and of the epoch of new streams."""
        root = self._root(channel)
        return f"{root}:stream:{channel}", f"{root}:meta:{channel}", f"{root}:epoch"

    def once(self, channel: ChannelName, digest: str) -> str:
        """Return the key that remembers an idempotency key of a channel, by its digest."""
        return f"{self._root(channel)}:once:{digest}"

    def map(self, channel: ChannelName) -> tuple[str, str, str]:
        """Return the keys of the entries of a map, of its keys, and of lifetimes of all maps."""
        root = self._root(channel)
        return f"{root}:map:{channel}", f"{root}:map.keys:{channel}", f"{root}:map.expiry"

    def lifetimes(self) -> list[str]:
        """Return the keys of lifetimes of entries."""
        tags = self._partitions.tags
        roots = [f"{self._prefix}:{tag}" for tag in tags] or [self._prefix]
        return [f"{root}:map.expiry" for root in roots]

    def presence(self, channel: ChannelName) -> tuple[str, str]:
        """Return the keys of the entries, and of their expiry."""
        root = self._root(channel)
        return f"{root}:presence:{channel}", f"{root}:presence.expiry:{channel}"

    def list_of(self, kind: Kind, node: str = "") -> str:
        """Return the key of a list; without a node, the prefix of all of this kind."""
        return f"{self._service}:{kind}:{node}"

    def connections(self, node: str = "") -> str:
        """Return the key of a node's places; without a node, the prefix of all of them."""
        return f"{self._service}:connections:{node}"

    def owner(self, name: str) -> str:
        """Return the key of the claim on a name."""
        return f"{self._root(name)}:owner:{name}"

    def answers(self, survey: str) -> str:
        """Return the key of the answers to a survey."""
        return f"{self._service}:answers:{survey}"

    def group(self, channel: ChannelName) -> str:
        """Return the layer group of a channel: 32 hex digits that no other prefix has."""
        name = f"{self._prefix}:{channel}"
        return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
