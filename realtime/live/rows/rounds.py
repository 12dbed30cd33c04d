"""Rounds: whether others read rows of a model while this process read and published them.

Between the read of a row and its publication another process may change the row, read it and
publish it. The older state would be the last one that pages get. So each process begins a round
before it reads, and looks after it has published whether another round has begun since. Then it
reads again, and publishes what is different now.

That is enough. Suppose that the last publication of a row shows an old state. The process that
changed the row after that began a round after its commit, and so after the old state was read; and
it published before the last publication. So the round had begun when the publisher of the old state
looked.

A round is a publication into an internal channel, which has no subscribers: its offsets count.
"""

from __future__ import annotations

from django.db.models import Model

from realtime.channel_rules import INTERNAL
from realtime.cluster.member import NOTHING
from realtime.config.options import ChannelOptions
from realtime.engine.base import Outgoing
from realtime.errors import EngineUnavailable, NotServing
from realtime.protocol.messages import ChannelName, Publication, StreamPosition
from realtime.serving import serving

Round = StreamPosition

OPTIONS = ChannelOptions(history_size=1, history_lifetime=60)


def begin(model: type[Model]) -> Round | None:
    """Begin a round. Return it; None if the engine is away: then nothing is published either."""
    outgoing = Outgoing(_name(model), Publication(NOTHING), OPTIONS)
    try:
        return serving.call(lambda member: member.broker.publish(outgoing)).position
    except (NotServing, EngineUnavailable):
        return None


def latest(model: type[Model]) -> Round | None:
    """Return the latest round that a process of the service began; None if it is not known."""
    try:
        return serving.call(lambda member: member.broker.positions([_name(model)]))[0]
    except (NotServing, EngineUnavailable):
        return None


def _name(model: type[Model]) -> ChannelName:
    return f"{INTERNAL}rows:{model._meta.label_lower}"
