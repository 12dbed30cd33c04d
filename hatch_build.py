"""What the package says about itself: its README and URLs, which depend on where the repository is.

    REPOSITORY_URL=https://example.org/me/realtime python -m build

PyPI shows the README without the repository around it, so links to other files lead there by their
whole address. Without the variable they become plain text, and there are no project URLs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
"""A link to a file of the repository: text and path."""


def readme(text: str, repository: str) -> str:
    """Return the README for readers who do not see the repository.

    Args:
        text: the README, in Markdown.
        repository: the URL of the repository; "" if there is none.
    """
    return _LINK.sub(rf"[\1]({repository}/blob/HEAD/\2)" if repository else r"\1", text)


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
