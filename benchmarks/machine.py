"""Facts about the machine, and what its hypervisor takes away."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_PACKAGES = (
    "Django",
    "djangorestframework",
    "channels",
    "channels-redis",
    "redis",
    "hiredis",
    "daphne",
    "Twisted",
    "autobahn",
    "uvicorn",
    "uvloop",
    "httptools",
    "websockets",
    "msgspec",
    "python-socketio",
)


def facts(tree: Path, redis: str | None, node: str | None) -> dict[str, str]:
    """Name → value, for the head of the report."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    versions = []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} -")
    found = {
        "CPU": f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores",
        "kernel": platform.release(),
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "tree": f"{tree} {_commit(tree)}",
        "Python": sys.version.split()[0],
        "packages": ", ".join(versions),
    }
    if redis is not None:
        found["Redis"] = _first_line(redis, "--version")
    if node is not None:
        found["Node"] = _first_line(node, "--version")
    return found


def raise_open_files() -> int:
    """Allow as many open files as the system lets us; returns how many those are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Usage(NamedTuple):
    """Seconds of all cores together, since the machine started."""

    busy: float
    steal: float
    """Taken by the hypervisor."""


def usage() -> Usage:
    """What the machine has done so far."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    ticks = os.sysconf("SC_CLK_TCK")
    return Usage((user + nice + system + irq + softirq) / ticks, steal / ticks)


def _commit(tree: Path) -> str:
    line = _first_line("git", "-C", str(tree), "describe", "--always", "--dirty")
    return f"({line})" if line else ""


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]
