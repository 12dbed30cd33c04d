"""The publish page in a real browser: sending, what it reaches, the question, drafts, the keys."""

from __future__ import annotations

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from tests.live.panel_site import Guests
from tests.live.publish_page import assert_nothing_came, published
from tests.live.publish_screen import PublishScreen
from tests.panel.paths import page_path
from tests.ready_site import ReadySite

# sending


async def test_invalid_json_is_shown_while_typing_and_not_sent(
    screen: PublishScreen, staffed_site: ReadySite, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", unique)
    screen.fill(unique, "")
    screen.data.send_keys('{"a": [1 2]}')

    screen.until(lambda: "Line 1, column 10:" in screen.state, "the place of the mistake")

    screen.button("default").click()

    # the cursor stands where the mistake is, and nothing was lost or sent
    screen.until(lambda: screen.cursor == 9, "the cursor at the mistake")
    assert screen.texts == (unique, '{"a": [1 2]}')
    await assert_nothing_came(staffed_site, client, unique)


def test_mistake_the_script_lets_through_is_refused_by_the_server_with_its_place(
    screen: PublishScreen, unique: str
) -> None:
    screen.fill(unique, '{"a":\n  b}')
    screen.submit_without_script()
    assert "Not valid JSON at line 2, column 3:" in screen.error_of("data")
    assert screen.texts == (unique, '{"a":\n  b}')
    assert "Line 2, column 3:" in screen.state


# what it reaches


async def test_reach_follows_what_is_typed(
    screen: PublishScreen, guests: Guests, unique: str
) -> None:
    await guests.open("17", unique)
    screen.channels.send_keys(f"{unique} demo:{unique}")
    screen.until(lambda: "2 channels, 1 subscriber" in screen.reach, "what it reaches")
    screen.channels.send_keys(" nope-namespace:a")
    screen.until(lambda: "1 refused: nothing is sent" in screen.reach, "the refusal")
    assert "Error 102: namespace not found." in screen.reach


SUGGESTED = [(' with "spaces"', '"{} with \\"spaces\\""'), ("\x1ca", '"{}\\u001ca"')]
"""The end of a name, and how it is written where names are separated by spaces."""


@pytest.mark.parametrize(("end", "written"), SUGGESTED, ids=["space", "separator of files"])
async def test_channel_in_use_is_suggested_and_added(
    screen: PublishScreen, guests: Guests, unique: str, end: str, written: str
) -> None:
    name = unique + end
    await guests.open("17", name)
    adding = screen.browser.find_element(By.ID, "add-channel")
    adding.send_keys(unique)
    screen.until(lambda: screen.suggestions == [name], "the suggestion")

    script = "arguments[0].value = arguments[1]"
    screen.browser.execute_script(script, adding, name)
    adding.send_keys(Keys.ENTER)

    assert screen.texts[0] == written.format(unique)
    screen.until(lambda: "1 channel, 1 subscriber" in screen.reach, "what it reaches")


# the question before


async def test_large_publication_is_asked_about_in_a_dialog(
    screen: PublishScreen, staffed_site: ReadySite, guests: Guests, unique: str
) -> None:
    names = " ".join([unique, *(f"{unique}-{n}" for n in range(10))])
    client = await guests.open("17", unique)
    screen.fill(names, '"to many"')
    screen.button("default").click()
    screen.until(lambda: screen.dialog is not None, "the question")
    assert "11 channels, 1 subscriber" in (screen.dialog or "")

    # it begins at the way back, and Escape takes that way, too
    assert screen.focused == "Back to the form"
    screen.press(Keys.ESCAPE)

    screen.until(lambda: screen.dialog is None, "the form")
    assert screen.texts == (names, '"to many"')
    await assert_nothing_came(staffed_site, client, unique)

    screen.button("default").click()
    screen.until(lambda: screen.dialog is not None, "the question")
    screen.press(Keys.TAB, Keys.ENTER)

    assert await published(client) == "to many"
    screen.until(lambda: screen.messages, "the page after it")
    assert "Published into 11 channels" in screen.messages[0]


# drafts


def test_draft_is_offered_after_a_reload_and_restored(screen: PublishScreen, unique: str) -> None:
    screen.fill(f"demo:{unique}", '{"kept": 1.0')
    screen.open()
    assert screen.texts == ("", "")
    assert "was not published" in screen.draft
    screen.browser.find_element(By.CSS_SELECTOR, "#draft [data-action=restore]").click()
    assert screen.texts == (f"demo:{unique}", '{"kept": 1.0')
    assert screen.draft == ""


def test_draft_that_is_discarded_is_offered_no_more(screen: PublishScreen, unique: str) -> None:
    screen.fill(unique, "1")
    screen.open()
    screen.browser.find_element(By.CSS_SELECTOR, "#draft [data-action=discard]").click()
    assert screen.draft == ""
    assert screen.open().draft == ""


def test_draft_is_gone_when_it_was_published(screen: PublishScreen, unique: str) -> None:
    screen.fill(unique, f'"{unique}"')
    screen.publish()
    assert screen.messages == [f"Published into {unique}."]
    assert unique not in screen.kept_in_browser
    assert "sent=" not in screen.browser.current_url
    assert screen.open().draft == ""


def test_draft_stays_while_the_server_refuses(screen: PublishScreen, unique: str) -> None:
    screen.fill(f"nope-namespace:{unique}", f'"{unique}"')
    screen.publish()
    assert "Error 102" in screen.error_of("channel")
    assert screen.draft == "", "what is in the form is offered to it"
    screen.open()
    assert "was not published" in screen.draft


def test_draft_of_another_operator_is_not_offered(screen: PublishScreen, unique: str) -> None:
    screen.fill(unique, "1")
    screen.open()
    assert "was not published" in screen.draft
    screen.rename_owner_of_drafts("admin:operator", "admin:somebody")
    assert screen.open().draft == ""
    assert unique in screen.kept_in_browser, "the other one lost it"


# the keyboard only


async def test_keyboard_is_enough_and_shows_where_it_is(
    screen: PublishScreen, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", unique)
    screen.focus_tab_of_page()
    screen.press(Keys.TAB)
    assert screen.focused == "channel"
    seen = [screen.outline]
    screen.press(*unique)
    for expected in ("add-channel", "Add", "Format", "Compact", "data"):
        screen.press(Keys.TAB)
        assert screen.focused == expected
        seen.append(screen.outline)
    screen.press('{"a": 1}')
    screen.until(lambda: "1 subscriber" in screen.reach, "what it reaches")

    screen.press(Keys.TAB)
    seen.append(screen.outline)
    assert screen.focused == "Tags, version and more"
    screen.press(Keys.TAB)
    assert screen.focused == "Publish"
    seen.append(screen.outline)
    screen.press(Keys.ENTER)

    assert await published(client) == {"a": 1}
    assert all(seen), seen
    screen.until(lambda: screen.messages, "the page after it")


async def test_buttons_stay_under_the_pointer_when_the_reach_appears(
    screen: PublishScreen, guests: Guests, unique: str
) -> None:
    await guests.open("17", unique)
    buttons = [screen.button("default"), screen.button("check")]
    before = [button.rect for button in buttons]
    screen.fill(unique, "1")
    screen.until(lambda: "1 subscriber" in screen.reach, "what it reaches")
    assert [button.rect for button in buttons] == before


async def test_control_and_enter_publish_from_the_editor(
    screen: PublishScreen, guests: Guests, unique: str
) -> None:
    client = await guests.open("17", unique)
    screen.fill(unique, '"hi"')
    screen.data.click()
    chain = ActionChains(screen.browser)
    chain.key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    assert await published(client) == "hi"
    screen.until(lambda: screen.messages, "the page after it")


def test_user_of_the_form_is_led_to_the_first_mistake(screen: PublishScreen) -> None:
    screen.fill("", "1")
    screen.publish()
    assert "This field is required." in screen.error_of("channel")
    assert screen.focused == "channel"


def test_publication_is_used_again_by_its_link(screen: PublishScreen, unique: str) -> None:
    screen.fill(f"{unique} {unique}-b", '{"again": 1.0}')
    screen.publish()
    link = screen.browser.find_element(By.LINK_TEXT, "Use again")
    assert link.accessible_name.startswith(f"Use again {unique} {unique}-b ")
    screen.leave(link.click)
    assert screen.texts == (f"{unique}\n{unique}-b", '{"again": 1.0}')
    assert page_path("publication") in screen.browser.current_url
