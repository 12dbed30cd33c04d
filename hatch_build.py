"""What is made when a package is built: version, README, URLs, and the minified JavaScript client.

    REPOSITORY_URL=https://example.org/me/realtime python -m build

Between releases the version has a local part, so that pip installs a newer build over an older one:
0.1.0+20261123183531.g1a2b3c4d5, the time of the last change and the commit. A commit with the tag
v0.1.0 is the release, and has none. A source distribution passes its version on to its wheels.

PyPI shows the README without the repository around it, so links to other files lead there by their
whole address. Without the variable they become plain text, and there are no project URLs.

The client is minified if the tools for that are there (`npm ci --prefix packages/javascript`).
Otherwise the package has the plain module, which works in the same way: `pip install` from a clone
needs no Node. A source distribution made with the tools has the minified one, too, for wheels that
are built from it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent

_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
"""A link to a file of the repository: text and path."""
_SOURCE = re.compile(r'\b(src|srcset)="(?![a-z]+:)([^"]+)"')
"""A picture of the repository: attribute and path."""
_PICTURE = re.compile(r"<picture>.*?</picture>\n*|<img [^>]*>\n*", re.DOTALL)


def readme(text: str, repository: str) -> str:
    """Return the README for readers who do not see the repository.

    Args:
        text: the README, in Markdown.
        repository: the URL of the repository; "" if there is none.
    """
    if not repository:
        return _LINK.sub(r"\1", _PICTURE.sub("", text))
    text = _SOURCE.sub(rf'\1="{repository}/raw/HEAD/\2"', text)
    return _LINK.sub(rf"[\1]({repository}/blob/HEAD/\2)", text)


def urls(repository: str) -> dict[str, str]:
    """Return the project URLs: label → URL."""
    if not repository:
        return {}
    return {
        "Documentation": f"{repository}/blob/HEAD/docs/index.md",
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
    }


_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def version(root: Path) -> str:
    """Return the version of a package that is built now.

    Args:
        root: of the repository, or of an unpacked source distribution.

    Returns:
        The version in the source alone, if neither git nor metadata say more.
    """
    if (metadata := root / "PKG-INFO").is_file():
        lines = metadata.read_text(encoding="utf-8").splitlines()
        return next(line for line in lines if line.startswith("Version: ")).split()[1]
    (base,) = _VERSION.findall((root / "realtime/__init__.py").read_text(encoding="utf-8"))
    if not (root / ".git").exists():
        return str(base)
    try:
        time, commit = _git(root, "log", "-1", "--format=%ct %h", "--abbrev=9").split()
        tags = _git(root, "tag", "--points-at", "HEAD").split()
        changed = [
            name
            for name in _git(root, "ls-files", "-mo", "--exclude-standard", "-z").split("\0")
            if name
        ]
    except (OSError, subprocess.CalledProcessError):
        return str(base)
    if f"v{base}" in tags and not changed:
        return str(base)
    paths = [root / name for name in changed]
    times = [int(time), *(int(path.stat().st_mtime) for path in paths if path.is_file())]
    newest = datetime.fromtimestamp(max(times), UTC)
    return f"{base}+{newest:%Y%m%d%H%M%S}.g{commit}"


def with_version(text: str, version: str) -> str:
    """Return the source of the package with another version."""
    return _VERSION.sub(f'__version__ = "{version}"', text)


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class RepositoryHook(MetadataHookInterface):
    """Hatch's hook for metadata that pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add README and URLs."""
        repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, repository)}
        metadata["urls"] = urls(repository)


CLIENT = "packages/javascript"
"""Where the client is built, seen from the root of the project."""


def build_client(root: Path, directory: Path) -> list[Path]:
    """Return the files of the minified modules: each with its source map and its declarations.

    Args:
        root: of the repository, or of an unpacked source distribution.
        directory: where to build; empty.

    Raises:
        CalledProcessError: the tools are there, and fail.
    """
    if (root / "PKG-INFO").is_file():
        if (brought := root / CLIENT / "dist").is_dir():
            shutil.copytree(brought, directory, dirs_exist_ok=True)
    elif (root / CLIENT / "node_modules").is_dir() and (node := shutil.which("node")):
        subprocess.run([node, root / CLIENT / "build.mjs", directory], check=True)
    return sorted(directory.glob("*.*"))


class ClientHook(BuildHookInterface):
    """Hatch's hook for what is added to a distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the minified client, in a wheel in place of the plain one, and its version there."""
        if version == "editable":
            return
        place = "realtime/static/realtime" if self.target_name == "wheel" else f"{CLIENT}/dist"
        self._directory = tempfile.TemporaryDirectory(prefix="realtime-client-")
        for path in build_client(Path(self.root), Path(self._directory.name)):
            build_data["force_include"][str(path)] = f"{place}/{path.name}"
        if self.target_name == "wheel":
            name = "realtime/__init__.py"
            text = Path(self.root, name).read_text(encoding="utf-8")
            self._module = tempfile.TemporaryDirectory(prefix="realtime-version-")
            path = Path(self._module.name, "__init__.py")
            path.write_text(with_version(text, self.metadata.version), encoding="utf-8")
            build_data["force_include"][str(path)] = name
