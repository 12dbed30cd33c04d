"""Channel options: those of the top level, or those of one namespace.

Older names, such as `publish`, are those of Centrifugo 2; newer names, such as
`allow_publish_for_client`, those of later versions. An object has both, and they agree: who reads
an option need not know under which name it was given.

docs/options.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from realtime.config.channel_rights import resolve
from realtime.config.fields import option, seconds

MAP_STREAM = (100, 60)
"""Publications that a map keeps in its stream, and seconds, where no option says it."""

META_TTL_MIN = 60
"""Seconds. A client that was away for a moment must find the epoch that it knows."""

META_TTL_HINT = "Otherwise the service forgets the offset of a channel before clients are back."

PER_USER = "user"
"""The value of `join_leave` for one join and one leave per user."""


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """The options of one channel: those of the top level, or those of its namespace."""

    publish: bool = option(False, "Clients may publish into the channel directly.")
    subscribe_to_publish: bool = option(
        False, "With publish: only clients subscribed to the channel may publish into it."
    )
    anonymous: bool = option(False, "Clients without a user ID may subscribe.")
    presence: bool = option(False, "Keep the clients that are subscribed now.")
    presence_disable_for_client: bool = option(False, "Only the server API may read presence.")
    join_leave: bool | str = option(
        False,
        "Tell subscribers when another client subscribes or unsubscribes; user: when a user comes"
        " with the first of some clients, or goes with the last.",
        choices=(PER_USER,),
    )
    leave_delay: float = seconds(
        0.0,
        "With join_leave user: seconds for which a user may be away without a leave and a join;"
        " at most 300.",
    )
    history_size: int = option(0, "Publications kept per channel; 0: none.")
    history_lifetime: int = seconds(0, "Seconds for which publications are kept; 0: none.")
    history_meta_ttl: int = seconds(
        0,
        "Seconds the offset of an unused channel is remembered, at least twice history_lifetime; 0:"
        " as the option of the engine says.",
    )
    history_recover: bool = option(
        False, "Give clients that reconnect the publications they missed. Needs history."
    )
    history_disable_for_client: bool = option(
        False, "Clients may not ask for history; by recovering they still get what is kept."
    )
    durable: bool = option(
        False,
        "Keep what the site's Python code publishes in its database until it is published. Needs"
        " the app realtime.pending.",
    )
    server_side: bool = option(
        False, "Only the server subscribes clients; a client's own subscribe is refused."
    )
    proxy_subscribe: bool = option(False, "Ask the application whether a client may subscribe.")
    proxy_publish: bool = option(False, "Ask the application whether a client may publish.")

    # newer names; `__post_init__` gives those whose default is None their value
    allow_subscribe_for_client: bool = option(
        None, "Clients may subscribe without a token. Not set: on, unless server_side is on."
    )
    allow_subscribe_for_anonymous: bool = option(
        None, "Clients without a user ID may subscribe, too. Not set: as anonymous."
    )
    allow_user_limited_channels: bool = option(
        None,
        "Names may list the users who may subscribe. Not set: as allow_subscribe_for_client.",
    )
    allow_publish_for_client: bool = option(
        None, "Clients may publish. Not set: as publish without subscribe_to_publish."
    )
    allow_publish_for_subscriber: bool = option(
        None, "Subscribers may publish. Not set: as publish with subscribe_to_publish."
    )
    allow_publish_for_anonymous: bool = option(
        None, "Clients without a user ID have the same right to publish. Not set: as publish."
    )
    allow_presence_for_client: bool = option(
        None, "Clients may read presence without a subscription. Not set: off."
    )
    allow_presence_for_subscriber: bool = option(
        None,
        "Subscribers may read presence. Not set: on, unless presence_disable_for_client is on.",
    )
    allow_presence_for_anonymous: bool = option(
        None,
        "Clients without a user ID have the same right to presence. Not set: on, unless"
        " presence_disable_for_client is on.",
    )
    allow_history_for_client: bool = option(
        None, "Clients may read history without a subscription. Not set: off."
    )
    allow_history_for_subscriber: bool = option(
        None, "Subscribers may read history. Not set: on, unless history_disable_for_client is on."
    )
    allow_history_for_anonymous: bool = option(
        None,
        "Clients without a user ID have the same right to history. Not set: on, unless"
        " history_disable_for_client is on.",
    )
    force_push_join_leave: bool = option(
        None,
        "Send joins and leaves to every subscriber; off: only to newer clients that ask. Needs"
        " join_leave. Not set: as join_leave.",
    )
    force_positioning: bool = option(
        False, "Check the position of every subscriber. Needs history."
    )
    allow_positioning: bool = option(
        False, "Check the position of subscribers that ask for it. Needs history."
    )
    force_recovery: bool = option(
        None, "Newer name of history_recover: every subscriber recovers. Needs history."
    )
    allow_recovery: bool = option(False, "Subscribers that ask for it recover. Needs history.")
    force_recovery_mode: str = option(
        "stream",
        "stream: recover all missed publications; cache: only the newest one.",
        choices=("stream", "cache"),
        convert=lambda mode: mode or "stream",
    )
    auto_cache_recover: bool = option(
        False,
        "With force_recovery_mode cache: clients of the second generation get the newest"
        " publication without asking for it.",
    )
    allow_tags_filter: bool = option(
        False, "Clients may ask for publications with certain tags only."
    )
    allowed_delta_types: tuple[str, ...] = option(
        (),
        "fossil: clients of the second generation may ask for deltas, which hold what changed since"
        " the publication before.",
        choices=("fossil",),
    )
    channel_regex: str = option(
        "",
        "Regular expression for the part of a channel name after the namespace; empty: any ASCII"
        " characters.",
    )
    join_on_read: bool = option(
        False,
        "Join adjacent chunks of text where history is read or recovered, as for answers of"
        " language models. Needs history.",
    )
    map: str = option(
        "",
        "Keep the newest publication of each key. ephemeral: without a stream, so that clients read"
        " the whole map when they come back; recoverable: with one; persistent: also, and entries"
        " without a lifetime.",
        choices=("", "ephemeral", "recoverable", "persistent"),
    )
    map_key_ttl: int = seconds(
        60,
        "Seconds for which an entry of an ephemeral or recoverable map lives after its last put.",
        least=1,
    )
    map_max_keys: int = option(10_000, "Keys of one map; puts of other keys are refused.", least=1)
    map_max_bytes: int = option(
        16_777_216, "Bytes of all entries of one map; puts beyond them are refused.", least=1
    )
    map_publish: str = option(
        "",
        "Who may put and remove: subscriber, or client for every client; empty: only the site."
        " Clients without a user ID need allow_publish_for_anonymous, too.",
        choices=("", "subscriber", "client"),
    )
    map_key: str = option(
        "",
        "The key of what a client puts: client for its client ID, user for its user ID; empty: any"
        " key.",
        choices=("", "client", "user"),
    )
    map_remove_on_unsubscribe: bool = option(
        False, "Remove the key that is a client's ID when it unsubscribes. Needs map_key client."
    )
    presence_maps: tuple[str, ...] = option(
        (),
        "Namespaces of maps that show who is in the channel, for example clients for the map"
        " clients:room:1 of room:1; its map_key says by which key. Needs presence.",
    )
    publication_data_format: str = option(
        "",
        "What may be published: json_object for JSON objects; empty or json for any JSON.",
        choices=("", "json", "json_object"),
    )

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in CHANNEL_OPTION_FIELDS}
        for name, value in resolve(given).items():
            object.__setattr__(self, name, value)
        if self.map in ("recoverable", "persistent") and not self.keeps_history:
            size, lifetime = MAP_STREAM
            object.__setattr__(self, "history_size", self.history_size or size)
            object.__setattr__(self, "history_lifetime", self.history_lifetime or lifetime)

    def ttl(self, wanted: int | None = None) -> int:
        """Return the seconds for which an entry of this map lives; 0: forever."""
        if wanted is not None:
            return wanted
        return 0 if self.map == "persistent" else self.map_key_ttl

    @property
    def meta_ttl(self) -> int:
        """Seconds for which the position of an unused channel is kept; 0: as the engine's option.

        One that was forgotten before the publications would end their epoch.
        """
        return self.history_meta_ttl and max(self.history_meta_ttl, 2 * self.history_lifetime)

    @property
    def keeps_history(self) -> bool:
        """Whether publications are numbered and kept: both size and lifetime are set."""
        return self.history_size > 0 and self.history_lifetime > 0


CHANNEL_OPTION_FIELDS: Mapping[str, Field[Any]] = {f.name: f for f in fields(ChannelOptions)}


class Overrides(NamedTuple):
    """Channel options that are others for one subscription. None: that of the channel."""

    presence: bool | None = None
    join_leave: bool | None = None
    force_push_join_leave: bool | None = None
    force_recovery: bool | None = None
    force_positioning: bool | None = None

    def apply(self, options: ChannelOptions) -> ChannelOptions:
        """Return the options of the subscription, from those of its channel."""
        return _overridden(options, self)


@lru_cache(maxsize=1024)
def _overridden(options: ChannelOptions, overrides: Overrides) -> ChannelOptions:
    changes = {name: value for name, value in overrides._asdict().items() if value is not None}
    if overrides.join_leave and options.join_leave:
        del changes["join_leave"]  # on, in whichever way the channel has it
    return replace(options, **changes)
