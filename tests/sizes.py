"""How large the house is, as numbers. What they may be stands in `size.toml`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.imports import ROOT, blocks, files, tree_of

OUTSIDE = (
    "operators",
    "tools",
    "testing",
    "database",
    "pending",
    "online",
    "live",
    "debug",
    "typed",
    "answers",
)
"""Rooms of `realtime` that carry no message: operators, tools, the test kit, optional apps."""

PRODUCT = ("realtime", "api", "admin_panel", "messaging_project")

PARTS_OF_ENGINES = ("Streams", "Broker", "Presence", "Cluster", "Lists", "NodeLists")
"""What a new engine has to have. It may leave out `SharedLimits` and `SeenUsers`."""

DOCUMENTS = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "DECISIONS", "CHANGELOG")),
]

LONG_FUNCTION = 60
"""Lines, its docstring among them."""

CLASSES_OF_DJANGO = ("Meta", "Migration", "Command", "Config")
"""Names that Django gives to many classes."""


def measured() -> dict[str, float]:
    """Every number of `size.toml`, as it is now."""
    product = lines(*PRODUCT)
    return {
        "core_lines": lines("realtime") - lines(*(f"realtime/{room}" for room in OUTSIDE)),
        "product_lines": product,
        **{f"{room}_lines": lines(f"realtime/{room}") for room in OUTSIDE},
        "panel_lines": lines("admin_panel"),
        "test_lines_per_line": round(lines("tests") / product, 2),
        "members_of_engines": _members(*PARTS_OF_ENGINES),
        "members_of_contracts": _members(),
        "long_functions": sum(1 for _ in long_functions()),
        "names_of_several_classes": sum(1 for count in class_names().values() if count > 1),
        "options_shown": _options_shown(),
        "words_of_docs": sum(len(path.read_text().split()) for path in DOCUMENTS),
    }


def lines(*packages: str) -> int:
    """The lines of code below some packages; what was generated is not counted."""
    return sum(lines_of_code(path) for path in files(*packages) if "_pb2" not in path.name)


@cache
def lines_of_code(path: Path) -> int:
    """The lines of a file that hold code: no blank line, no comment, no docstring."""
    text = path.read_text()
    docs = {
        line
        for node in blocks(tree_of(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docs
        for number, line in enumerate(text.splitlines(), 1)
    )


def long_functions() -> Iterator[str]:
    """The functions of the product that are longer than `LONG_FUNCTION`."""
    for path in files(*PRODUCT):
        for node in blocks(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONG_FUNCTION:
                    yield f"{path.relative_to(ROOT)}: {node.name}: {length}"


def class_names() -> Counter[str]:
    """How many classes of the product have each name, but for names that begin with "_"."""
    return Counter(
        node.name
        for path in files(*PRODUCT)
        if "_pb2" not in path.name
        for node in blocks(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in CLASSES_OF_DJANGO
    )


def _options_shown() -> int:
    """The rows of the generated tables of options."""
    shown, is_table = 0, False
    for line in (ROOT / "docs/options.md").read_text().splitlines():
        if line.startswith("<!--"):
            is_table = line.startswith("<!-- generated: options")
        shown += is_table and line.startswith("| `")
    return shown


def _members(*names: str) -> int:
    """The members of these contracts in the modules of `engine`; of all of them without names."""
    return sum(
        isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign)
        for path in (ROOT / "realtime/engine").glob("*.py")
        for node in blocks(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base) in ("Protocol", "ABC") for base in node.bases)
        and (not names or node.name in names)
        for member in node.body
    )
