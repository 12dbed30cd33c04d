"""Mutations: the faults that `mutants` plants, one change of one function or script each.

    Python   a comparison, condition, `and`, sum, number, truth or returned value is turned;
             a statement is left out; a statement that waits changes places with the next one
    Lua      the same, by its tokens; a line that does something is left out

A mutation is known by its file, its function and its change, and not by its line: so
`equivalent.toml` can name mutations, and outlives edits of the code around them.
"""

from __future__ import annotations

import ast
import builtins
import gc
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from realtime.engine.redis.scripts import APPEND, PUT
from realtime.redis.commands import Script
from tests.simulation.redis_database import Database
from tests.simulation.redis_values import Reply

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mutation(NamedTuple):
    """One change of one file."""

    file: str
    line: int
    function: str
    """Qualified, in its module; the name of a script."""
    change: str
    """`before -> after`; the second one in a function that reads the same ends with ` #2`."""
    text: str
    """The whole file with the change."""

    @property
    def is_script(self) -> bool:
        """Whether it is in Lua."""
        return self.file.endswith(".lua")

    @property
    def place(self) -> tuple[str, int]:
        """What `note_lines` counts of it: its line, or the runs of its script."""
        return (self.function, 0) if self.is_script else (self.file, self.line)

    def plant(self) -> None:
        """Put the change into this process, for good. The file stays as it is."""
        if self.is_script:
            _plant_script(self)
        else:
            _plant_function(self)


def mutations(file: str) -> list[Mutation]:
    """Return all mutations of a file, by its path below the root."""
    source = (ROOT / file).read_text(encoding="utf-8")
    found = _of_script(file, source) if file.endswith(".lua") else _of_module(file, source)
    seen: Counter[tuple[str, str]] = Counter()
    numbered = []
    for each in found:
        seen[each.function, each.change] += 1
        number = seen[each.function, each.change]
        numbered.append(each._replace(change=f"{each.change} #{number}") if number > 1 else each)
    return numbered


# Python

_TURNED: dict[type[ast.AST], type[Any]] = {
    ast.Eq: ast.NotEq,
    ast.Lt: ast.LtE,
    ast.Gt: ast.GtE,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Add: ast.Sub,
    ast.Mult: ast.Div,
}
_TURNED |= {after: before for before, after in _TURNED.items()}
_TURNED_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NEGATED_BY_TURNING = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


def _of_module(file: str, source: str) -> Iterator[Mutation]:
    text = _Text(source)
    for name, function in _functions(ast.parse(source), ""):
        returns_bool = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
        for node in _nodes(function):
            for change in _changes(node, returns_bool):
                if "super()" in ast.unparse(change.first) and "super()" not in change.after:
                    continue  # without it, a function has no such cell
                changed = text.replaced(change.first, change.last, change.after)
                yield Mutation(file, change.first.lineno, name, change.name, changed)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _nodes(function: Function) -> Iterator[ast.AST]:
    """Iterate over what a function does, from its beginning; not over its signature."""
    yield ast.Module(function.body, [])  # its statements, and no decorator
    waiting: list[ast.AST] = [*reversed(function.body)]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):  # texts; and Python 3.11 says wrong places in them
            waiting.extend(list(ast.iter_child_nodes(node))[::-1])


class _Change(NamedTuple):
    """The first and the last node to replace, with which text, and what a reader is told."""

    first: ast.expr | ast.stmt
    last: ast.expr | ast.stmt
    after: str
    name: str


def _changes(node: ast.AST, returns_bool: bool) -> Iterator[_Change]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _TURNED:
            turned = ast.Compare(node.left, [_TURNED[type(op)]()], node.comparators)
            yield _expression(node, turned)
        case ast.BoolOp():
            yield _expression(node, ast.BoolOp(_TURNED[type(node.op)](), node.values))
        case ast.BinOp() if type(node.op) in _TURNED:
            yield _expression(node, ast.BinOp(node.left, _TURNED[type(node.op)](), node.right))
        case ast.Call(func=ast.Name(id=name)) if name in _TURNED_NAMES:
            turned_name = ast.Name(_TURNED_NAMES[name])
            yield _expression(node, ast.Call(turned_name, node.args, node.keywords))
        case ast.Return(value=ast.expr() as value):
            yield from _return(value, returns_bool)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, int | float):
            yield _constant(node, child)
    tests = node.ifs if isinstance(node, ast.comprehension) else [getattr(node, "test", None)]
    for test in tests:
        if isinstance(test, ast.expr) and not isinstance(node, ast.Assert):
            yield from _negated(test)
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, [])
        if isinstance(statements, list):
            yield from _of_block(statements)


