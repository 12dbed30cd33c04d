"""Find the files of a project, without running any of them."""

from __future__ import annotations

import ast
from pathlib import Path

from django.core.management.base import CommandError

from realtime.console.init.source import NotSure, Source

SETTINGS_VARIABLE = "DJANGO_SETTINGS_MODULE"


def settings_module(directory: Path, given: str) -> str:
    """Return the name of a project's settings, as `manage.py` takes it.

    Args:
        directory: of the project.
        given: DJANGO_SETTINGS_MODULE of this process, or what `--settings` says; may be empty.

    Raises:
        CommandError: there is no `manage.py`, or it does not name one module.
    """
    try:
        manage = Source(directory, directory / "manage.py")
    except NotSure as error:
        raise CommandError(
            f"manage.py: {error}. Run this command in the directory of your manage.py."
        ) from None
    if given:
        return given
    names = {
        value.value if isinstance(value, ast.Constant) else None
        for node in ast.walk(manage.tree)
        for value in _given(node)
    }
    match [*names]:
        case [str(name)]:
            return name
        case _:
            raise CommandError("manage.py does not name one module of settings. Add --settings.")


def _given(node: ast.AST) -> list[ast.expr]:
    """Return the value that a node gives to the variable, in a list, or an empty list."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="setdefault"), args=[ast.Constant(value=name), value]
        ):
            return [value] if name == SETTINGS_VARIABLE else []
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=name))], value=value):
            return [value] if name == SETTINGS_VARIABLE else []
        case _:
            return []


def path_of(directory: Path, module: str) -> Path:
    """Return the file of a module of the project.

    Raises:
        NotSure: there is no such file, or the module is a package.
    """
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise NotSure(f"{module!r} is no name of a module")
    path = directory.joinpath(*parts)
    if (path / "__init__.py").is_file():
        raise NotSure("it is a package, so other files have a part in it")
    path = path.with_name(f"{path.name}.py")
    if not path.is_file():
        raise NotSure("there is no such file")
    return path
