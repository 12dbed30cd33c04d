"""The imports of this project, as a list and as a graph."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


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


def file_of(module: str) -> Path:
    """Where a module of ours would be; a package's is its `__init__.py`."""
    path = ROOT / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def files(*packages: str) -> list[Path]:
    found = [
        path
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
        if "node_modules" not in path.parts  # packages of others may have some
    ]
    assert found, packages
    return found


VERSION = "realtime.__version__"


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


def named_modules(tree: ast.AST) -> Iterator[str]:
    """The modules that code imports by `import_module` and their names."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] == "import_module"
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


@cache
def tree_of(path: Path) -> ast.Module:
    # the collector would look through a growing tree, which takes four times as long as parsing
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def blocks(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node. Expressions, which are most of a tree, are not entered."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from blocks(child)


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """What a file imports; `from a import b` counts as `a` or as module `a.b`.

    The version is a constant of the package, which is loaded before any module of it: to import
    it is not to import the facade.
    """
    return tuple(_imports_of(path))


def _imports_of(path: Path) -> Iterator[Import]:
    by = module_name(path)
    package = by if path.name == "__init__.py" else by.rpartition(".")[0]
    tree = tree_of(path)
    for name in named_modules(tree):
        yield Import(by, name, True, False)
    for statement, runtime in statements(tree):
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
            exists = full == VERSION or file_of(full).exists()
            yield Import(by, full if exists else base, runtime, bool(statement.level))


def within(name: str, *places: str) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def imports(*packages: str) -> list[Import]:
    found = [found for path in files(*packages) for found in imports_of(path)]
    assert found
    return found


def closure(module: str, graph: dict[str, set[str]]) -> dict[str, str]:
    """Every module reached from this one, with the module that imports it first."""
    reached = {module: ""}
    waiting = [module]
    while waiting:
        importer = waiting.pop(0)
        for name in sorted(graph.get(importer, ())):
            if name not in reached:
                reached[name] = importer
                waiting.append(name)
    return reached


def path_to(name: str, reached: dict[str, str]) -> str:
    steps = [name]
    while importer := reached[steps[-1]]:
        steps.append(importer)
    return " → ".join(reversed(steps))


def graph_of(found: list[Import]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for each in found:
        graph.setdefault(each.by, set()).add(each.name)
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that reach each other."""
    reached = {module: set(closure(module, graph)) - {module} for module in graph}
    found: list[set[str]] = []
    for module in sorted(graph):
        circle = {other for other in reached[module] if module in reached.get(other, ())}
        if module in graph[module]:
            circle.add(module)
        if circle and not any(module in one for one in found):
            found.append(circle | {module})
    return found
