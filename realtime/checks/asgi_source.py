"""Whether the module that ASGI_APPLICATION names has the service, as its source says.

Modules are read and not imported: checks run in every command, and an asgi.py may do anything. The
application may be imported from another module of the site, wrapped, or built by a function there.
So the modules that it imports are read as well, and those that they import.

    asgi.py ─imports─► site modules ─import─► ... `realtime.asgi`: it has the service
                                              end of the search: it has not
                                              a module that cannot be read: unknown
"""

from __future__ import annotations

import ast
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from typing import NamedTuple

MAX_MODULES = 100
"""Modules that are read. A larger search finds no answer."""

_SERVICE = ("realtime.asgi", "realtime.transports")
_FRAMEWORKS = {*sys.stdlib_module_names, "realtime", "django", "channels", "asgiref", "daphne"}
"""Packages that import no application of a site."""
_HIDES_IMPORTS = {"__import__", "exec", "eval", "import_module", "import_string", "run_path"}
_HIDES_NAMES = {"globals", "setattr", "exec", "__getattr__"}


class _Module(NamedTuple):
    imports: set[str]
    """Absolute names of what it imports: modules, or names in them."""
    names: set[str]
    """Names that it assigns, defines or imports, and those that it calls."""
    hides_imports: bool
    hides_names: bool


def mistake_in(path: str) -> str:
    """Return what is wrong with ASGI_APPLICATION; "" if nothing is, or it is unknown.

    Args:
        path: the dotted path of the application.
    """
    name, _, attribute = path.rpartition(".")
    spec = find(name) if name and attribute else None
    if spec is None:
        return f"{path!r} cannot be found"
    module = _read(spec)
    if module is None:
        return ""
    if attribute not in module.names and not module.hides_names:
        return f"{path!r} cannot be found: its module has no {attribute!r}"
    lacks = _has_service(module) is False
    return f"{path!r} has an application without the service" if lacks else ""


def has_service(name: str) -> bool | None:
    """Return whether a module of a site has the service; None if the module itself hides that.

    Args:
        name: of the module. Packages that are installed are not searched.
    """
    spec = find(name)
    module = _read(spec) if spec is not None else None
    if module is None:
        return None
    found = _has_service(module, also_installed=False)
    return None if found is None and module.hides_imports else bool(found)


def _has_service(first: _Module, *, also_installed: bool = True) -> bool | None:
    waiting, seen, hidden = deque([first]), set[str](), False
    while waiting:
        module = waiting.popleft()
        if any(_is_of(name, *_SERVICE) for name in module.imports):
            return True
        hidden = hidden or module.hides_imports
        for name in sorted(module.imports - seen):
            seen.add(name)
            if name.partition(".")[0] in _FRAMEWORKS:
                continue
            spec = find(name)
            if spec is None:
                continue  # a name in a module, or a module that an `except` goes without
            if not also_installed and "-packages" in (spec.origin or ""):
                continue
            read = _read(spec)
            if len(seen) > MAX_MODULES:
                return None
            if read is None:
                hidden = True
            else:
                waiting.append(read)
    return None if hidden else False


def _is_of(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def find(name: str) -> ModuleSpec | None:
    """Return where a module is, without an import of the packages above it; None if nowhere."""
    spec: ModuleSpec | None = None
    path: Sequence[str] | None = None
    parts = name.split(".")
    for number in range(1, len(parts) + 1):
        if number > 1 and path is None:  # what is above is no package
            return None
        part = ".".join(parts[:number])
        spec = _find_in(path, part) or _find_namespace(path, part)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec


def _find_namespace(path: Sequence[str] | None, name: str) -> ModuleSpec | None:
    """Return the package that a directory without `__init__.py` is; None if there is no directory.

    Python's finders find it only where the package above it is imported.
    """
    directories = [os.path.join(above, name.rpartition(".")[2]) for above in path or ()]
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = list(filter(os.path.isdir, directories))
    return spec if spec.submodule_search_locations else None


def _find_in(path: Sequence[str] | None, name: str) -> ModuleSpec | None:
    """Return where a module is in these directories; None: where Python looks for it."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except Exception:  # finders of other packages may raise anything
            continue
        if spec is not None:
            return spec
    return None


def _read(spec: ModuleSpec) -> _Module | None:
    """Return what the source of a module says; None if it cannot be read."""
    try:
        source = getattr(spec.loader, "get_source", lambda _: None)(spec.name)
        tree = None if source is None else ast.parse(source)
    except (ImportError, OSError, SyntaxError, ValueError, RecursionError):
        return None
    if tree is None:
        return None
    return _describe(
        tree, spec.name if spec.submodule_search_locations is not None else spec.parent
    )


def _describe(tree: ast.Module, package: str | None) -> _Module:
    imports, names, is_open = set[str](), set[str](), False
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                imports |= {alias.name for alias in node.names}
                names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom():
                imports |= set(_imported(node, package))
                names |= {alias.asname or alias.name for alias in node.names}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Name():
                names.add(node.id if isinstance(node, ast.Name) else node.name)
            case ast.Attribute(value=ast.Name(id="realtime"), attr="asgi"):
                imports.add("realtime.asgi")
            case ast.Attribute():
                is_open = is_open or node.attr in _HIDES_IMPORTS
            case ast.Constant(value=str(text)) if _is_of(text, *_SERVICE):
                imports.add(text)
            case _:
                pass
    hides_imports = is_open or bool(names & _HIDES_IMPORTS)
    return _Module(imports, names, hides_imports, bool(names & {*_HIDES_NAMES, "*"}))


def _imported(node: ast.ImportFrom, package: str | None) -> Iterator[str]:
    """Yield the module of `from module import names`, and each name, which may be a module."""
    try:
        module = resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:  # above the top package
        return
    yield module
    for alias in node.names:
        yield f"{module}.{alias.name}"
