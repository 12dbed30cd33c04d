"""What the URL patterns of a site do with a path, as their source says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured
from django.urls.resolvers import RegexPattern, RoutePattern

from realtime.tools.init.files import NotSure, Source

Open = Callable[[str], Source]
"""Opens a module of the project by its name, or raises NotSure."""


def includes(tree: ast.Module, module: str, opened: Open) -> bool:
    """Return whether URLs, or others of the project that they include, name a module."""
    waiting, seen = [tree], set[str]()
    while waiting:
        new = strings(waiting.pop()) - seen
        if module in new:
            return True
        seen |= new
        waiting += _modules(new, opened)
    return False


def takes(node: ast.AST, path: str, opened: Open) -> bool:
    """Return whether URLs lead a path to a view."""
    match node:
        case ast.Call(func=ast.Name(id="i18n_patterns"), keywords=[]):
            return False  # all are below the name of a language
        case ast.Call(
            func=ast.Name(id=("path" | "re_path") as kind),
            args=[ast.Constant(value=str(route)), view, *_],
        ):
            more = re.match(r"include\(|admin\.site\.urls", ast.unparse(view))
            pattern = RoutePattern if kind == "path" else RegexPattern
            try:
                found = pattern(route, is_endpoint=not more).match(path)
            except ImproperlyConfigured:  # a converter of the site
                return False
            if found is None or not more or not found[0]:
                return found is not None
            if more[0] != "include(":
                return True  # the admin answers every path
            below = [view, *_modules(strings(view), opened)]
            return any(takes(each, found[0], opened) for each in below)
        case _:
            return any(takes(child, path, opened) for child in ast.iter_child_nodes(node))


def _modules(names: set[str], opened: Open) -> Iterator[ast.Module]:
    for name in names:
        if re.fullmatch(r"\w+(\.\w+)+", name):
            with suppress(NotSure):
                yield opened(name).tree


def strings(tree: ast.AST) -> set[str]:
    """Return the strings in some code."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
