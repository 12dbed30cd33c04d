"""The types of the client module, as the documentation tells to use them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node

ROOT = DIRECTORY.parent.parent
MODULE = "realtime/static/realtime/client.js"
STRICTER = {
    "exactOptionalPropertyTypes": True,
    "noImplicitOverride": True,
    "noPropertyAccessFromIndexSignature": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
}
"""What a site may want beyond `strict`; the module is read as if it were the site's own."""


def documented() -> dict[str, Any]:
    """The compiler options of docs/javascript.md."""
    [block] = re.findall(r"```json\n(.*?)```", (ROOT / "docs/javascript.md").read_text(), re.S)
    options: dict[str, Any] = json.loads(block)["compilerOptions"]
    [[path]] = options["paths"].values()
    assert path.endswith(f"/{MODULE}")
    return options | {"paths": {name: [str(ROOT / MODULE)] for name in options["paths"]}}


def test_page_in_typescript_is_checked_as_documented(tmp_path: Path) -> None:
    node = find_node()
    require_packages("typescript")
    config = tmp_path / "tsconfig.json"
    options = documented() | STRICTER | {"noEmit": True, "types": []}
    config.write_text(
        json.dumps({"compilerOptions": options, "files": [str(DIRECTORY / "page.ts")]})
    )
    compiler = DIRECTORY / "node_modules/typescript/bin/tsc"

    done = subprocess.run(
        [node, compiler, "-p", config], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")
