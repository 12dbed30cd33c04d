"""`python -m benchmarks`: measure, compare, report."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from benchmarks import machine, processes, report
from benchmarks.cells import Setup, has_socketio
from benchmarks.measures import cluster, fanout, generations, many, requests
from benchmarks.measures.run import Run
from benchmarks.processes import Process, Unavailable

MEASURES = (
    "fanout",
    "latency",
    "memory",
    "growth",
    "connections",
    "commands",
    "http",
    "generations",
    "cluster",
)
LEAST_OPEN_FILES = 10_500


def main() -> int:
    """Run what the command line asks for; the status says only whether it could run."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if machine.raise_open_files() < LEAST_OPEN_FILES:
        sys.stderr.write(f"benchmarks: 'ulimit -n' below {LEAST_OPEN_FILES}\n")
        return 2
    try:
        loader = processes.compiled("load")
    except Unavailable as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        return 2
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        redis_program, redis = _redis(stack, notes)
        node = _node(notes)
        if not has_socketio():
            notes.append("python-socketio: not installed")
        setup = Setup(options.tree.resolve(), redis, node, options.launcher)
        facts = machine.facts(setup.tree, redis_program, node)
        facts["rounds"] = f"{options.rounds} of {options.seconds:g} s"
        facts["daphne is started with"] = "python -m realtime" if options.launcher else "daphne"
        run = Run(setup, loader, options.rounds, options.seconds)
        for note in notes:
            run.results.note(note)
        only = frozenset(options.only)
        with contextlib.suppress(KeyboardInterrupt):  # what is there is reported
            if only & {"fanout", "latency", "memory", "growth"}:
                fanout.run(run, only)
            if only & {"connections", "commands", "http"}:
                requests.run(run, only)
            if only & {"memory", "growth"}:
                many.run(run, only)
            if "generations" in only:
                generations.run(run)
            if "cluster" in only and redis is not None:
                cluster.run(run)
        run.say("done")
    sys.stdout.write(report.text(run.results, facts))
    if options.json:
        options.json.write_text(json.dumps(report.data(run.results, facts), indent=1) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="samples of every cell")
    parser.add_argument("--seconds", type=float, default=0.8, help="length of one sample")
    parser.add_argument("--only", type=_measures, default=MEASURES, help=",".join(MEASURES))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument(
        "--tree",
        type=Path,
        default=Path(os.environ.get("BENCH_TREE", processes.HERE.parent)),
        help="the repository to measure; default: $BENCH_TREE, or the one of this suite",
    )
    parser.add_argument(
        "--plain-daphne",
        dest="launcher",
        action="store_false",
        help="start the service with daphne's own command line, not with 'python -m realtime'",
    )
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds are positive")
    if not (options.tree / "realtime").is_dir():
        parser.error(f"{options.tree} has no package 'realtime'")
    return options


def _measures(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in MEASURES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(MEASURES)}")
    return names


def _redis(stack: contextlib.ExitStack, notes: list[str]) -> tuple[str | None, Process | None]:
    """The Redis program and a server of our own; None without one."""
    try:
        program = processes.redis_program()
        return program, processes.start_redis(stack, program)
    except Unavailable as error:
        notes.append(f"Channels pubsub, cluster: {error}")
        return None, None


def _node(notes: list[str]) -> str | None:
    try:
        return processes.node_program()
    except Unavailable as error:
        notes.append(f"ws, socket.io: {error}")
        return None


if __name__ == "__main__":
    sys.exit(main())
