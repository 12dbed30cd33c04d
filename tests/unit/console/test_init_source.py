"""Where insertions go in Python source, and what is no Python source."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from realtime.console.init.source import MAX_BYTES, NotSure, Source


def source_of(directory: Path, content: bytes) -> Source:
    path = directory / "module.py"
    path.write_bytes(content)
    return Source(directory, path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A = []\n", 'A = ["x", "y"]\n'),
        ("A = [\n]\n", 'A = ["x", "y"\n]\n'),
        ("A = ['b']\n", "A = ['x', 'b', 'y']\n"),
        ("A = ('b',)\n", "A = ('x', 'b', 'y',)\n"),
        ("A = ['b', ]  # all\n", "A = ['x', 'b', 'y', ]  # all\n"),
        ("A = [\n    'b',\n]\n", "A = [\n    'x',\n    'b',\n    'y',\n]\n"),
        ("A = [\n\t'b'  # it\n]\n", "A = [\n\t'x',\n\t'b',  # it\n\t'y',\n]\n"),
        (
            "A = [  # all\n  # b's\n  'b',\n  # no: 'c',\n  ]",
            "A = [  # all\n  'x',\n  # b's\n  'b',\n  # no: 'c',\n  'y',\n  ]",
        ),
        ("A = ['b',\n     'c']\n", "A = ['x', 'b',\n     'c',\n     'y']\n"),
        ("A = [\n    'b', 'c',\n]\n", "A = [\n    'x',\n    'b', 'c', 'y',\n]\n"),
        ("A = [\r\n    'b',\r\n]\r\n", "A = [\r\n    'x',\r\n    'b',\r\n    'y',\r\n]\r\n"),
        ("A = [\r    'b',\r]\r", "A = [\r    'x',\r    'b',\r    'y',\r]\r"),
        (
            "'é\u2028\x0c'; A = ['é', 'b']; B = 1\n",
            "'é\u2028\x0c'; A = ['x', 'é', 'b', 'y']; B = 1\n",
        ),
        ("A = [\n    'b'\n    'c',\n]", "A = [\n    'x',\n    'b'\n    'c',\n    'y',\n]"),
    ],
    ids=ascii,
)
def test_items_are_written_as_those_of_the_list(tmp_path: Path, before: str, after: str) -> None:
    source = source_of(tmp_path, before.encode())
    value = source.value("A")
    assert isinstance(value, ast.List | ast.Tuple)

    source.extend(value, ['"x"'], ['"y"'])

    assert source.result() == after


@pytest.mark.parametrize("code", ["A = ('b'), ('c')\n", "A = [('b')]\n", "A = ()\n"])
def test_list_that_would_get_another_meaning_is_refused(tmp_path: Path, code: str) -> None:
    source = source_of(tmp_path, code.encode())
    value = source.value("A")
    assert isinstance(value, ast.List | ast.Tuple)

    source.extend(value, ['"x"'], [])

    with pytest.raises(NotSure, match="in a way that this command cannot change"):
        source.result()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from m import path\nA = 1\n", "from m import include, path\nA = 1\n"),
        ("from m import a, z as b\nA = 1\n", "from m import a, include, path, z as b\nA = 1\n"),
        (
            "from m import (\n    a,\n)\nA = 1\n",
            "from m import (\n    a, include, path,\n)\nA = 1\n",
        ),
        (
            "from m import (\n\tz,\n)\nA = 1\n",
            "from m import (\n\tinclude,\n\tpath,\n\tz,\n)\nA = 1\n",
        ),
        ("import a\n\nA = 1\n", "import a\nfrom m import include, path\n\nA = 1\n"),
        ("'''Text.'''\nA = 1\n", "'''Text.'''\nfrom m import include, path\nA = 1\n"),
        ("A = 1\nfrom m import z\n", "from m import include, path\nA = 1\nfrom m import z\n"),
    ],
)
def test_names_are_imported_where_imports_are(tmp_path: Path, before: str, after: str) -> None:
    source = source_of(tmp_path, before.encode())
    names = ["include"] if "import path" in before else ["include", "path"]
    (statement,) = (node for node in source.tree.body if isinstance(node, ast.Assign))

    source.import_names("m", names, statement)

    assert source.result() == after


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (b"\xef\xbb\xbfB = '\xc3\xa9'\n", b"\xef\xbb\xbfB = '\xc3\xa9'\n\nA = 'x'\n"),
        (b"# coding: latin-1\nB = '\xe9'", b"# coding: latin-1\nB = '\xe9'\n\nA = 'x'\n"),
        (b"B = 1\r\n", b'B = 1\r\n\r\nA = "x"\r\n'),
        (b"", b'A = "x"\n'),
    ],
    ids=ascii,
)
def test_bytes_of_a_file_stay(tmp_path: Path, content: bytes, after: bytes) -> None:
    source = source_of(tmp_path, content)

    source.append('A = "x"\n')

    assert source.result().encode(source.encoding) == after


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"A = [\n", "it has a syntax error in line 1"),
        (b"A = 1\0\n", "it has a syntax error|Python cannot read it"),
        (b"A = '\xe9'\n", "its encoding is not the one that it names, or UTF-8"),
        (b"# coding: rot13\nA = 1\n", "its encoding is not"),
        (b"# coding: no-such\nA = 1\n", "its encoding is not"),
        (b"# coding: utf-7\nA = '+AGE-'\n", "its encoding utf-7 cannot be kept"),
        (b"A = " + b"(" * 5000 + b")" * 5000, "syntax error|Python cannot read it"),
        (b"#" * (MAX_BYTES + 1), "it is larger than a file that is written by hand"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_file_that_is_no_python_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(NotSure, match=reason):
        source_of(tmp_path, content)


def test_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "module.py")

    with pytest.raises(NotSure, match="it is no file"):
        Source(tmp_path, tmp_path / "module.py")
