"""Mutants: plant one fault at a time, and play seeds until one fails.

    python -m tests.simulation.mutants realtime/streams/order.py --steps 2000000

Each mutation gets a process of its own, in which it is planted in memory: no file changes. Seeds
come first that found others, or reach the spot often in few steps. A mutation is found if a seed
breaks a promise, raises, or takes many times as long as it should. The budget counts steps of the
world, and no seconds: a busy machine finds the same. Whoever survives is judged too mildly, or
breaks nothing: then `equivalent.toml` says why. The exit status is 1 if one survived that is not
named there.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.simulation.mutations import Mutation, mutations, note_lines
from tests.simulation.runs import begin

FILES = (
    "realtime/streams/order.py",
    "realtime/streams/recovery.py",
    "realtime/streams/follower.py",
    "realtime/streams/reading.py",
    "realtime/streams/retries.py",
    "realtime/node/feed.py",
    "realtime/node/subscriptions.py",
    "realtime/engine/redis/broker.py",
    "realtime/engine/redis/lua/append.lua",
    "realtime/engine/redis/lua/read.lua",
    "realtime/engine/redis/lua/renew_epoch.lua",
    "realtime/engine/redis/lua/seal.lua",
    "realtime/engine/redis/lua/send_once.lua",
    "realtime/engine/redis/lua/claim.lua",
    "realtime/transports/emulation/owning_node.py",
    "realtime/transports/emulation/sessions.py",
    "realtime/pending/relay.py",
    "realtime/pending/reading.py",
    "realtime/pending/shards.py",
    "realtime/pending/retries.py",
)
RELAYS = "realtime/pending/"
"""Faults of these files show where there are relays: each seed has some."""
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
COSTLY = 300
"""Deliveries a second from which on a plan is left out: others find more in the same time."""
EQUAL, ELSEWHERE = "equal", "elsewhere"
"""Why a mutation is left out: it breaks no promise, or the simulation has no scene of it."""
STEPS = 2_000_000
"""Steps of worlds in which a mutation has to be found."""
MEASURED = 40
"""Seeds that are played without a fault, to know how long they take."""
PATIENCE = 10
"""A seed that takes so many times as long, and `SLACK` seconds of CPU, hangs."""
SLACK = 5.0


class Found(NamedTuple):
    """What became of a mutation."""

    seed: int | None
    """The one that found it; None if it survived."""
    why: str


def main() -> int:
    """Run what the command line says; return the exit status."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # as in `__main__`
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.mutants", *sys.argv[1:]])
    arguments = _arguments()
    begin()
    gc.unfreeze()  # a process begun by a fork has frozen objects: `mutations` would miss them
    planted = [each for file in arguments.files or FILES for each in mutations(file)]
    excluded, stale = _excluded(planted)
    planted = [each for each in planted if arguments.only in f"{each.function}: {each.change}"]
    if arguments.count is not None and arguments.count < len(planted):
        planted = _drawn(planted, arguments.count, arguments.first)
    files = {mutation.file for mutation in planted if mutation not in excluded or arguments.all}
    import tests.simulation.scenario  # noqa: F401  # all scripts are loaded

    executed: Counter[tuple[str, int]] = Counter()
    note_lines(FILES, executed)
    seeds = {
        relays: Seeds(arguments.first, arguments.measured, relays, executed)
        for relays in {_relays(file) for file in files}
    }
    counts: Counter[str] = Counter()
    for mutation in planted:
        if mutation in excluded and not arguments.all:
            counts[excluded[mutation]] += 1
            continue
        found = find(mutation, seeds[_relays(mutation.file)], arguments.steps)
        verdict = "survived" if found.seed is None else "found"
        counts[verdict] += 1
        where = f"{mutation.file}:{mutation.line} {mutation.function}: {mutation.change}"
        print(f"{verdict:8} {where} | {found.why}", flush=True)
    for text in stale:
        print(f"no such mutation: {text}")
    total = counts["found"] + counts["survived"]
    print(
        f"{counts['found']} of {total} found, {100 * counts['found'] / max(1, total):.1f} %;"
        f" {counts[EQUAL]} excluded as equivalent, {counts[ELSEWHERE]} as left to other tests"
    )
    return int(bool(counts["survived"] or stale))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: streams, feeds, Redis")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"for each; default {STEPS}")
    parser.add_argument("--first", type=int, default=1, help="the first seed; default 1")
    parser.add_argument("--measured", type=int, default=MEASURED, help="seeds to begin with")
    parser.add_argument("--only", default="", metavar="TEXT", help="functions or changes with it")
    parser.add_argument("--count", type=int, help="plant only so many, which `--first` draws")
    parser.add_argument("--all", action="store_true", help="plant equivalent ones, too")
    return parser.parse_args()


def _drawn(planted: Sequence[Mutation], count: int, draw: int) -> list[Mutation]:
    """Return some mutations, each drawn by its own name: another file's change draws the same."""
    equal: Counter[str] = Counter()

    def number(mutation: Mutation) -> bytes:
        name = f"{draw} {mutation.file} {mutation.function}: {mutation.change}"
        equal[name] += 1
        return sha256(f"{name} {equal[name]}".encode()).digest()

    return sorted(planted, key=number)[:count]


