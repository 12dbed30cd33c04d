"""The hooks of docs/frameworks.md, in React, Vue and Svelte from npm."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import connection_token
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.server import ROOT, Server

SOURCES = ROOT / "realtime/static/realtime"
MOST_LINES = 30


def hooks(section: str) -> list[str]:
    """The blocks of a section of the page: what a reader copies."""
    page = (ROOT / "docs/frameworks.md").read_text()
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```js\n(.*?)```", text, re.S)


PACKAGES = {"react": ["react", "react-dom"], "vue": ["vue"], "svelte": ["svelte"]}


def run(directory: Path, hook: str, program: str, *arguments: str) -> str:
    """Run a program of tests/js beside a hook, `./hook.js`; return its output."""
    node = find_node()
    modules = directory / "node_modules"
    (modules / "realtime").mkdir(parents=True)
    for package in ["jsdom", *PACKAGES[arguments[0]]]:
        require_packages(package)
        (modules / package).symlink_to(DIRECTORY / "node_modules" / package)
    exports = {".": "./client.js", "./maps": "./maps.js"}
    package_json = {"name": "realtime", "type": "module", "exports": exports}
    (modules / "realtime/package.json").write_text(json.dumps(package_json))
    for name in ("client", "maps"):
        (modules / f"realtime/{name}.js").write_text((SOURCES / f"{name}.js").read_text())
    (directory / "package.json").write_text('{"type": "module"}')
    (directory / "hook.js").write_text(hook)
    (directory / program).write_text((DIRECTORY / program).read_text())
    assert hook.count("\n") <= MOST_LINES
    done = subprocess.run(
        [node, program, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("framework", PACKAGES)
def test_components_share_a_channel_and_release_it(
    server: Server, tmp_path: Path, unique: str, framework: str
) -> None:
    [hook] = hooks(framework.capitalize())
    arguments = [framework, server.address, connection_token("17"), f"chat:{unique}"]
    commands = json.loads(run(tmp_path, hook, "frameworks.mjs", *arguments))
    assert commands == [1, 2]  # one subscribe, one unsubscribe


@pytest.mark.parametrize("framework", PACKAGES)
def test_components_show_a_map(
    serve: Callable[..., Server], tmp_path: Path, unique: str, framework: str
) -> None:
    namespaces = [{"name": "seats", "map": "persistent", "map_publish": "subscriber"}]
    server = serve(namespaces=namespaces)
    hook = hooks("Maps")[list(PACKAGES).index(framework)]
    arguments = [framework, server.address, connection_token("17"), f"seats:{unique}"]
    shown = json.loads(run(tmp_path, hook, "map_hooks.mjs", *arguments))
    assert shown == ["a=1 b=2", "a=3", "gone"]
