"""The order of one stream, against a model: each publication exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from realtime.engine.base import History
from realtime.protocol.messages import Publication, StreamPosition
from realtime.streams.order import StreamLost, StreamOrder
from tests.unit.parts import data, quickly

MAX_READS = 4
"""Reads until nothing is missing: a lost stream takes one to notice it, one to start anew, and one
for what arrived meanwhile."""


def made(uid: str, offset: int) -> Publication:
    return Publication(data("1"), None, offset, uid)


def read(order: StreamOrder, answer: History) -> list[Publication] | StreamLost:
    """Return the publications to deliver, or the loss."""
    try:
        return order.end_read(answer)
    except StreamLost as lost:
        return lost


def history(log: list[Publication], skipped: int, epoch: str) -> History:
    """A read of a stream that leaves out the first publications."""
    uids = ["", *(publication.uid for publication in log)]
    position = StreamPosition(len(log), epoch)
    return History(tuple(log[skipped:]), position, uids[-1], uids[min(skipped, len(log))])


class Stream:
    """A stream as the engine has it. Within an epoch it loses nothing but its oldest entries."""

    def __init__(self) -> None:
        self.epochs = 0
        self.logs: dict[str, list[Publication]] = {}
        self.begin_epoch()

    def begin_epoch(self) -> None:
        self.epochs += 1
        self.epoch = f"e{self.epochs}"
        self.logs[self.epoch] = []
        self.first_kept = 1

    @property
    def log(self) -> list[Publication]:
        return self.logs[self.epoch]

    @property
    def position(self) -> StreamPosition:
        return StreamPosition(len(self.log), self.epoch)

    def publish(self) -> tuple[Publication, StreamPosition]:
        offset = len(self.log) + 1
        publication = made(f"{self.epoch}-{offset}", offset)
        self.log.append(publication)
        return publication, self.position

    def history(self, since: int) -> History:
        return history(self.log, max(self.first_kept, since, 1) - 1, self.epoch)


class Network(RuleBasedStateMachine):
    """A stream, an order, and everything that may happen to publications between the two."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream()
        self.order = StreamOrder()
        self.on_the_way: list[tuple[Publication, StreamPosition]] = []
        self.delivered = StreamPosition(0, "")
        """The position of the last delivery, as the model counts."""
        self.since: int | None = None
        """The offset of a read, until the engine has done it."""
        self.answer: History | None = None
        self.starting = True

    # the world

    @rule(number=st.integers(1, 4))
    def publish(self, number: int) -> None:
        self.on_the_way.extend(self.stream.publish() for _ in range(number))

    @precondition(lambda self: self.on_the_way)
    @rule(which=st.integers(0, 7), again=st.booleans())
    def arrive(self, which: int, again: bool) -> None:
        """In any order; and again, if the way brings something twice."""
        index = which % len(self.on_the_way)
        publication, position = self.on_the_way[index]
        if not again:
            del self.on_the_way[index]
        self.receive(self.order.receive(publication, position))

    @precondition(lambda self: self.on_the_way)
    @rule(number=st.integers(1, 8))
    def deliver_in_order(self, number: int) -> None:
        for publication, position in self.on_the_way[:number]:
            self.receive(self.order.receive(publication, position))
        del self.on_the_way[:number]

    @precondition(lambda self: self.on_the_way)
    @rule(which=st.integers(0, 7), noticed=st.booleans())
    def lose(self, which: int, noticed: bool) -> None:
        del self.on_the_way[which % len(self.on_the_way)]
        if noticed:
            self.order.suspect_loss()

    @rule()
    def suspect_loss(self) -> None:
        self.order.suspect_loss()

    @rule(number=st.integers(0, 5))
    def trim(self, number: int) -> None:
        """Only so many are kept."""
        top = self.stream.position.offset
        self.stream.first_kept = max(self.stream.first_kept, top - number + 1)

    @rule()
    def lose_the_stream(self) -> None:
        self.stream.begin_epoch()

    # reading it

    @precondition(lambda self: self.since is None and self.answer is None)
    @rule()
    def ask(self) -> None:
        self.since = self.order.begin_read()

    @precondition(lambda self: self.since is not None)
    @rule()
    def engine_reads(self) -> None:
        assert self.since is not None
        self.answer = self.stream.history(self.since)
        self.since = None

    @precondition(lambda self: self.answer is not None)
    @rule()
    def answer_comes(self) -> None:
        answer, self.answer = self.answer, None
        assert answer is not None
        if self.starting:
            self.starting = False
            self.delivered = answer.position
            self.receive(self.order.start(answer))
            return
        outcome = read(self.order, answer)
        if isinstance(outcome, StreamLost):
            assert not outcome.renew, "this stream loses nothing within an epoch"
            assert self.does_not_continue(answer), "the stream does continue"
            self.starting = True
        else:
            self.receive(outcome)

    def does_not_continue(self, answer: History) -> bool:
        if answer.position.epoch != self.delivered.epoch:
            return True
        kept = [publication.offset for publication in answer.publications]
        return min(kept, default=answer.position.offset + 1) > self.delivered.offset + 1

    @precondition(lambda self: self.since is None and self.answer is None)
    @rule()
    def catch_up(self) -> None:
        """As after a check: with a few questions everything is there, however it was lost."""
        self.order.suspect_loss()
        for _ in range(MAX_READS):
            if not self.order.is_behind and not self.starting:
                break
            self.ask()
            self.engine_reads()
            self.answer_comes()
        assert not self.order.is_behind
        assert self.delivered == self.stream.position

    def teardown(self) -> None:
        if self.since is not None:
            self.engine_reads()
        if self.answer is not None:
            self.answer_comes()
        self.catch_up()

    # what must hold

    def receive(self, publications: list[Publication]) -> None:
        assert not (self.starting and publications), "nothing is known of the stream"
        offset, epoch = self.delivered.offset, self.delivered.epoch
        for publication in publications:
            offset += 1
            assert [publication] == self.stream.logs[epoch][offset - 1 : offset]
        self.delivered = StreamPosition(offset, epoch)

    @invariant()
    def position_is_that_of_the_last_one_delivered(self) -> None:
        if not self.starting:
            assert self.order.position == self.delivered


