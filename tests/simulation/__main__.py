"""Run seeds: `make simulate SECONDS=60`, or `python -m tests.simulation --seed 7` for one of them.

A seed that fails is made smaller, and its trace is printed; `--keep NAME` keeps its plan, and many
seeds are played after all kept plans. The exit status is 1 if one failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import time

from tests.simulation.kept import keep, kept_plans
from tests.simulation.runs import Played, begin, results

SHRINKING = 60.0
"""Seconds to spend on making a seed smaller that failed among many."""
TRACED = 60
"""Lines of a trace that are printed, from its end."""


def main() -> int:
    """Run what the command line says; return the exit status."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets must not differ between runs
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    begin()
    arguments = _arguments()
    if arguments.fault:
        return _find(arguments)
    if arguments.seed is not None:
        return _play_one(arguments)
    return _play_kept() or _play_many(arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for how long; default 60")
    parser.add_argument("--first", type=int, help="the first seed; default: by chance")
    parser.add_argument("--seed", type=int, help="play this seed alone, and print its trace")
    parser.add_argument("--engine", default="", help="where streams live, whatever the seed says")
    parser.add_argument(
        "--relays", action="store_true", default=None, help="with relays, whatever the seed says"
    )
    parser.add_argument("--fault", default="", help="put a known fault back, and find it")
    parser.add_argument(
        "--smaller", type=float, default=0, metavar="SECONDS", help="shrink a failure"
    )
    parser.add_argument("--keep", default="", metavar="NAME", help="keep the plan of a failure")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    return parser.parse_args()


def _find(arguments: argparse.Namespace) -> int:
    """Play seeds with a known fault until one fails."""
    from tests.simulation.known_faults import KNOWN_FAULTS
    from tests.simulation.scenario import plan_of, play
    from tests.simulation.shrink import shrink

    fault = KNOWN_FAULTS[arguments.fault]
    began = time.monotonic()
    seed = arguments.seed or arguments.first or 1

    def found(failure: str) -> None:
        print(f"found by seed {seed}: {failure}", flush=True)
        if not arguments.smaller:
            os._exit(1)  # the rest of the run shows nothing more

    with fault.put_back():
        while time.monotonic() - began < arguments.seconds:
            plan = plan_of(seed, arguments.engine or fault.engine, relays=fault.relays)
            failures = play(plan, on_failure=None if arguments.smaller else found).failures
            if failures:
                found(failures[0])
                print(f"made smaller: {shrink(plan, arguments.smaller)}")
                return 1
            seed += 1
    print("not found")
    return 0


# many seeds


def _play_many(arguments: argparse.Namespace) -> int:
    first = arguments.first
    if first is None:
        first = random.SystemRandom().randrange(10**6) * 1000
    began = time.monotonic()
    totals = dict.fromkeys(("faults", "deliveries", "published", "told"), 0)
    failed = []
    number = 0
    played = Played(first, arguments.seconds, arguments.engine, arguments.relays)
    for result in results(played, arguments.processes):
        number += 1
        for name in totals:
            totals[name] += getattr(result, name)
        if result.failures:
            failed.append(result)
            print(f"seed {result.plan.seed} failed: {result.failures[0]}", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{number} seeds from {first} on in {seconds:.0f} s: {totals['faults']:,} faults,"
        f" {totals['deliveries']:,} deliveries of {totals['published']:,} publications,"
        f" {totals['told']:,} times told to begin anew; {len(failed)} failed"
    )
    if failed:
        arguments.seed, arguments.smaller = failed[0].plan.seed, SHRINKING
        _play_one(arguments)
    return int(bool(failed))


def _play_kept() -> int:
    from tests.simulation.scenario import play

    failed = 0
    for name, plan in kept_plans():
        for failure in play(plan).failures:
            print(f"kept plan {name!r} failed: {failure}", flush=True)
            failed = 1
    return failed


# one seed


def _play_one(arguments: argparse.Namespace) -> int:
    from tests.simulation.scenario import plan_of, play
    from tests.simulation.shrink import shrink

    plan = plan_of(arguments.seed, arguments.engine, relays=arguments.relays)
    result = play(plan, traces=True)
    if result.failures and arguments.smaller:
        plan = shrink(plan, arguments.smaller)
        result = play(plan, traces=True)
    if result.failures and arguments.keep:
        keep(arguments.keep, plan)
    print(f"seed {arguments.seed}: {plan}\n")
    print("\n".join(_telling(result.trace) if arguments.smaller else result.trace[-TRACED:]))
    digest = hashlib.sha256("\n".join(result.trace).encode()).hexdigest()
    print(f"\n{len(result.trace)} steps, digest {digest[:16]}; {result.counts}")
    for failure in result.failures:
        print(f"FAILED {failure}")
    return int(bool(result.failures))


def _telling(trace: list[str]) -> list[str]:
    """Return the faults of a trace, and what came before its first failure."""
    first = next((at for at, line in enumerate(trace) if "FAILURE" in line), len(trace))
    begin = max(0, first - TRACED)
    faults = [line for line in trace[:begin] if "fault:" in line]
    return [*faults, "...", *trace[begin : first + 5]]


if __name__ == "__main__":
    sys.exit(main())
