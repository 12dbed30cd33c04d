"""Which room of the house may import which: the shape of the code, held by tests."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from tests.imports import ROOT, circles, files, graph_of, imports, module_name, tree_of, within
from tests.rooms import DJANGO_SIDE, PURE, ROOMS_OF_APPS
from tests.sizes import lines_of_code

ROOMS = (
    # Django's places and the tools around the service
    "realtime.__main__",
    "realtime.apps",
    "realtime.management",
    "realtime.tools",
    "realtime.checks",
    "realtime.testing",
    "realtime.templatetags",
    "realtime.urls",
    "realtime.views",
    # optional apps: a site adds them, and nothing imports them
    "realtime.database",
    "realtime.pending",
    "realtime.online",
    "realtime.live",
    "realtime.answers",
    "realtime.debug",
    "realtime.pages",
    # the doors, and what stands behind them
    "realtime.asgi",
    "realtime.layer",
    "realtime.logout",
    "realtime",
    "realtime.typed",
    "realtime.tokens",
    "realtime.monitoring",
    # the trip of a message: clients come in at the top, publishers and the site below them
    "realtime.transports.sockjs",
    "realtime.transports.streaming",
    "realtime.transports.emulation",
    "realtime.transports.websocket",
    "realtime.transports.servers",
    "realtime.transports",
    "realtime.clients.dispatch",
    "realtime.clients.commands",
    "realtime.operators.explaining",
    "realtime.clients",
    "realtime.server_api.maps",
    "realtime.server_api.queries",
    "realtime.server_api.listening",
    "realtime.server_api.blocks",
    "realtime.server_api.connecting",
    "realtime.server_api.publishing",
    "realtime.server_api.connections",
    "realtime.operators.following",
    "realtime.serving",
    # outside of the core
    "realtime.operators",
    "realtime.server_api",
    "realtime.hooks",
    "realtime.proxy",
    "realtime.signals",
    "realtime.node",
    "realtime.cluster",
    "realtime.streams",
    "realtime.engine.factory",
    "realtime.engine.redis",
    "realtime.engine.postgresql",
    "realtime.engine",
    "realtime.config.error_reports",
    "realtime.config.sources",
    "realtime.config.site_databases",
    "realtime.redis",
    "realtime.auth",
    "realtime.channel_rules",
    "realtime.protocol.negotiation",
    "realtime.protocol.v1",
    "realtime.protocol.v2",
    "realtime.protocol",
    # the ground
    "realtime.config",
    "realtime.payload",
    "realtime.errors",
    "realtime.timers",
    "realtime.tracing",
    "realtime.logs",
    "realtime.metrics",
    "realtime.__version__",
)
"""From the top of the house to the ground: a room imports only rooms below it.

