"""Filling maps: a client that subscribes to a map of rows gets the rows that there are.

Changes of rows go into a map as they come. The rows that were there before are put at the first
subscribe in each process, and again when the engine has lost the map. A put of `fill` never takes
the place of another one, since changes are newer than the rows that it has read. If the row has
left the channel since then, its own removal may have come before the put: the put is taken back.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from threading import Lock

from django.db import router
from msgspec.structs import replace

from realtime import channel_rules
from realtime.cluster.member import NewPublication
from realtime.live.rows import batches
from realtime.live.rows.channels import ChannelPattern
from realtime.live.rows.feeds import LiveFeed
from realtime.protocol.messages import ChannelName
from realtime.server_api import transactions
from realtime.server_api.transactions import Outcomes
from realtime.serving import serving

MAX_REMEMBERED = 10_000
"""Maps of which this process knows that they are filled; others are filled again."""

_filled: OrderedDict[ChannelName, str] = OrderedDict()
"""Map → the epoch in which it was filled."""
_turns: dict[ChannelName, Lock] = {}
"""Of the maps that are being filled."""
_lock = Lock()


def fill(channel: ChannelName, feed: LiveFeed, pattern: ChannelPattern) -> None:
    """Put the rows of a channel, if it is a map that this process has not filled.

    Raises:
        EngineUnavailable, DatabaseError: the rows could not be read, or not be put.
    """
    options = channel_rules.options_of(channel, serving.config())
    if not options.map:
        return
    epoch = serving.call(lambda member: member.broker.positions([channel]))[0].epoch
    with _lock:
        turn = _turns.setdefault(channel, Lock())
    with turn:  # of many clients that come at once, one fills the map
        if _filled.get(channel) != epoch:
            _fill(channel, feed, pattern, options.map_max_keys)
    with _lock:
        _turns.pop(channel, None)
        _filled[channel] = epoch
        _filled.move_to_end(channel)
        while len(_filled) > MAX_REMEMBERED:
            _filled.popitem(last=False)


def _fill(channel: ChannelName, feed: LiveFeed, pattern: ChannelPattern, most: int) -> None:
    texts = pattern.pattern.match(channel) or {}
    values = {field.attname: texts[name] for name, field in pattern.fields.items()}
    written = feed.model._default_manager.using(router.db_for_write(feed.model))
    rows = batches.rows_of([feed], written.filter(**values)).iterator(chunk_size=batches.CHUNK)
    for chunk in batches.chunks(islice(rows, most)):
        puts = {
            row.pk: NewPublication(channel, feed.entry(row), key=str(row.pk), key_mode="if_new")
            for row in chunk
        }
        outcomes = dict(zip(puts, _send(list(puts.values())), strict=True))
        now = batches.rows_of([feed], written.all()).in_bulk(list(puts))
        stay = {key for key, row in now.items() if channel in batches.names_of(feed, row)}
        _send(
            [
                replace(batches.without(channel, str(key)), expect=outcomes[key].position)
                for key in puts.keys() - stay
                if outcomes[key].kept
            ]
        )


def _send(publications: list[NewPublication]) -> Outcomes:
    if not publications:
        return ()
    return serving.publisher.send(transactions.check(publications, serving.config()))