def _expression(before: ast.expr, after: ast.expr) -> _Change:
    text = ast.unparse(after)
    return _Change(before, before, f"({text})", f"{ast.unparse(before)} -> {text}")


def _constant(parent: ast.AST, constant: ast.Constant) -> _Change:
    before, value = ast.unparse(parent), constant.value
    assert isinstance(value, int | float)
    constant.value = (not value) if isinstance(value, bool) else value + 1
    after, name = repr(constant.value), f"{before} -> {ast.unparse(parent)}"
    constant.value = value
    return _Change(constant, constant, after, name)


def _negated(test: ast.expr) -> Iterator[_Change]:
    match test:
        case ast.Compare(ops=[op]) if isinstance(op, _NEGATED_BY_TURNING):
            return
        case ast.UnaryOp(op=ast.Not(), operand=positive):
            yield _expression(test, positive)
        case _:
            yield _expression(test, ast.UnaryOp(ast.Not(), test))


def _return(value: ast.expr, returns_bool: bool) -> Iterator[_Change]:
    if returns_bool and not isinstance(value, ast.Constant):
        yield from _negated(value)
    elif not isinstance(value, ast.Constant):
        yield _expression(value, ast.Constant(None))


def _of_block(statements: list[ast.stmt]) -> Iterator[_Change]:
    for place, statement in enumerate(statements):
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue  # a docstring
            case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
                pass  # without it, its name is unknown
            case (
                ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete()
                | ast.Raise() | ast.Break() | ast.Continue() | ast.Return(value=None)
            ):  # fmt: skip
                yield _Change(statement, statement, "pass", f"{ast.unparse(statement)} -> pass")
        following = statements[place + 1 : place + 2]
        if following and _may_change_places(statement, following[0]):
            first, then = ast.unparse(statement), ast.unparse(following[0])
            after = f"{then}; {first}"
            yield _Change(statement, following[0], after, f"{first}; {then} -> {after}")


def _may_change_places(first: ast.stmt, then: ast.stmt) -> bool:
    simple = (ast.Expr, ast.Assign, ast.AugAssign)
    if not isinstance(first, simple) or not isinstance(then, simple):
        return False
    nodes = [*ast.walk(first), *ast.walk(then)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return any(isinstance(node, ast.Await) for node in nodes) and not any(
        node.id in bound for node in names if isinstance(node.ctx, ast.Load)
    )


class _Text:
    """A source by the places that `ast` says: lines, and bytes in them."""

    def __init__(self, source: str) -> None:
        self._lines = source.encode().splitlines(keepends=True)

    def replaced(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, text: str) -> str:
        assert last.end_lineno is not None
        lines = self._lines
        before = lines[first.lineno - 1][: first.col_offset]
        after = lines[last.end_lineno - 1][last.end_col_offset :]
        changed = [*lines[: first.lineno - 1], before, text.encode(), after]
        return b"".join([*changed, *lines[last.end_lineno :]]).decode()


def _plant_function(mutation: Mutation) -> None:
    code = compile(mutation.text, str(ROOT / mutation.file), "exec")
    if not _replace_code(code, mutation.function):
        raise LookupError(f"{mutation.function} of {mutation.file} is not in use")


def _replace_code(module: CodeType, name: str = "") -> int:
    """Give the functions of a module, or those of a name, new code. Return how many have it."""
    codes = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes(module)
        if code.co_qualname == name or (not name and "<" not in code.co_qualname)
    }
    replaced = 0
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            old = function.__code__
            new = codes.get((old.co_qualname, old.co_firstlineno))
            if new is not None and old.co_filename == new.co_filename:
                function.__code__ = new
                replaced += 1
    return replaced


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


# which lines are executed