A module belongs to the longest of these names that it begins with.
"""

WALLS = {
    "realtime.operators": ("realtime.serving", "realtime.tools", "admin_panel"),
    "realtime.tools": ("realtime.management.commands.realtime",),
    "realtime.testing": (),
    "realtime.database": (),
    "realtime.pending": (),
    "realtime.online": (),
    "realtime.live": (),
    "realtime.answers": (),
    "realtime.debug": (),
}
"""Room behind a wall → who may import it: the composition root, tools of operators, the panel."""

LAYER = "realtime.engine.redis.layer"
OPENING = "realtime.engine.redis.opening"
OPENINGS = (OPENING, "realtime.engine.postgresql.opening")

MODULES_AT_THE_ROOT = 17
LINES = 400
LINES_AT_MOST = 600
LONGER = {
    "realtime/asgi.py": "one class: the application in front of the site",
    "realtime/clients/checks.py": "one table: what a command of a client must pass",
    "realtime/clients/session.py": "one class: the state of a client",
    "realtime/clients/subscriptions.py": "one class: a client's subscriptions, and its block",
    "realtime/config/options.py": "one table: the options",
    "realtime/node/feed.py": "one class: the subscribers of a channel",
    "realtime/engine/memory.py": "one engine: nothing in it has another user",
    "realtime/server_api/operations.py": "one table: the rules of each method",
    "realtime/serving.py": "one class: the service in this process",
    "tests/simulation/clients.py": "one class: a client",
    "tests/simulation/redis_database.py": "one class: the commands of Redis",
    "tests/simulation/scenario.py": "one class: the service of one run",
}
"""Files with more than `LINES`, and the one class or table that is the reason."""

LINES_OF_AN_APP = 800
"""Without migrations, and without comments, docstrings and blank lines."""

OPTIONAL_APPS = tuple(
    f"realtime.{app}" for app in ("database", "pending", "online", "live", "answers", "debug")
)
TYPED = "realtime.typed"
TYPED_IS_IMPORTED_BY = ("realtime.tools.typed",)
"""And by the package itself, which loads it where a site declares a typed channel."""

APPS = ("api", "admin_panel")
PACKAGES = ("realtime", *APPS, "messaging_project")

PANEL_ASKS = tuple(f"admin_panel.{name}" for name in ("service", "people", "commands", "engine"))
"""The modules of the panel that know the service: all of it, users, the server API, the engine."""

PANEL_MAY_IMPORT = (
    "realtime.config",
    "realtime.channel_rules",
    "realtime.errors",
    "realtime.payload",
)
"""What the panel may import of the service past its own `service`: options, names and values."""

DAPHNE = (
    "realtime.transports.servers.daphne",
    "realtime.transports.servers.daphne_api",
    "realtime.transports.servers.daphne_channel",
    "realtime.transports.servers.daphne_install",
    "realtime.transports.servers.daphne_protocol",
    "realtime.transports.servers.daphne_request",
    "realtime.transports.servers.launch",
    "realtime.transports.servers.worker",
)


def room_of(module: str) -> str:
    return max((room for room in ROOMS if within(module, room)), key=len)


def is_door(module: str) -> bool:
    """Whether it is the package itself, which hands on names."""
    return module == "realtime"


def test_every_module_has_a_room() -> None:
    lost = [
        name
        for name in map(module_name, files("realtime"))
        if room_of(name) == "realtime" and not is_door(name)
    ]

    assert lost == []


def test_rooms_import_only_rooms_below_them() -> None:
    upward = [
        str(found)
        for found in imports("realtime")
        if within(found.name, "realtime")
        and ROOMS.index(room_of(found.name)) < ROOMS.index(room_of(found.by))
    ]

    assert upward == []


def test_pure_modules_are_there() -> None:
    names = {module_name(path) for path in files("realtime")}

    assert set(PURE) <= names


def test_pure_modules_import_only_each_other_and_what_has_no_io() -> None:
    parsers = ("msgspec", "re2", "google.protobuf", "psycopg.conninfo", "psycopg.errors")
    allowed = (*PURE, *parsers, *sys.stdlib_module_names)
    wrong = [
        str(found)
        for found in imports("realtime")
        if within(found.by, *PURE)
        and (not within(found.name, *allowed) or within(found.name, "asyncio", "threading"))
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("library", "places"),
    [
        ("channels", ("realtime.transports", OPENING, LAYER)),
        ("channels_redis", (LAYER,)),
        ("redis", ("realtime.redis",)),
        ("hiredis", ("realtime.redis",)),
        ("psycopg", ("realtime.engine.postgresql", "realtime.config.database_options")),
        ("django", DJANGO_SIDE),
        ("rest_framework", ("realtime.typed.serializers",)),
        ("pydantic", ("realtime.typed.models",)),
        ("debug_toolbar", ("realtime.debug",)),
        ("daphne", DAPHNE),
        ("autobahn", DAPHNE),
        ("twisted", DAPHNE),
    ],
)
def test_library_is_imported_only_where_it_belongs(library: str, places: tuple[str, ...]) -> None:
    importers = [found for found in imports("realtime") if within(found.name, library)]

    if library in ("channels", "channels_redis", "django", "redis", "hiredis"):
        assert importers
    assert [str(found) for found in importers if not within(found.by, *places)] == []


def test_environment_is_read_in_one_place() -> None:
    readers = {
        module_name(path)
        for path in files("realtime")
        for node in ast.walk(tree_of(path))
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("environ", "getenv", "environb", "putenv")
            and ast.unparse(node).startswith("os.")
        )
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {alias.name for alias in node.names} & {"environ", "getenv", "environb"}
        )
    }

    # that one is a script, which runs the manage.py of a site
    assert readers == {"realtime.config.sources", "realtime.tools.init.probe"}


def test_configuration_in_force_is_read_at_the_rim() -> None:
    readers = {
        found.by for found in imports("realtime") if within(found.name, "realtime.config.sources")
    }

    rim = ("realtime.serving", *OPENINGS, *DJANGO_SIDE)
    assert sorted(reader for reader in readers if not within(reader, *rim)) == []


def test_only_the_factory_knows_all_engines() -> None:
    choosers = {found.by for found in imports("realtime") if within(found.name, *OPENINGS)}

    assert choosers == {"realtime.engine.factory"}


@pytest.mark.parametrize("package", ["realtime", *APPS])
def test_packages_do_not_import_what_stands_around_them(package: str) -> None:
    others = [other for other in PACKAGES if other not in (package, "realtime")]
    wrong = [
        str(found)
        for found in imports(package)
        if within(found.name, *others) and not (found.relative and within(found.name, package))
    ]

    assert wrong == []


@pytest.mark.parametrize("room", WALLS)
def test_room_behind_a_wall_is_imported_where_it_may_be(room: str) -> None:
    importers = [
        str(found)
        for found in imports(*PACKAGES)
        if within(found.name, room) and not within(found.by, room, *WALLS[room])
    ]

    assert importers == []


def test_typed_channels_are_loaded_where_a_site_declares_them() -> None:
    importers = {
        found.by
        for found in [*imports("realtime"), *imports(*APPS)]
        if within(found.name, TYPED)
        and not within(found.by, TYPED, *TYPED_IS_IMPORTED_BY)
        and not (is_door(found.by) and not found.runtime)
    }

    assert importers == set()


@pytest.mark.parametrize("app", [*OPTIONAL_APPS, *ROOMS_OF_APPS, TYPED])
def test_optional_apps_stay_small(app: str) -> None:
    below = [room for room in ROOMS_OF_APPS if room != app and within(room, app)]
    lines = sum(
        lines_of_code(path)
        for path in files("realtime")
        if within(module_name(path), app)
        and "migrations" not in path.parts
        and not within(module_name(path), *below)
    )

    assert 0 < lines <= LINES_OF_AN_APP


def test_panel_reaches_the_service_and_its_redis_through_few_modules() -> None:
    past_it = {
        (found.by, found.name)
        for found in imports("admin_panel")
        if within(found.name, "realtime")
        and found.by not in PANEL_ASKS
        and not within(found.name, *PANEL_MAY_IMPORT)
        and found.name != "realtime"  # what any site may call
    }

    # /admin/api answers as /api does, and clients have one address everywhere
    assert past_it == {
        ("admin_panel.standalone.api", "realtime.server_api.http"),
        ("admin_panel.standalone.limiter", "realtime.transports.handshake"),
    }


@pytest.mark.parametrize("package", APPS)
def test_apps_import_themselves_relatively(package: str) -> None:
    wrong = [
        str(found)
        for found in imports(package)
        if within(found.name, package) and not found.relative
    ]

    assert wrong == []


@pytest.mark.parametrize("package", [*APPS, "messaging_project"])
def test_nobody_imports_the_tests(package: str) -> None:
    assert [
        str(found) for found in imports(package, "realtime") if within(found.name, "tests")
    ] == []


def test_test_modules_import_nothing_from_each_other() -> None:
    """What several of them need is in a module of parts beside them."""
    pattern = re.compile(r"^ *from tests\.(?:\w+\.)*test_\w+ import", re.MULTILINE)

    assert [path.name for path in files("tests") if pattern.search(path.read_text())] == []


def test_files_import_each_other_in_no_circle() -> None:
    graph = graph_of([*imports("realtime"), *imports(*APPS)])

    assert circles(graph) == []


def test_root_of_the_package_stays_small() -> None:
    modules = [path.name for path in (ROOT / "realtime").glob("*.py")]

    assert len(modules) <= MODULES_AT_THE_ROOT, sorted(modules)


def test_files_stay_short_enough_to_read() -> None:
    lengths = {
        path.relative_to(ROOT): len(path.read_text().splitlines())
        for path in files(*PACKAGES, "benchmarks", "docs", "tests")
        if not path.name.endswith("_pb2.py")
    }

    too_long = {
        path: length
        for path, length in lengths.items()
        if length > (LINES_AT_MOST if str(path) in LONGER else LINES)
    }
    assert too_long == {}
