"""Node processes that run the published JavaScript client."""

from __future__ import annotations

import subprocess
import tempfile

from tests.conftest import require
from tests.js_builds import DIRECTORY, require_packages

TIMEOUT = 60.0


def find_node() -> str:
    """Return the path of Node, on a machine that has the published client as well."""
    path = require("node", "the JavaScript client needs Node.js 18 or later")
    require_packages()
    return path


class NodeProcess:
    """A Node process that holds clients, each conversation its own."""

    def __init__(self, node: str, *, as_in_browsers: bool) -> None:
        """`node`: the path of the executable."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # `stop` closes it
        self._process = subprocess.Popen(
            [
                node,
                str(DIRECTORY / "driver.mjs"),
                *(["--as-in-browsers"] if as_in_browsers else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        assert self._process.stdout is not None
        announced = self._process.stdout.readline()
        assert announced, self.failure()
        self.port = int(announced)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def failure(self) -> str:
        """Return what the process wrote at its end."""
        status = self._process.wait(TIMEOUT)
        self._errors.seek(0)
        return f"Node ended with status {status}:\n{self._errors.read().decode()}"

    def stop(self) -> None:
        self._process.communicate(timeout=TIMEOUT)  # it ends with its stdin
        self._errors.close()


class Nodes:
    """The Node processes of a test worker, started when they are needed."""

    def __init__(self) -> None:
        self._running: dict[bool, NodeProcess] = {}

    def find(self, node: str, *, as_in_browsers: bool) -> NodeProcess:
        """Return a process that runs; one that ended, and failed its test by that, is replaced."""
        found = self._running.get(as_in_browsers)
        if found is None or not found.runs:
            if found is not None:
                found.stop()
            found = NodeProcess(node, as_in_browsers=as_in_browsers)
            self._running[as_in_browsers] = found
        return found

    def stop(self) -> None:
        for process in self._running.values():
            process.stop()
