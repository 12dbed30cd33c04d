"""The JSON editor of the publish page: where JSON is wrong, layout, and the keys."""

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


def test_marked_line_and_numbers_follow_the_text(screen: PublishScreen) -> None:
    lines = ["[", *("1," for _ in range(60)), "x", "]"]
    screen.fill("", "\n".join(lines))
    screen.until(lambda: "Line 62, column 1:" in screen.state, "the mistake")
    assert screen.marked_line == 62
    assert screen.line_numbers == [str(n) for n in range(1, 64)]
    screen.scroll_editor(400)
    screen.until(lambda: screen.marked_line_seen == 62 - 400 / 20, "the mark beside its line")


# the keys

TYPED = [
    (["{", Keys.ENTER, '"a": ['], '{\n  "a": ['),
    (["  1,", Keys.ENTER, "2,", Keys.ENTER, "3"], "  1,\n  2,\n  3"),
    (["[]", Keys.ARROW_LEFT, Keys.ENTER, "1"], "[\n  1\n]"),
    (["1", Keys.TAB, "2"], "1  2"),
    (["  1", Keys.SHIFT, Keys.TAB, Keys.NULL], "1"),
    (["1", Keys.SHIFT, Keys.TAB, Keys.NULL], "1"),
]


def test_keys_indent(screen: PublishScreen) -> None:
    for keys, text in TYPED:
        screen.fill("", "")
        screen.data.send_keys(*keys)
        assert screen.texts[1] == text
        assert screen.focused == "data"


def test_tab_moves_all_lines_that_are_selected(screen: PublishScreen) -> None:
    screen.fill("", "[\n1,\n\n2\n]")
    screen.select_in_editor(2, 7)
    screen.press(Keys.TAB)
    assert screen.texts[1] == "[\n  1,\n\n  2\n]"
    screen.data.send_keys(Keys.SHIFT, Keys.TAB, Keys.NULL)
    assert screen.texts[1] == "[\n1,\n\n2\n]"


@pytest.mark.parametrize("back", [False, True], ids=["forwards", "backwards"])
def test_escape_sets_the_tab_key_free(screen: PublishScreen, back: bool) -> None:
    screen.data.send_keys("1", Keys.ESCAPE)
    screen.until(lambda: "The Tab key now leaves the editor." in screen.state, "the way out")
    screen.data.send_keys(*([Keys.SHIFT, Keys.TAB, Keys.NULL] if back else [Keys.TAB]))
    assert screen.focused == ("Compact" if back else "Tags, version and more")
    assert screen.texts[1] == "1"


def test_tab_indents_again_after_another_key(screen: PublishScreen) -> None:
    screen.data.send_keys("1", Keys.ESCAPE, "2", Keys.TAB)
    assert screen.texts[1] == "12  "
    assert screen.focused == "data"


def test_way_out_of_the_editor_is_told_to_screen_readers(screen: PublishScreen) -> None:
    described = str(screen.data.get_attribute("aria-describedby")).split()
    assert "Esc, then Tab leaves the editor." in " ".join(map(screen.text_of, described))
