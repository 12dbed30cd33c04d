"""Sphinx's configuration of the documentation site: `make docs`.

The navigation is that of index.md: each of its headings is a part, with the pages that it links.
Links to files beside docs/ lead to the repository, whose address is REPOSITORY_URL.
"""

from __future__ import annotations

import os
import re
from typing import Any

project = "Realtime messaging for Django"
author = "the maintainers"
extensions = ["myst_parser"]
exclude_patterns = ["pictures/*.py"]
root_doc = "index"
nitpicky = True
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"

_REPOSITORY = os.environ.get("REPOSITORY_URL", "").rstrip("/")
_LINK = re.compile(r"\]\((\w[\w-]*)\.md\)")
_OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")
_COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)


def on_source(_app: Any, name: str, source: list[str]) -> None:
    """Give index.md its navigation, and links to other files of the repository their addresses."""
    text = _COMMENT.sub("", source[0])
    target = rf"[\1]({_REPOSITORY}/blob/HEAD/\2)" if _REPOSITORY else r"\1"
    text = _OUTSIDE.sub(target, text)
    source[0] = text + (_navigation(text) if name == root_doc else "")


def _navigation(text: str) -> str:
    """Return a toctree for each heading with links to pages."""
    parts = []
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        pages = "\n".join(_LINK.findall(body))
        if pages:
            parts.append(f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n")
    return "".join(parts)


def setup(app: Any) -> None:
    """Tell Sphinx what to call."""
    app.connect("source-read", on_source)
