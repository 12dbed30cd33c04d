"""The hooks of docs/frameworks.md, in React, Vue and Svelte from npm."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import connection_token
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.server import ROOT, Server

MODULE = ROOT / "realtime/static/realtime/client.js"
MOST_LINES = 30


def hook(framework: str) -> str:
    """The first block of a framework: what a reader copies."""
    page = (ROOT / "docs/frameworks.md").read_text()
    section = page.partition(f"\n## {framework.capitalize()}\n")[2]
    (block,) = re.findall(r"```js\n(.*?)```", section.partition("\n## ")[0], re.S)
    return str(block)


@pytest.mark.parametrize(
    ("framework", "packages"),
    [("react", ["react", "react-dom"]), ("vue", ["vue"]), ("svelte", ["svelte"])],
)
def test_components_share_a_channel_and_release_it(
    server: Server, tmp_path: Path, unique: str, framework: str, packages: list[str]
) -> None:
    node = find_node()
    modules = tmp_path / "node_modules"
    (modules / "realtime").mkdir(parents=True)
    for package in ["jsdom", *packages]:
        require_packages(package)
        (modules / package).symlink_to(DIRECTORY / "node_modules" / package)
    package_json = {"name": "realtime", "type": "module", "exports": "./client.js"}
    (modules / "realtime/package.json").write_text(json.dumps(package_json))
    (modules / "realtime/client.js").write_text(MODULE.read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "hook.js").write_text(hook(framework))
    (tmp_path / "frameworks.mjs").write_text((DIRECTORY / "frameworks.mjs").read_text())
    arguments = [connection_token("17"), f"chat:{unique}"]
    assert hook(framework).count("\n") <= MOST_LINES

    done = subprocess.run(
        [node, "frameworks.mjs", framework, server.address, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stderr == ""
    assert json.loads(done.stdout) == [1, 2]  # one subscribe, one unsubscribe