TestNetwork = Network.TestCase
TestNetwork.settings = quickly


@quickly
@given(
    delivered=st.integers(1, 6),
    waiting=st.sets(st.integers(8, 10)),
    survived=st.integers(0, 10),
    published_anew=st.integers(0, 12),
    arriving=st.lists(st.integers(1, 22), max_size=6),
    quiet=st.booleans(),
    trimmed=st.booleans(),
)
def test_stream_that_comes_back_shorter_is_noticed_and_otherwise_followed(
    delivered: int,
    waiting: set[int],
    survived: int,
    published_anew: int,
    arriving: list[int],
    quiet: bool,
    trimmed: bool,
) -> None:
    """Redis came back with an older data set, in the same epoch, and went on from there.

    Quiet: the order has seen the position of the last publication only. Trimmed: that one is not
    kept any more.
    """
    before = [made(f"before-{offset}", offset) for offset in range(1, 11)]
    top = survived + published_anew
    after = [
        *before[:survived],
        *(made(f"after-{offset}", offset) for offset in range(survived + 1, top + 1)),
    ]
    order = StreamOrder()
    order.begin_read()
    seen = delivered if quiet else 0
    order.start(history(before[:seen], seen, "e"))
    for publication in [*before[seen:delivered], *(before[o - 1] for o in sorted(waiting))]:
        order.receive(publication, StreamPosition(publication.offset, "e"))

    order.suspect_loss()  # the connection broke
    for offset in arriving:
        if survived < offset <= top:
            assert order.receive(after[offset - 1], StreamPosition(offset, "e")) == []
    since = order.begin_read()
    assert since == delivered
    answer = history(after, since if trimmed else since - 1, "e")
    outcome = read(order, answer)
    if survived < delivered or top < max(waiting, default=0):
        assert isinstance(outcome, StreamLost)
        assert outcome.renew
    else:
        assert outcome == after[delivered:]
