"""A Python file that is changed by insertions alone, at places that its syntax tree gives.

Formatting, comments, encoding and line ends stay as they are. Each insertion is made in the text
and in the tree. At the end the new text is parsed and compared with the tree, so that an insertion
at a wrong place is found before anything is written.
"""

from __future__ import annotations

import ast
import io
import os
import re
import stat
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""A larger file is not written by hand."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_QUOTED = re.compile(r"""(['"])[\w./:-]+\1""")
_COMMENT = re.compile(r"#[^\r\n]*")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class NotSure(Exception):
    """A file has something that only its author can change; the text says what."""


class Unreadable(NotSure):
    """A file cannot be read as Python, so nothing is known about it."""


class Source:
    """One Python file, its text and its tree, and the insertions so far."""

    def __init__(self, directory: Path, path: Path) -> None:
        """Read a file.

        Args:
            directory: of the project.
            path: of the file.

        Raises:
            Unreadable: it cannot be read as Python.
            NotSure: it is not in the project.
        """
        self.name = str(path.relative_to(directory))
        self.path = _inside(directory, path)
        self.encoding, self.text = _decode(_read(self.path))
        self.lines = lines_of(self.text)
        self.tree = _parse(self.text)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        end = re.search(r"\r\n|\r|\n", self.text)
        self._newline = end[0] if end else "\n"
        self._insertions: list[tuple[int, str]] = []

    # questions

    def bindings(self, name: str) -> list[ast.AST]:
        """Return the nodes that give a name a value, or delete it, outside of functions."""
        return [node for node in self.nodes() if name in _bound_names(node)]

    def nodes(self) -> Iterator[ast.AST]:
        """Yield the nodes that run when the module is imported, in no order."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, _SCOPES):
                waiting.extend(ast.iter_child_nodes(node))

    def value(self, name: str) -> ast.expr:
        """Return the value of a name that one statement assigns, and `+=` may add to.

        Raises:
            NotSure: there is no such statement, or something else may change the value.
        """
        assigned = [
            node
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) == name
        ]
        added = [
            node
            for node in self.nodes()
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
            if isinstance(node.target, ast.Name) and node.target.id == name
        ]
        if not assigned:
            raise NotSure(f"no statement of its own sets {name}")
        value = assigned[0].value
        if len(self.bindings(name)) > 1 + len(added) or value is None:
            raise NotSure(f"{name} is set more than once")
        return value

    def constant(self, name: str) -> str | None:
        """Return the string that a name has; None where it has none.

        Raises:
            NotSure: it has a value that is not one string.
        """
        if not self.bindings(name):
            return None
        value = self.value(name)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        raise NotSure(f"{name} is no string")

    def strings(self) -> set[str]:
        """Return the strings in the file."""
        return {
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def has_star_import(self) -> bool:
        return any(isinstance(node, ast.alias) and node.name == "*" for node in self.nodes())

    @property
    def quote(self) -> str:
        """Return the quotation mark that most strings of the file have."""
        marks = Counter(_QUOTED.findall(self.text))
        return "'" if marks["'"] > marks['"'] else '"'

    # insertions

    def append(self, code: str) -> None:
        """Add statements after the last line, behind an empty line."""
        code = self._quoted(code)
        before = "\n" if self.text and not self.text.endswith(("\r", "\n")) else ""
        self._insert(len(self.text), f"{before}\n{code}" if self.text else code)
        self.tree.body += ast.parse(code).body

    def extend(self, node: ast.List | ast.Tuple, first: Sequence[str], last: Sequence[str]) -> None:
        """Add items to a list in brackets.

        Args:
            node: the list.
            first: code of the items in front.
            last: code of the items at the end.

        Raises:
            NotSure: the list is written in a way that is not understood.
        """
        first, last = [*map(self._quoted, first)], [*map(self._quoted, last)]
        if not node.elts:
            self._insert(self._start(node) + 1, ", ".join([*first, *last]))
        else:
            if first:
                self._prepend_items(node, first)
            if last:
                self._append_items(node, last)
        node.elts[:0] = map(_expression, first)
        node.elts += map(_expression, last)

    def import_names(self, module: str, names: Sequence[str], before: ast.stmt) -> None:
        """Import names from a module, in a statement that does so already, or in a new one.

        Args:
            module: absolute name.
            names: in the order of the alphabet.
            before: the statement that needs them.
        """
        above = self.tree.body[: self.tree.body.index(before)]
        imports = [node for node in above if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            if isinstance(node, ast.ImportFrom) and (node.module, node.level) == (module, 0):
                there = [*node.names]
                for name in names:
                    self._import_name(node, name, there)
                return
        code = f"from {module} import {', '.join(names)}\n"
        line = (imports[-1].end_lineno or imports[-1].lineno) + 1 if imports else before.lineno
        self._insert(self._starts[line - 1], code)
        place = self.tree.body.index(imports[-1]) + 1 if imports else self.tree.body.index(before)
        self.tree.body[place:place] = ast.parse(code).body

    def result(self) -> str:
        """Return the text with all insertions.

        Raises:
            NotSure: Python would not read it as it is meant.
        """
        text = self.text
        for at, added in sorted(self._insertions, key=lambda each: each[0], reverse=True):
            text = text[:at] + added + text[at:]
        try:
            right = ast.dump(_parse(text)) == ast.dump(self.tree)
            text.encode(self.encoding)
        except (NotSure, RecursionError, UnicodeError):
            right = False
        if not right:
            raise NotSure("it is written in a way that this command cannot change")
        return text

    def check_writable(self) -> None:
        """Raise NotSure where the permissions of the file, or of its directory, forbid to write."""
        mode = self.path.stat().st_mode
        if not mode & 0o222 or not os.access(self.path, os.W_OK):
            raise NotSure("it is read-only")
        if not os.access(self.path.parent, os.W_OK):
            raise NotSure("its directory is read-only")

    # the text

    def _insert(self, at: int, code: str) -> None:
        added = code.replace("\n", self._newline)
        for number, (place, text) in enumerate(self._insertions):
            if place == at:
                self._insertions[number] = (at, text + added)
                return
        self._insertions.append((at, added))

    def _prepend_items(self, node: ast.List | ast.Tuple, items: Sequence[str]) -> None:
        indent = self._indent(self._start(node.elts[0]))
        bracket = self._start(node) + 1
        after = self._starts[node.lineno]  # the line below the bracket
        if indent is not None and not _COMMENT.sub("", self.text[bracket:after]).strip():
            self._insert(after, "".join(f"{indent}{item},\n" for item in items))
        else:
            self._insert(self._start(node.elts[0]), "".join(f"{item}, " for item in items))

    def _append_items(self, node: ast.List | ast.Tuple, items: Sequence[str]) -> None:
        indent = self._indent(self._start(node.elts[-1]))
        end, bracket = self._end(node.elts[-1]), self._end(node) - 1
        comma = _COMMENT.sub("", self.text[end:bracket]).strip()
        if indent is None:
            self._insert(end, "".join(f", {item}" for item in items))
        elif self._indent(bracket) is None:
            self._insert(end, "".join(f",\n{indent}{item}" for item in items))
        else:
            if not comma:
                self._insert(end, ",")
            line = self._starts[(node.end_lineno or node.lineno) - 1]
            self._insert(line, "".join(f"{indent}{item},\n" for item in items))

    def _import_name(self, node: ast.ImportFrom, name: str, there: Sequence[ast.alias]) -> None:
        for alias in there:
            if name < alias.name:
                at = self._start(alias)
                indent = self._indent(at)
                self._insert(at, f"{name}, " if indent is None else f"{name},\n{indent}")
                node.names.insert(node.names.index(alias), ast.alias(name))
                return
        self._insert(self._end(there[-1]), f", {name}")
        node.names.append(ast.alias(name))

    def _quoted(self, code: str) -> str:
        return code.replace('"', self.quote)

    def _start(self, node: ast.expr | ast.alias) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.alias) -> int:
        return self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        """Return the index in the text of a column, which the tree counts in bytes of UTF-8."""
        before = self.lines[line - 1].encode()[:column].decode(errors="replace")
        return self._starts[line - 1] + len(before)

    def _indent(self, at: int) -> str | None:
        """Return the space in front of a place; None if more than space is in its line."""
        before = self.text[:at]
        indent = before[max(before.rfind("\n"), before.rfind("\r")) + 1 :]
        return indent if not indent.strip() else None


def lines_of(text: str) -> list[str]:
    """Return the lines of Python source, with their ends."""
    return _LINE.findall(text)


def _inside(directory: Path, path: Path) -> Path:
    """Return the file itself, behind symbolic links.

    Raises:
        NotSure: it is not in the project.
    """
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotSure("there is no such file") from None
    if not target.is_relative_to(directory.resolve()):
        raise NotSure("it is a link to a file outside of the project")
    return target


def _read(path: Path) -> bytes:
    try:
        # a pipe would wait for a writer
        if not stat.S_ISREG(path.stat().st_mode):
            raise Unreadable("it is no file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"it cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise Unreadable("it is larger than a file that is written by hand")
    return content


def _decode(content: bytes) -> tuple[str, str]:
    """Return the encoding of a file, and its text."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        text.encode()
        same = text.encode(encoding) == content
    except (SyntaxError, UnicodeError, LookupError):
        raise Unreadable("its encoding is not the one that it names, or UTF-8") from None
    if not same:
        raise Unreadable(f"its encoding {encoding} cannot be kept")
    return encoding, text


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the site's code, such as unknown escapes
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(f"it has a syntax error in line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unreadable("Python cannot read it") from None


def _expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def _target(node: ast.Assign | ast.AnnAssign) -> str | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    match targets:
        case [ast.Name(id=name)]:
            return name
        case _:
            return None


def _bound_names(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.alias(name=name, asname=None):
            return {name.partition(".")[0]}
        case ast.alias(asname=str(name)):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case _:
            return set()
