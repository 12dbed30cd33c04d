"""The names of everything in Redis, in one place."""

from __future__ import annotations

import hashlib

from realtime.protocol.messages import ChannelName


class Keys:
    """The keys below one prefix.

    | key | type | lifetime |
    | `P:stream:<channel>` | stream: offset → message | history_lifetime after the last one |
    | `P:meta:<channel>` | hash: top offset, epoch | redis_history_meta_ttl, or for ever |
    | `P:epoch` | string: the epoch of channels without a meta | for ever |
    | `P:presence:<channel>` | hash: connection ID → client info | until all have expired |
    | `P:presence.expiry:<channel>` | sorted set: connection ID → ms | the same |
    | `P:nodes`, `P:nodes.expiry` | as presence: node ID → node info | the same |
    | `P:nodes.seen`, `P:nodes.seen.expiry` | the same, dead ones too | five minutes longer |
    | `P:channels:<node ID>` | set: the channels subscribed at a node | as the node |
    | `P:owner:<name>` | string: the ID of the node that owns a thing | while it is renewed |
    | `P:answers:<survey ID>` | list: what nodes answered to a question | two seconds |

    Groups of the channel layer are named by digests, because a layer takes few characters.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.epoch = f"{prefix}:epoch"
        self.nodes = (f"{prefix}:nodes", f"{prefix}:nodes.expiry")
        self.seen = (f"{prefix}:nodes.seen", f"{prefix}:nodes.seen.expiry")

    def stream(self, channel: ChannelName) -> tuple[str, str, str]:
        """Stream, meta, and the epoch of new streams."""
        return f"{self._prefix}:stream:{channel}", f"{self._prefix}:meta:{channel}", self.epoch

    def presence(self, channel: ChannelName) -> tuple[str, str]:
        """Entries and their expiry."""
        return (f"{self._prefix}:presence:{channel}", f"{self._prefix}:presence.expiry:{channel}")

    def channels(self, node: str = "") -> str:
        """The channels subscribed at a node; what all these keys begin with, without one."""
        return f"{self._prefix}:channels:{node}"

    def owner(self, name: str) -> str:
        """Which node owns a thing of which there may be one among all nodes."""
        return f"{self._prefix}:owner:{name}"

    def answers(self, survey: str) -> str:
        """What nodes answered to a question."""
        return f"{self._prefix}:answers:{survey}"

    def group(self, channel: ChannelName) -> str:
        """The layer group of a channel: 32 hex digits, which no other prefix has."""
        name = f"{self._prefix}:{channel}"
        return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
