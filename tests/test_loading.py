"""The core runs where Django is not installed, and part of it in a bare interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.imports import ROOT, closure, graph_of, imports, path_to, within
from tests.rooms import SITE_LIBRARIES, core_modules, pure_modules


def test_core_does_not_reach_django_by_any_path() -> None:
    graph = graph_of([found for found in imports("realtime") if found.runtime])
    wrong = {
        path_to(name, reached)
        for module in core_modules()
        for reached in [closure(module, graph)]
        for name in reached
        if within(name, *SITE_LIBRARIES, "realtime.config.sources")
    }
    assert wrong == set()


LOAD = """
import importlib, json, sys
names, missing = json.loads(sys.argv[1])
for name in missing:
    sys.modules[name] = None
for name in names:
    importlib.import_module(name)
print(json.dumps(sorted(name for name, module in sys.modules.items() if module)))
"""


def load(names: list[str], missing: tuple[str, ...] = ()) -> set[str]:
    """The modules that are loaded after these were imported where libraries are missing."""
    run = subprocess.run(
        [sys.executable, "-c", LOAD, json.dumps([names, missing])],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_core_loads_where_django_is_not_installed() -> None:
    loaded = load(core_modules(), SITE_LIBRARIES)
    assert "realtime.node.node" in loaded
    assert "realtime.config.sources" not in loaded


def test_pure_modules_load_in_a_bare_interpreter() -> None:
    loaded = {name.partition(".")[0] for name in load(pure_modules())}
    assert "realtime" in loaded
    assert not loaded & {"django", "channels", "rest_framework", "daphne", "twisted", "asyncio"}


def test_site_without_a_dependency_is_told_which_one_is_missing() -> None:
    script = """
import sys
sys.modules["msgspec"] = None
from django.conf import settings
settings.configure(INSTALLED_APPS=["realtime"])
import django
django.setup()
"""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert "ImproperlyConfigured: The package msgspec is missing" in run.stderr
