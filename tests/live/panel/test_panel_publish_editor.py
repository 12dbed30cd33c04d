"""The field for JSON of the publish page: where JSON is wrong, and layout."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selenium.webdriver import ActionChains, Keys

from admin_panel.publishing.forms import PublishForm
from tests.live.publish_screen import PublishScreen
from tests.panel.publish_parts import BROKEN

MORE_BROKEN = [
    ("[1,]", 1, 4),
    ('{"a": 1,}', 1, 9),
    ('{"a" 1}', 1, 6),
    ('{"a": }', 1, 7),
    ("[1}", 1, 3),
    ("[", 1, 2),
    ('["abc', 1, 2),
    ('["a\\x"]', 1, 4),
    ('["\\u12g4"]', 1, 3),
    ("01", 1, 2),
    ("1.", 1, 2),
    ("-", 1, 1),
    ("tru", 1, 1),
    ("{}\n{}", 2, 1),
    ('["\U0001f600" 1]', 1, 6),
    ("\u00a01", 1, 1),
]
"""As `BROKEN`: text that is no JSON, line and column of the first character that cannot stand.

A string without end is wrong where it begins, an escape at its backslash; an emoji is one
character.
"""

GOOD = [
    *('{"a": [1, null]}', "null", "0", '""', " [] ", "1e400", '"\\ud800"', '"NaN"', "-0.5E+3"),
    '{"a":1,"a":2}',
    "[" * 500 + "]" * 500,
]


def run(screen: PublishScreen, function: str, *arguments: object) -> Any:
    """Call a function of the module in the browser."""
    script = """
        const [name, args, done] = arguments;
        import("/static/admin_panel/json-text.js")
            .then((module) => done([module[name](...args)]), (error) => done(String(error)));
    """
    answer = screen.browser.execute_async_script(script, function, arguments)
    assert isinstance(answer, list), answer
    return answer[0]


# where it is wrong


def test_place_of_a_mistake_is_the_first_character_that_cannot_stand(
    screen: PublishScreen,
) -> None:
    """One page for all rows: each costs a round trip to the browser only."""
    found = {text: run(screen, "check", text) for text, _, _ in BROKEN + MORE_BROKEN}
    assert {text: at and (at["line"], at["column"]) for text, at in found.items()} == {
        text: (line, column) for text, line, column in BROKEN + MORE_BROKEN
    }


def test_what_is_json_has_no_mistake(screen: PublishScreen) -> None:
    assert [text for text in GOOD if run(screen, "check", text) is not None] == []


@pytest.mark.parametrize("text", [text for text, _, _ in MORE_BROKEN])
def test_server_refuses_the_same_texts(text: str) -> None:
    assert "data" in PublishForm({"channel": "a", "data": text}).errors


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # a driver speaks UTF-8 with its browser: halves of surrogate pairs do not pass it
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="ascii")), inner),
    max_leaves=8,
)


def test_layout_changes_no_value(screen: PublishScreen) -> None:
    texts: list[str] = []

    @settings(max_examples=50)
    @given(values, st.sampled_from([None, 3]))
    def collect(value: object, indent: int | None) -> None:
        texts.append(json.dumps(value, indent=indent, ensure_ascii=False))

    collect()
    script = """
        const [texts, done] = arguments;
        import("/static/admin_panel/json-text.js").then(({ check, compact, format }) => {
            done(texts.map((text) => [check(text), format(text), compact(text)]));
        });
    """
    answers = screen.browser.execute_async_script(script, texts)
    assert len(answers) == len(texts) > 10
    for text, (mistake, formatted, compacted) in zip(texts, answers, strict=True):
        value = json.loads(text)
        assert mistake is None, text
        assert formatted == json.dumps(value, indent=2, ensure_ascii=False)
        assert compacted == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# the buttons

SPELLING = '{"b":1.0,"a":12345678901234567890123,"a":"\\u00e9\\/","e":[{},[],[ ]]}'
LAID_OUT = """\
{
  "b": 1.0,
  "a": 12345678901234567890123,
  "a": "\\u00e9\\/",
  "e": [
    {},
    [],
    []
  ]
}"""


def test_buttons_lay_out_without_touching_the_spelling(screen: PublishScreen) -> None:
    screen.fill("", SPELLING)
    screen.action("format")
    assert screen.texts[1] == LAID_OUT
    screen.action("compact")
    assert screen.texts[1] == SPELLING.replace("[ ]", "[]")


def test_layout_can_be_undone(screen: PublishScreen) -> None:
    screen.data.send_keys('{"a":1}')
    screen.action("format")
    assert screen.texts[1] == '{\n  "a": 1\n}'
    chain = ActionChains(screen.browser)
    chain.key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    assert screen.texts[1] == '{"a":1}'


def test_buttons_lead_to_the_mistake_instead(screen: PublishScreen) -> None:
    screen.fill("", "[1\n2]")
    for action in ("format", "compact"):
        screen.action(action)
        assert (screen.texts[1], screen.cursor) == ("[1\n2]", 3)


# what is shown


def says(screen: PublishScreen, words: str) -> bool:
    return screen.state == words


def test_size_is_told_in_bytes_of_utf_8(screen: PublishScreen) -> None:
    for text, size in {'"hi"': 4, '"\u00e9"': 4, '"\u20ac"': 5, '"\U0001f600"': 6}.items():
        screen.fill("", text)
        screen.until(partial(says, screen, f"Valid JSON, {size} B"), "the size")