def note_lines(files: Iterable[str], executed: Counter[tuple[str, int]]) -> None:
    """Count how often each line of these files is executed from now on; a script is one line."""
    builtins.__dict__["__executed__"] = executed.update
    for file in files:
        if file.endswith(".lua"):
            _note_runs(file, executed)
            continue
        import_module(file.removesuffix(".py").replace("/", "."))
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        noting = _Noting(file)
        for _, function in _functions(tree, ""):
            noting.generic_visit(function)
        _replace_code(compile(ast.fix_missing_locations(tree), str(ROOT / file), "exec"))


def _note_runs(file: str, executed: Counter[tuple[str, int]]) -> None:
    names = {script.sha: script.name for script in _scripts(Path(file).stem)}
    run = Database._run

    def noting(database: Database, sha: str, number: bytes, rest: Sequence[bytes]) -> Reply:
        if sha in names:
            executed[names[sha], 0] += 1
        return run(database, sha, number, rest)

    Database._run = noting  # type: ignore[assignment, method-assign]


class _Noting(ast.NodeTransformer):
    """Puts a note of its lines before each statement."""

    def __init__(self, file: str) -> None:
        self._file = file

    def generic_visit(self, node: ast.AST) -> Any:
        super().generic_visit(node)
        if not isinstance(node, ast.stmt):
            return node
        inner = [each for each in ast.walk(node) if isinstance(each, ast.stmt)][1:]
        last = min((each.lineno for each in inner), default=(node.end_lineno or 0) + 1)
        lines = tuple((self._file, n) for n in range(node.lineno, max(last, node.lineno + 1)))
        note = ast.parse(f"__executed__({lines!r})").body[0]
        for each in ast.walk(note):
            ast.copy_location(each, node)
        return [note, node]


# Lua

_LUA_TURNED = {
    "==": "~=",
    "~=": "==",
    "<=": "<",
    "<": "<=",
    ">=": ">",
    ">": ">=",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "math.min": "math.max",
    "math.max": "math.min",
    "true": "false",
    "false": "true",
}
_LUA_TOKEN = re.compile(
    r"""'[^']*'|--.*|math\.m(?:in|ax)|\.\.|[=~<>]=|[<>+*/-]|\b(?:and|or|true|false)\b|\b\d+\b"""
)
_LUA_CONDITION = re.compile(r"^(.*\b(?:if|elseif|while) )(.+)( (?:then|do)\b.*)$")
_OF_MAPS, _OF_MAPS_END = "--[=[map", "--]=]"
"""Around lines of "append" that are code in "put" alone."""
_LUA_STATEMENT = re.compile(r"^\s*(?:(?:redis\.)?call\(.*\)|(?!local\b)\w[\w, ]* = .*)$")


def _of_script(file: str, source: str) -> Iterator[Mutation]:
    lines = source.splitlines(keepends=True)
    name = script = Path(file).stem
    for number, line in enumerate(lines):
        if line.strip() in (_OF_MAPS, _OF_MAPS_END):
            name = PUT.name if line.strip() == _OF_MAPS else script
        for changed in _changed_lines(line.rstrip("\n")):
            text = "".join([*lines[:number], changed, "\n", *lines[number + 1 :]])
            change = f"{line.strip()} -> {changed.strip()}"
            yield Mutation(file, number + 1, name, change, text)


def _changed_lines(line: str) -> Iterator[str]:
    if line.lstrip().startswith("--"):
        return
    for token in _LUA_TOKEN.finditer(line):
        text = token.group()
        turned = str(int(text) + 1) if text.isdigit() else _LUA_TURNED.get(text)
        if turned is not None:
            yield line[: token.start()] + turned + line[token.end() :]
    if condition := _LUA_CONDITION.match(line):
        head, test, tail = condition.groups()
        yield f"{head}not ({test}){tail}"
    if _LUA_STATEMENT.match(line):
        yield "do end"


def _scripts(name: str) -> list[Script[Any]]:
    """Return the scripts of a file: "put" is made of "append"."""
    names = {name, PUT.name} if name == APPEND.name else {name}
    found = [each for each in gc.get_objects() if isinstance(each, Script) and each.name in names]
    if not found:
        raise LookupError(f"no script is named {name}")
    return found


def _plant_script(mutation: Mutation) -> None:
    for script in _scripts(Path(mutation.file).stem):
        text = mutation.text
        if script.name == PUT.name:
            text = text.replace(_OF_MAPS, "--")
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(script, "text", text)
        object.__setattr__(script, "sha", digest)
