"""What is made when a package is built: its README and URLs, and the minified JavaScript client.

    REPOSITORY_URL=https://example.org/me/realtime python -m build

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
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

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
        """Add the minified client: in place of the plain one in a wheel."""
        if version == "editable":
            return
        place = "realtime/static/realtime" if self.target_name == "wheel" else f"{CLIENT}/dist"
        self._directory = tempfile.TemporaryDirectory(prefix="realtime-client-")
        for path in build_client(Path(self.root), Path(self._directory.name)):
            build_data["force_include"][str(path)] = f"{place}/{path.name}"
