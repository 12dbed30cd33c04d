"""Run the settings of a site, in a process of its own, and print what they say.

This file runs as a script, and imports nothing of the package: nothing may be loaded before the
site loads it. Its standard input is JSON: the name of the settings, "" for those of manage.py, and
blocks to try: file → text at its end. Its standard output is JSON: `Facts` of `site`.

manage.py runs until it hands over to Django, so that its path, its environment and its choice of
settings count. The settings are imported; nothing else of Django is started.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import machinery
from types import CodeType, ModuleType
from typing import Any

from django.core import management
from django.utils.module_loading import import_string

VARIABLE = "DJANGO_SETTINGS_MODULE"
APPS = "INSTALLED_APPS"
OPTIONS = ("REALTIME", "REALTIME_CONFIG_FILE", "REALTIME_DEFAULTS")
PATHS = ("ASGI_APPLICATION", "WSGI_APPLICATION", "ROOT_URLCONF")


class HandedOver(BaseException):
    """manage.py has come to Django."""


class Loader(machinery.SourceFileLoader):
    """Loads the modules of the site: with blocks at their ends, and notes what they bind."""

    blocks: dict[str, str] = {}  # noqa: RUF012, filled once
    running: list[tuple[str, ModuleType]] = []  # noqa: RUF012
    loaded: list[str] = []  # noqa: RUF012
    modules: dict[str, dict[str, Any]] = {}  # noqa: RUF012
    """File → its list of apps, in the order in which the files first had one."""

    def get_code(self, fullname: str) -> CodeType | None:
        block = self.blocks.get(os.path.realpath(self.path))
        if block is None:
            return super().get_code(fullname)
        data: Any = self.get_data(self.path) + block.encode()
        return self.source_to_code(data, self.path)

    def exec_module(self, module: ModuleType) -> None:
        file = os.path.realpath(self.path)
        if not is_own(file):
            return super().exec_module(module)
        self.loaded.append(file)
        self.note()
        self.running.append((file, module))
        try:
            super().exec_module(module)
        finally:
            self.note()
            self.running.pop()

    def note(self) -> None:
        for file, module in self.running:
            apps = getattr(module, APPS, None)
            if isinstance(apps, list | tuple):
                self.modules.setdefault(file, {"file": file})
                self.modules[file] |= {"apps": [*apps], "is_tuple": type(apps) is tuple}


def note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the parts of settings that are executed, and not imported."""
    if event == "open" and str(arguments[0]).endswith(".py"):
        file = os.path.realpath(arguments[0])
        Loader.loaded += [file] if is_own(file) else []


def is_own(file: str) -> bool:
    """Return whether a file is of the project, and not of a package that is installed in it."""
    inside = file.startswith(os.path.realpath("") + os.sep)
    prefix = os.path.realpath(sys.prefix) + os.sep
    return inside and not file.startswith(prefix) and "-packages" + os.sep not in file


def names(apps: Any) -> Iterator[str]:
    """Yield the names of apps, also of those that their configuration stands for."""
    for entry in map(str, apps):
        name = entry
        if entry.rpartition(".")[2][:1].isupper():
            with suppress(Exception):  # an app of the site, which may raise anything
                name = str(import_string(entry).name)
        yield name


def run_manage(settings: str) -> str:
    """Run manage.py up to Django, and return the name of the settings."""

    def hand_over(argv: Any = None) -> None:
        raise HandedOver

    management.execute_from_command_line = hand_over
    if settings:
        os.environ[VARIABLE] = settings
    sys.argv = ["manage.py", "check"]
    with suppress(HandedOver):
        runpy.run_path("manage.py", run_name="__main__")
    return settings or os.environ.get(VARIABLE, "")


def probe(settings: str) -> dict[str, object]:
    facts: dict[str, object] = {}
    try:
        facts["settings"] = name = run_manage(settings)
        if not name:
            raise LookupError("manage.py names no settings")
        module = importlib.import_module(name)
        given = {path: getattr(module, path, "") for path in PATHS}
        facts |= {path.partition("_")[0].lower(): str(given[path] or "") for path in PATHS}
        facts["apps"] = [*names(getattr(module, APPS, ()))]
        facts["has_options"] = any(hasattr(module, option) for option in OPTIONS)
    except BaseException as error:
        facts["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
    modules = [each | {"apps": [*names(each["apps"])]} for each in Loader.modules.values()]
    return facts | {"path": sys.path, "loaded": Loader.loaded, "modules": modules}


def main() -> None:
    wanted = json.load(sys.stdin)
    Loader.blocks = wanted["blocks"]
    report = os.dup(1)
    os.dup2(2, 1)  # the site may print what it likes
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.getcwd(), *(path for path in sys.path if path != here)]
    sys.path_hooks.insert(
        0,
        machinery.FileFinder.path_hook(
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (Loader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        ),
    )
    sys.path_importer_cache.clear()
    sys.addaudithook(note_opened)
    facts = probe(wanted["settings"])
    with os.fdopen(report, "w") as output:
        json.dump(facts, output)
    os._exit(0)  # whatever threads the settings have started


if __name__ == "__main__":
    main()
