"""Which module may import what: the shape of the code, held by tests.

The rings, from the inside out: the pure ring (no loop, no I/O, no Django); what runs on the
event loop; clients and commands; transports; Django's side; and the apps around it.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent

PURE = (
    "realtime.protocol",
    "realtime.payload",
    "realtime.errors",
    "realtime.options",
    "realtime.origin",
    "realtime.options_reader",
    "realtime.redis_options",
    "realtime.channel",
    "realtime.permissions",
    "realtime.recovery",
    "realtime.session",
    "realtime.control",
    "realtime.follower",
    "realtime.survey",
    "realtime.tally",
    "realtime.engine.base",
    "realtime.engine.epochs",
    "realtime.engine.keys",
    "realtime.engine.records",
)
CORE = (
    "realtime.member",
    "realtime.node",
    "realtime.peers",
    "realtime.post",
    "realtime.upkeep",
    "realtime.respondent",
    "realtime.subscriptions",
    "realtime.hub",
    "realtime.outbox",
    "realtime.timers",
    "realtime.following",
    "realtime.engine",
    "realtime.layer",
    "realtime.redis",
)
APPS = ("api", "admin_panel")
PACKAGES = ("realtime", *APPS, "messaging_project")

DJANGO_SIDE = (
    "realtime.conf",
    "realtime.checks",
    "realtime.apps",
    "realtime.asgi",
    "realtime.commits",
    "realtime.console",
    "realtime.hooks.events",
    "realtime.hooks.login",
    "realtime.hooks.requests",
    "realtime.hooks.running",
    "realtime.logins",
    "realtime.management",
    "realtime.pages",
    "realtime.signals",
    "realtime.templatetags",
    "realtime.testing",
    "realtime.tokens.site",
    "realtime.urls",
    "realtime.views",
)

DAPHNE = tuple(
    f"realtime.transports.{path.stem}"
    for path in sorted((ROOT / "realtime" / "transports").glob("daphne*.py"))
)
"""transports/daphne*.py."""


class Import(NamedTuple):
    """One imported module, as one module imports it."""

    by: str
    name: str
    runtime: bool
    """False under TYPE_CHECKING."""
    relative: bool

    def __str__(self) -> str:
        return f"{self.by} imports {self.name}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert found, packages
    return found


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def statements(node: ast.AST, runtime: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import statement below a node, also inside functions, and whether it is run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, runtime
        elif isinstance(child, ast.If) and is_type_checking(child.test):
            for part in child.body:
                yield from statements(ast.Module([part], []), False)
            for part in child.orelse:
                yield from statements(ast.Module([part], []), runtime)
        else:
            yield from statements(child, runtime)


def imports_of(path: Path) -> Iterator[Import]:
    """What a file imports; `from a import b` counts as `a` or as module `a.b`."""
    by = module_name(path)
    package = by if path.name == "__init__.py" else by.rpartition(".")[0]
    for statement, runtime in statements(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield Import(by, alias.name, runtime, False)
            continue
        assert isinstance(statement, ast.ImportFrom)
        base = statement.module or ""
        if statement.level:
            parents = package.split(".")[: len(package.split(".")) - statement.level + 1]
            base = ".".join([*parents, base]).rstrip(".")
        for alias in statement.names:
            full = f"{base}.{alias.name}"
            exists = (ROOT / Path(*full.split("."))).with_suffix(".py").exists() or (
                ROOT / Path(*full.split(".")) / "__init__.py"
            ).exists()
            yield Import(by, full if exists else base, runtime, bool(statement.level))


def within(name: str, *places: str) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def imports(*packages: str) -> list[Import]:
    found = [found for path in files(*packages) for found in imports_of(path)]
    assert found
    return found


IN_REALTIME = imports("realtime")


def test_pure_ring_is_there() -> None:
    names = {module_name(path) for path in files("realtime")}

    assert set(PURE) <= names


def test_pure_ring_imports_only_itself_and_what_has_no_io() -> None:
    allowed = (*PURE, "msgspec", "google.protobuf", *sys.stdlib_module_names)
    wrong = [
        str(found)
        for found in IN_REALTIME
        if within(found.by, *PURE)
        and (not within(found.name, *allowed) or within(found.name, "asyncio", "threading"))
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("library", "places"),
    [
        ("channels", ("realtime.transports", "realtime.layer")),
        ("channels_redis", ("realtime.layer",)),
        ("redis", ("realtime.redis",)),
        ("hiredis", ("realtime.redis",)),
        ("django", DJANGO_SIDE),
        ("rest_framework", ()),
        ("daphne", DAPHNE),
        ("autobahn", DAPHNE),
        ("twisted", DAPHNE),
    ],
)
def test_library_is_imported_only_where_it_belongs(library: str, places: tuple[str, ...]) -> None:
    importers = [found for found in IN_REALTIME if within(found.name, library)]

    if library in ("channels", "channels_redis", "django", "redis", "hiredis"):
        assert importers
    assert [str(found) for found in importers if not within(found.by, *places)] == []


def test_environment_is_read_in_one_place() -> None:
    readers = {
        module_name(path)
        for path in files("realtime")
        for node in ast.walk(ast.parse(path.read_text()))
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node) in ("os.environ", "os.getenv", "os.environb", "os.putenv")
        )
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {alias.name for alias in node.names} & {"environ", "getenv", "environb"}
        )
    }

    assert readers == {"realtime.conf"}


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("realtime.follower", ("realtime.protocol", "realtime.recovery")),
        ("realtime.redis", ("realtime.errors",)),
        ("realtime.layer", ("realtime.redis", "realtime.engine.epochs", "realtime.engine.scripts")),
    ],
)
def test_module_knows_no_more_of_the_service(module: str, allowed: tuple[str, ...]) -> None:
    known = [
        found
        for found in IN_REALTIME
        if within(found.by, module) and within(found.name, "realtime")
    ]

    assert known
    assert [str(found) for found in known if not within(found.name, module, *allowed)] == []


def test_configuration_in_force_is_read_at_the_rim() -> None:
    readers = {found.by for found in IN_REALTIME if within(found.name, "realtime.conf")}

    rim = ("realtime.serving", "realtime.engines", *DJANGO_SIDE)
    assert sorted(reader for reader in readers if not within(reader, *rim)) == []


def test_only_whoever_finds_the_engine_knows_all_of_them() -> None:
    engines = ("realtime.engine.redis", "realtime.engine.redis_store")
    choosers = {found.by for found in IN_REALTIME if within(found.name, *engines)}

    assert choosers - set(engines) == {"realtime.engines"}


def test_of_the_hooks_the_service_knows_the_contract_only() -> None:
    inside = (*CORE, "realtime.client", "realtime.commands", "realtime.transports")
    known = {
        found.name
        for found in IN_REALTIME
        if within(found.by, *inside) and within(found.name, "realtime.hooks")
    }

    assert known == {"realtime.hooks.base"}


def test_core_does_not_know_who_uses_it() -> None:
    above = (
        "realtime.client",
        "realtime.commands",
        "realtime.transports",
        "realtime.service",
        "realtime.overview",
        "realtime.serving",
        "realtime.engines",
        "realtime.asgi",
    )
    wrong = [
        str(found)
        for found in IN_REALTIME
        if within(found.by, *CORE) and within(found.name, *above)
    ]

    assert wrong == []


def test_commands_know_the_client_by_its_type_only() -> None:
    known = [
        found
        for found in IN_REALTIME
        if within(found.by, "realtime.commands") and within(found.name, "realtime.client")
    ]

    assert known
    assert [str(found) for found in known if found.runtime] == []


@pytest.mark.parametrize("package", ["realtime", *APPS])
def test_packages_do_not_import_what_stands_around_them(package: str) -> None:
    others = [other for other in PACKAGES if other not in (package, "realtime")]
    wrong = [
        str(found)
        for found in imports(package)
        if within(found.name, *others) and not (found.relative and within(found.name, package))
    ]

    assert wrong == []


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


LOAD = """
import importlib, json, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_of_the_pure_ring() -> list[str]:
    names = [module_name(path) for path in files("realtime")]
    return [name for name in names if within(name, *PURE)]


def test_pure_ring_loads_in_a_bare_interpreter() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}

    output = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps(modules_of_the_pure_ring())],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout

    loaded = {name.partition(".")[0] for name in json.loads(output)}
    assert "realtime" in loaded
    assert not loaded & {"django", "channels", "rest_framework", "daphne", "twisted", "asyncio"}
