"""What packages have of the client module: minified, with its source map and declarations."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.files.base import ContentFile

import realtime
from tests.conftest import require
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.server import ROOT

PACKAGE = ROOT / "packages/javascript"
SOURCES = ROOT / "realtime/static/realtime"
MODULES = ("answers", "client", "fragments", "inspect", "live", "maps")
LARGEST = 8 * 1024
"""Bytes after gzip."""
LARGEST_OF_BLOCKS = 5 * 1024
"""Bytes after gzip of what pages with live blocks load besides the client."""
LINES = 260
"""Of live.js."""

STRICTER = {
    "exactOptionalPropertyTypes": True,
    "noImplicitOverride": True,
    "noPropertyAccessFromIndexSignature": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
}
"""What a site may want beyond `strict`."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the built files."""
    node = find_node()
    if not (PACKAGE / "node_modules").is_dir():
        require_packages("the tools of packages/javascript")
    directory = tmp_path_factory.mktemp("built")
    subprocess.run([node, PACKAGE / "build.mjs", directory], check=True)
    return directory


def check_types(directory: Path, tmp_path: Path, end: str = "d.ts", **more: object) -> str:
    """Check page.ts against the modules of a directory; returns what the compiler says."""
    [block] = re.findall(r"```json\n(.*?)```", (ROOT / "docs/javascript.md").read_text(), re.S)
    options: dict[str, Any] = json.loads(block)["compilerOptions"]
    [[path]] = options["paths"].values()
    assert path.endswith("/realtime/static/realtime/client.d.ts")
    modules = {"realtime": "client"} | {
        f"realtime/{name}": name for name in ("answers", "inspect", "live", "maps")
    }
    paths = {name: [f"{directory / module}.{end}"] for name, module in modules.items()}
    options |= STRICTER | {"paths": paths, "noEmit": True, "types": []} | more
    options["skipDefaultLibCheck"] = True  # TypeScript's own declarations
    config = tmp_path / "tsconfig.json"
    config.write_text(
        json.dumps({"compilerOptions": options, "files": [str(DIRECTORY / "page.ts")]})
    )
    compiler = DIRECTORY / "node_modules/typescript/bin/tsc"
    done = subprocess.run([find_node(), compiler, "-p", config], capture_output=True, text=True)
    return done.stdout


def test_sources_have_the_types_of_their_comments(tmp_path: Path) -> None:
    require_packages("typescript")
    assert check_types(SOURCES, tmp_path, allowJs=True, skipLibCheck=True, end="js") == ""


def test_page_in_typescript_is_checked_as_documented(built: Path, tmp_path: Path) -> None:
    assert check_types(built, tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "member"), [("client", "release(): void"), ("live", "load(): Promise<void>")]
)
def test_declarations_name_no_internal_members(built: Path, name: str, member: str) -> None:
    declarations = (built / f"{name}.d.ts").read_text()
    assert re.findall(r"^\s+(?:get )?_\w+", declarations, re.M) == []
    assert member in declarations


def test_modules_are_small(built: Path) -> None:
    assert len(gzip.compress((built / "client.js").read_bytes(), 9)) <= LARGEST
    blocks = [(built / f"{name}.js").read_bytes() for name in ("fragments", "live")]
    assert sum(len(gzip.compress(each, 9)) for each in blocks) <= LARGEST_OF_BLOCKS
    assert len((SOURCES / "live.js").read_text().splitlines()) <= LINES


@pytest.mark.parametrize("name", MODULES)
def test_source_map_has_the_source(built: Path, name: str) -> None:
    found = json.loads((built / f"{name}.js.map").read_text())
    assert found["sourcesContent"] == [(SOURCES / f"{name}.js").read_text()]
    assert (built / f"{name}.js").read_text().rstrip().endswith(f"sourceMappingURL={name}.js.map")


def test_minified_module_is_stored_with_a_hash(built: Path, tmp_path: Path) -> None:
    storage = ManifestStaticFilesStorage(location=tmp_path, base_url="/static/")
    names = ["realtime/client.js", "realtime/client.js.map"]
    for name in names:
        storage.save(name, ContentFile((built / Path(name).name).read_bytes()))
    list(storage.post_process({name: (storage, name) for name in names}))
    stored = storage.stored_name(names[0])
    assert re.fullmatch(r"realtime/client\.[0-9a-f]{12}\.js", stored)
    assert Path(storage.stored_name(names[1])).name in (tmp_path / stored).read_text()


@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("answers", "answer"),
        ("client", "ChannelHandle"),
        ("inspect", "inspect"),
        ("live", "liveClient"),
        ("maps", "map"),
    ],
)
def test_minified_module_exports_the_names_of_the_source(built: Path, name: str, one: str) -> None:
    script = "console.log(JSON.stringify(Object.keys(await import(process.argv[1])).sort()))"
    command = [find_node(), "--input-type=module", "--eval", script]
    exported = [
        json.loads(subprocess.check_output([*command, module.as_uri()]))
        for module in (SOURCES / f"{name}.js", built / f"{name}.js")
    ]
    assert exported[0] == exported[1]
    assert one in exported[0]


def test_npm_package_has_the_version_of_the_python_package(built: Path, tmp_path: Path) -> None:
    """Packed as built above: `npm pack` in the repository would build it again, and write there."""
    npm = require("npm", "packages for npm are made by npm")
    for name in ("package.json", "README.md", "LICENSE"):
        shutil.copy(PACKAGE / name, tmp_path)
    shutil.copytree(built, tmp_path / "dist")

    done = subprocess.run(
        [npm, "pack", "--json", "--dry-run", "--ignore-scripts", "--loglevel", "error"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    [packed] = json.loads(done.stdout)
    assert packed["version"] == realtime.__version__
    assert sorted(file["path"] for file in packed["files"]) == [
        "LICENSE",
        "README.md",
        *(f"dist/{name}.{end}" for name in MODULES for end in ("d.ts", "js", "js.map")),
        "package.json",
    ]
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