def _excluded(planted: Sequence[Mutation]) -> tuple[dict[Mutation, str], list[str]]:
    """Return the mutations that are left out, with `EQUAL` or `ELSEWHERE`, and stale entries."""
    excluded: dict[Mutation, str] = {}
    stale = []
    files = {mutation.file for mutation in planted}
    for entry in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutation", ()):
        if entry["file"] not in files:
            continue
        for change in entry["changes"]:
            named = {each for each in planted if _names(entry, change, each)}
            excluded |= dict.fromkeys(named, ELSEWHERE if "tests" in entry else EQUAL)
            if not named:
                stale.append(f"{entry['file']} {entry['function']}: {change}")
    return excluded, stale


def _names(entry: dict[str, Any], change: str, mutation: Mutation) -> bool:
    return (mutation.file, mutation.function) == (entry["file"], entry["function"]) and change in (
        "*",
        mutation.change,
    )


# seeds


def _relays(file: str) -> bool | None:
    return True if file.startswith(RELAYS) else None


class Seeds:
    """The order in which seeds are played: those that found a mutation, then quick ones."""

    def __init__(
        self, first: int, number: int, relays: bool | None, executed: Counter[tuple[str, int]]
    ) -> None:
        """Play seeds without a mutation, which must not fail. `executed`: gets files and lines."""
        from tests.simulation.scenario import plan_of, play

        self.relays = relays
        self._steps: dict[int, int] = {}
        self._reached: dict[int, Counter[tuple[str, int]]] = {}
        """How often each line of the files, by seed."""
        self._found: Counter[int] = Counter()
        self._next = first
        began = time.process_time()
        while len(self._steps) < number:
            seed, self._next = self._next, self._next + 1
            if self.is_costly(seed):
                continue
            executed.clear()
            result = play(plan_of(seed, relays=relays))
            self._reached[seed] = executed.copy()
            if result.failures:
                raise SystemExit(f"seed {seed} fails without a mutation: {result.failures[0]}")
            self._steps[seed] = result.steps
        self._most = max(self._steps.values(), default=0)
        self._pace = (time.process_time() - began) / max(1, sum(self._steps.values()))

    def is_costly(self, seed: int) -> bool:
        """Return whether many others can be played meanwhile."""
        from tests.simulation.scenario import plan_of

        plan = plan_of(seed, relays=self.relays)
        return plan.clients * plan.rate > COSTLY

    def found(self, seed: int) -> None:
        """Play a seed earlier from now on."""
        self._found[seed] += 1

    def limit(self, seed: int) -> float:
        """Return after how many seconds of CPU a seed hangs."""
        return SLACK + PATIENCE * self._pace * self._steps.get(seed, self._most)

    def of(self, mutation: Mutation) -> Iterator[int]:
        """Iterate over the seeds for a mutation; those that do not reach it are left out."""

        def yields(seed: int) -> float:
            reached = self._reached[seed][mutation.place] if seed in self._reached else 1
            return (1 + self._found[seed]) * reached**0.5 / self._steps.get(seed, self._most)

        for seed in sorted({*self._steps, *self._found}, key=yields, reverse=True):
            if seed not in self._reached or mutation.place in self._reached[seed]:
                yield seed
        seed = self._next
        while True:
            if seed not in self._found and not self.is_costly(seed):
                yield seed
            seed += 1


# one mutation


def find(mutation: Mutation, seeds: Seeds, steps: int) -> Found:
    """Play seeds with a mutation, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _play(mutation, seeds, steps, writer)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="replace") as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(child, 0)
    last, _, why = lines[-1].partition(" ")
    if os.WIFSIGNALED(status):
        why = f"seed {last} hangs, or ends with signal {os.WTERMSIG(status)}"
    elif not os.WEXITSTATUS(status):
        return Found(None, f"{len(lines)} seeds")
    seeds.found(int(last))
    return Found(int(last), why)


def _play(mutation: Mutation, seeds: Seeds, steps: int, writer: int) -> None:
    """Plant a mutation and play; say each seed, and why one fails. Does not return."""
    from tests.simulation.scenario import plan_of, play

    status, seed = 1, 0

    def say(text: str) -> None:
        os.write(writer, f"{seed} {text}\n".encode())

    def fail(text: str) -> None:
        say(f"seed {seed}: {text[:200]}".replace("\n", " "))
        os._exit(1)

    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        mutation.plant()
        for seed in seeds.of(mutation):
            if steps <= 0:
                status = 0
                break
            say("")
            signal.setitimer(signal.ITIMER_PROF, seeds.limit(seed))
            steps -= play(plan_of(seed, relays=seeds.relays), on_failure=fail).steps
    except BaseException as error:
        say(f"seed {seed} raises {error!r}"[:200].replace("\n", " "))
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
