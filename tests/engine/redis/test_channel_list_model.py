"""The channel list against a model: whatever fails, it is right in the end, and so are reports."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.engine.channel_list import ChannelList, FirstAndLast
from realtime.errors import EngineUnavailable
from tests.unit.parts import turns

NAMES = ["a", "b", "c"]


class FlakySet:
    """A `ChannelSet` in memory that fails on demand, before or after a change took effect."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.listed: dict[str, bool] = {}
        """Name → whether the last report says that it is listed."""
        self.fails_before = False
        self.fails_after = False

    async def change(
        self, added: Sequence[str], removed: Sequence[str], *, report: bool
    ) -> FirstAndLast:
        await self._step()
        self.names |= set(added)
        self.names -= set(removed)
        self._answer()
        if report:
            for names, is_listed in ((added, True), (removed, False)):
                for name in names:
                    assert self.listed.get(name, False) is not is_listed, "it was reported before"
                    self.listed[name] = is_listed
        return (), ()

    async def size(self) -> int:
        await self._step()
        self._answer()
        return len(self.names)

    async def members(self) -> set[str]:
        await self._step()
        self._answer()
        return set(self.names)

    async def _step(self) -> None:
        await asyncio.sleep(0)
        if self.fails_before:
            raise EngineUnavailable("not done")

    def _answer(self) -> None:
        if self.fails_after:
            raise EngineUnavailable("done, but the answer was lost")

    def work(self) -> None:
        self.fails_before = self.fails_after = False


class Phase(NamedTuple):
    """What happens before some turns of the loop."""

    lost: bool
    """Redis loses the set."""
    older: list[str]
    """Redis gets an older copy of the set back, with these names; none: it does not."""
    fails: str
    """"before" or "after": how commands fail from now on; "" not at all."""
    changes: list[tuple[bool, str]]
    """Names that are added or discarded, at once."""
    renewed: bool
    turns: int


phases = st.lists(
    st.builds(
        Phase,
        st.sampled_from([False, False, False, True]),
        st.lists(st.sampled_from(NAMES), max_size=2),
        st.sampled_from(["", "", "before", "after"]),
        st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=3),
        st.booleans(),
        st.sampled_from([0, 1, 3, 20]),
    ),
    max_size=8,
)


@settings(max_examples=300)
@given(phases)
def test_list_and_reports_are_right_after_a_renewal(script: list[Phase]) -> None:
    asyncio.run(follow(script))


async def follow(script: list[Phase]) -> None:
    channel_set, channel_list = FlakySet(), ChannelList()
    channel_list.open(channel_set, lambda first, last: None)
    subscribed: set[str] = set()
    renewals: list[asyncio.Future[None]] = []
    for phase in script:
        if phase.lost:
            channel_set.names.clear()
        if phase.older:
            channel_set.names = set(phase.older)
            channel_list.doubt()
        channel_set.fails_before = phase.fails == "before"
        channel_set.fails_after = phase.fails == "after"
        for added, name in phase.changes:
            (subscribed.add if added else subscribed.discard)(name)
            (channel_list.add if added else channel_list.discard)(name)
        if phase.renewed:
            renewals.append(asyncio.ensure_future(channel_list.renew()))
        await turns(phase.turns)

    channel_set.work()
    await asyncio.gather(*renewals, return_exceptions=True)
    await turns(20)
    await channel_list.renew()
    await channel_list.finish()

    assert channel_set.names == subscribed
    assert {name for name, is_listed in channel_set.listed.items() if is_listed} == subscribed
