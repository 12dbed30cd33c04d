"""Play every fault of an engine, and write the table in its page.

    python -m tests.chaos.fault_table redis               docs/redis.md, some ten minutes
    python -m tests.chaos.fault_table postgresql          docs/postgresql.md, as long
    python -m tests.chaos.fault_table redis frozen        faults with a word in their names; writes
                                                          nothing

Exits with 1 when a promise was broken: an untold loss, a publication twice or out of order.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from tests.chaos import postgresql_faults, redis_faults
from tests.chaos.faults import Fault, Outcome, play
from tests.chaos.verdict import Verdict

DOCS = Path(__file__).resolve().parents[2] / "docs"
FAULTS: Mapping[str, Sequence[Fault[Any]]] = {
    "redis": redis_faults.FAULTS,
    "postgresql": postgresql_faults.FAULTS,
}
HEAD = ("Fault", "Publishers", "Clients", "Everything works again", "Acknowledged and lost")
PLACE = re.compile(r"(<!-- written by tests\.chaos\.fault_table -->\n).*?(<!-- end -->)", re.DOTALL)

INSUFFICIENT_STATE = 3010


class Directories:
    """Makes directories, as pytest does for tests."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def mktemp(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=name, dir=self._root))


def row(fault: Fault[Any], outcome: Outcome) -> tuple[str, ...]:
    """Return the row of a fault in the table."""
    since = "after its end" if fault.ends else "after its beginning"
    verdict = outcome.verdict
    return (
        fault.name,
        _publishers(verdict),
        _clients(verdict),
        f"{outcome.seconds:.1f} s {since}",
        _lost(verdict),
    )


def _publishers(verdict: Verdict) -> str:
    errors = " and ".join(sorted(str(error) for error in verdict.errors)) or "no error"
    return f"{errors}; an answer takes {verdict.slowest:.1f} s at most"


def _clients(verdict: Verdict) -> str:
    codes = sorted(verdict.closes)
    if not codes:
        return "stay connected"
    text = "closed with " + " and ".join(map(str, codes))
    flags = sorted(verdict.recovered)
    return f"{text}, then `recovered: {' or '.join(str(flag).lower() for flag in flags)}`"


def _lost(verdict: Verdict) -> str:
    if verdict.complaints:
        return f"PROMISE BROKEN: {verdict.complaints[0]}"
    if not verdict.forgotten and not verdict.missed:
        return "nothing"
    return (
        f"of {verdict.acknowledged}, history lost {verdict.forgotten}; some clients missed"
        f" {verdict.missed}, and were told"
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the table in Markdown."""
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(engine: str, *words: str) -> int:
    """Play the faults with these words in their names; none: all of them, and write the page."""
    chosen = [fault for fault in FAULTS[engine] if all(word in fault.name for word in words)]
    rows = []
    is_broken = False
    with tempfile.TemporaryDirectory() as root:
        factory = cast(pytest.TempPathFactory, Directories(Path(root)))
        for fault in chosen:
            outcome = asyncio.run(play(fault, factory))
            is_broken |= bool(outcome.verdict.complaints)
            rows.append(row(fault, outcome))
            print(" | ".join(rows[-1]), flush=True)  # noqa: T201
            for line in outcome.verdict.complaints:
                print(f"    {line}", flush=True)  # noqa: T201
    if not words and not is_broken:
        page = DOCS / f"{engine}.md"
        text = page.read_text()
        page.write_text(PLACE.sub(lambda found: found[1] + table(rows) + found[2], text))
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
