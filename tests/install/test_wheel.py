"""The wheel: one top-level name, everything the service needs, and nothing else."""

from __future__ import annotations

import configparser
import importlib
import os
import re
import runpy
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.version import Version

import realtime
from tests.install.environments import REPOSITORY
from tests.server import ROOT

PLACES = {"realtime": "realtime", "api": "realtime/api", "admin_panel": "realtime/admin_panel"}
"""Package in the repository → where it is in the wheel."""


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    """The files in the wheel."""
    return zipfile.ZipFile(wheel).namelist()


def sources() -> set[str]:
    """Every file of the packages, where it belongs in the wheel."""
    return {
        f"{place}/{path.relative_to(ROOT / package)}"
        for package, place in PLACES.items()
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


CLIENT = "realtime/static/realtime/client.js"
NAMES = ("answers", "client", "fragments", "inspect", "live", "maps")
MODULES = [f"realtime/static/realtime/{name}.js" for name in NAMES]
BUILT = {name.replace(".js", end) for name in MODULES for end in (".js.map", ".d.ts")}
"""What comes with the minified modules."""


def test_wheel_has_every_file_of_the_packages_and_no_other(names: list[str]) -> None:
    assert {name for name in names if ".dist-info/" not in name} - BUILT == sources()
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_client_is_minified_where_the_tools_are(wheel: Path, names: list[str]) -> None:
    has_tools = (ROOT / "packages/javascript/node_modules").is_dir()
    text = zipfile.ZipFile(wheel).read(CLIENT).decode()
    assert names.count(CLIENT) == 1
    assert set(names) >= BUILT if has_tools else not BUILT & set(names)
    assert text.endswith("//# sourceMappingURL=client.js.map") == has_tools


def test_pytest_plugin_is_announced_by_a_name_that_leads_to_it(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    points = configparser.ConfigParser(delimiters="=")
    points.read_string(archive.read(name).decode())
    ((_, module),) = points["pytest11"].items()
    assert f"{module.replace('.', '/')}.py" in archive.namelist()
    assert hasattr(importlib.import_module(module), "realtime_outbox")


def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    return message_from_string(archive.read(name).decode())


def test_readme_links_and_pictures_lead_to_the_repository(wheel: Path) -> None:
    text = str(metadata(wheel).get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text)
    pictures = re.findall(r'src(?:set)?="([^"]+)"', text)
    assert f"{REPOSITORY}/blob/HEAD/docs/quickstart.md" in links
    assert f"{REPOSITORY}/raw/HEAD/docs/pictures/recovery.png" in pictures
    assert [each for each in links + pictures if not each.startswith("https://")] == []


def test_project_has_urls(wheel: Path) -> None:
    urls = dict(url.split(", ") for url in metadata(wheel).get_all("Project-URL", []))
    assert urls["Source"] == REPOSITORY
    assert urls["Changelog"] == f"{REPOSITORY}/blob/HEAD/CHANGELOG.md"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names in hatch_build.py, where hatchling is not installed."""
    for module, name in (
        ("hatchling.metadata.plugin.interface", "MetadataHookInterface"),
        ("hatchling.builders.hooks.plugin.interface", "BuildHookInterface"),
    ):
        interface = ModuleType(module)
        setattr(interface, name, object)
        monkeypatch.setitem(sys.modules, module, interface)
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_readme_without_a_repository_has_no_links_to_its_files(hook: dict[str, Any]) -> None:
    text = "[one](docs/a.md#b), [two\nlines](B.md), [other](https://example.org), [here](#here)"
    assert hook["readme"](text, "") == (
        "one, two\nlines, [other](https://example.org), [here](#here)"
    )
    assert hook["urls"]("") == {}


def test_readme_without_a_repository_has_no_pictures(hook: dict[str, Any]) -> None:
    readme = hook["readme"]((ROOT / "README.md").read_text(), "")
    assert "docs/pictures" not in readme
    assert "</picture>" not in readme


def test_wheel_of_a_source_distribution_has_the_client_that_it_brought(
    hook: dict[str, Any], tmp_path: Path
) -> None:
    """One that was made without Node brought none."""
    unpacked, minified = tmp_path / "unpacked", tmp_path / "minified"
    minified.mkdir()
    (unpacked / "packages/javascript").mkdir(parents=True)
    (unpacked / "PKG-INFO").touch()
    assert hook["build_client"](unpacked, minified) == []
    (unpacked / "packages/javascript/dist").mkdir()
    (unpacked / "packages/javascript/dist/client.js").touch()
    assert hook["build_client"](unpacked, minified) == [minified / "client.js"]


PLAIN = realtime.__version__


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A small repository with the version of this one."""
    (tmp_path / "realtime").mkdir()
    (tmp_path / "realtime/__init__.py").write_text((ROOT / "realtime/__init__.py").read_text())
    return tmp_path


def commit(clone: Path, *commands: str, time: int = 1_000_000_000) -> str:
    """Commit all, run other commands, and return the hash."""
    when = {"GIT_AUTHOR_DATE": f"{time} +0000", "GIT_COMMITTER_DATE": f"{time} +0000"}
    who = "git -c user.name=Ann -c user.email=ann@example.org -c init.defaultBranch=main"
    script = [f"{who} init -q", f"{who} add .", f"{who} commit -qm x --allow-empty", *commands]
    script.append("git rev-parse HEAD")
    finished = subprocess.run(
        ["sh", "-ec", "\n".join(script)],
        cwd=clone,
        env=os.environ | when,
        check=True,
        capture_output=True,
        text=True,
    )
    return finished.stdout.strip()


def test_build_between_releases_names_time_and_commit(hook: dict[str, Any], clone: Path) -> None:
    first = commit(clone)
    assert hook["version"](clone) == f"{PLAIN}+20010909014640.g{first[:9]}"


def test_later_build_replaces_an_earlier_one(hook: dict[str, Any], clone: Path) -> None:
    versions = [PLAIN]
    for time in (999_999_999, 1_000_000_000, 1_700_000_000):
        commit(clone, time=time)
        versions.append(hook["version"](clone))
    (clone / "new.py").touch()
    versions += [hook["version"](clone), "0.1.1"]
    assert sorted(set(versions), key=Version) == versions


def test_release_has_its_plain_number(hook: dict[str, Any], clone: Path) -> None:
    commit(clone, f"git tag v{PLAIN}")
    assert hook["version"](clone) == PLAIN
    (clone / "new.py").touch()
    assert hook["version"](clone) != PLAIN


def test_without_git_the_plain_version_stays(
    hook: dict[str, Any], clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hook["version"](clone) == PLAIN
    commit(clone)
    monkeypatch.setenv("PATH", "")
    assert hook["version"](clone) == PLAIN


def test_wheel_of_a_source_distribution_has_its_version(hook: dict[str, Any], clone: Path) -> None:
    commit(clone)  # of a repository into which it was unpacked
    metadata = "Metadata-Version: 2.4\nName: x\nVersion: 0.1.0+1.g2\n\nVersion: 3\n"
    (clone / "PKG-INFO").write_text(metadata)
    assert hook["version"](clone) == "0.1.0+1.g2"


def test_wheel_says_its_version_in_the_code(wheel: Path) -> None:
    source = zipfile.ZipFile(wheel).read("realtime/__init__.py").decode()
    named = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert named == [metadata(wheel)["Version"]] == [wheel.name.split("-")[1]]
    plain = (ROOT / "realtime/__init__.py").read_text()
    assert source.replace(named[0], PLAIN) == plain
