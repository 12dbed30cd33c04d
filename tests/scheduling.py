"""How `--dist loadfile` shares the files out: the longest first, and some together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parent.parent

BROWSER = "tests/live/browser/"
TOGETHER = ("tests/install/", "tests/live/panel/", "tests/live/client_module/", BROWSER)
"""Directories whose files share what takes long to make: installed sites, a site with its staff,
browsers. They are made once, in one worker."""

WITH_BROWSER = (
    "tests/live/examples/test_examples_browser.py",
    "tests/live/sockjs/test_sockjs_browser.py",
    "tests/live/streaming/test_events_pages.py",
    "tests/live/streaming/test_stream_browser.py",
)
"""Files of other directories that share the browser of `tests/live/browser/`."""

LIVE = "tests/live/"
"""Where tests share servers: it comes before the tests that are quick."""

LONGEST = (
    "tests/live/panel/",
    "tests/install/",
    "tests/live/client_module/",
    "tests/live/browser/",
    "tests/pending/test_pending_servers.py",
    "tests/live/servers/test_workers.py",
    "tests/live/servers/test_door.py",
    "tests/live/streaming/test_stream_outages.py",
    "tests/chaos/test_redis.py",
    "tests/live/api/test_generated_client.py",
    "tests/live/sockjs/test_sockjs_churn.py",
    "tests/live/redis/test_redis_away_serving.py",
    "tests/live/js_client/test_js_client_connection.py",
    "tests/live/tools/test_run.py",
    "tests/live/protocol/test_clients_that_do_not_read.py",
    "tests/live/redis/test_redis_away.py",
    "tests/chaos/test_servers.py",
    "tests/simulation/test_simulation.py",
    "tests/live/redis/test_redis_processes.py",
    "tests/chaos/test_versions.py",
    "tests/live/js_client/test_js_client_channels.py",
    "tests/live/js_client/test_js_client_private.py",
    "tests/live/sockjs/test_sockjs_cluster_ends.py",
    "tests/testing/test_plugin.py",
    "tests/live/servers/test_servers.py",
    "tests/live/servers/test_asgi.py",
    "tests/live/tools/test_doctor.py",
    "tests/live_pages/test_viewers.py",
    "tests/live/streaming/test_unidirectional.py",
    "tests/live/streaming/test_stream_messages.py",
    "tests/live/redis/test_cluster_survey.py",
    "tests/redis/test_interrupted.py",
    "tests/live/redis/test_cluster_nodes.py",
    "tests/live/redis/test_cluster_churn.py",
    "tests/live/redis/test_cluster_shutdown.py",
    "tests/live/tools/test_tail.py",
    "tests/live/redis/test_cluster_redis.py",
    "tests/live/redis/test_page_race.py",
    "tests/pending/test_databases.py",
    "tests/unit/tools/test_init.py",
    "tests/unit/clients/test_client_memory.py",
)
"""Files, and directories of `TOGETHER`, that take longest, in the order in which they begin.

A file that begins last and takes long is one for which all other workers wait. The other files
follow by the number of their tests, as xdist has it.
"""


class Collection(list[str]):
    """The IDs of all tests, which knows where each of them is: there are many."""

    def __init__(self, tests: Iterable[str]) -> None:
        super().__init__(tests)
        self._places = {test: place for place, test in enumerate(self)}

    def index(self, test: str, *_: Any) -> int:
        return self._places[test]


class Scheduling(LoadFileScheduling):
    """Gives whole files to workers that have little left to do.

    After the longest, a worker gets files of one directory as long as it has some: they ask for the
    same servers, which the worker keeps.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._rooms: dict[WorkerController, str] = {}
        """Worker → the directory of the file that it was given last."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file in WITH_BROWSER:
            return BROWSER
        return next((place for place in TOGETHER if file.startswith(place)), file)

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Collection(collection)

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = self._next_file(node)
        self._rooms[node] = room_of(file)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_file(self, node: WorkerController) -> str:
        """Choose one of the files that are left."""
        for file in LONGEST:
            if file in self.workqueue:
                return file
        left = sorted(self.workqueue, key=lambda file: not file.startswith(LIVE))
        elsewhere = {room for worker, room in self._rooms.items() if worker is not node}
        own = self._rooms.get(node)
        for file in left:
            if room_of(file) == own:
                return file
        return next((file for file in left if room_of(file) not in elsewhere), left[0])


def room_of(file: str) -> str:
    """Return the directory of a file of tests."""
    return file.rpartition("/")[0]


def check_names() -> None:
    """Refuse the name of a file that is no more.

    Raises:
        pytest.UsageError: there is one.
    """
    if gone := [name for name in (*LONGEST, *WITH_BROWSER) if not (ROOT / name).exists()]:
        raise pytest.UsageError(f"tests/scheduling.py names what is not there: {gone[0]}")
