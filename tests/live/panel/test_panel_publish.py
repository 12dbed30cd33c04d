"""The publish page without JavaScript: what arrives and is logged, many channels, the question."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx
import pytest

from tests.live.channel_page import data_in, section, shown
from tests.live.panel_site import Guests
from tests.live.panel_staff import logged, post
from tests.live.publish_page import (
    PAGE,
    assert_nothing_came,
    errors_of_channel,
    field,
    published,
    reach,
    recent,
    send,
)
from tests.ready_site import ReadySite

# many channels


async def test_publication_reaches_every_channel_of_the_list(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-a", f"{unique}-b", f"{unique} with spaces"]
    clients = [await guests.open("17", name) for name in names]
    response = send(operator, f'{names[0]} {names[1]}\n"{names[2]}"', '{"n": 1.0}')
    for client in clients:
        assert await published(client) == {"n": 1.0}
    assert f"Published into 3 channels: {', '.join(names)}." in unescape(response.text)
    index = operator.get("/admin/").text.partition("Recent actions")[2]
    assert all(name in index for name in names)


def test_tags_and_version_go_along_and_the_history_shows_them(
    operator: httpx.Client, unique: str
) -> None:
    channel = f"demo:{unique}"
    extras = {"tags": "team=red\nformula=a<b", "version": "2", "version_epoch": "run"}
    send(operator, channel, "1", **extras)
    send(operator, channel, "2", version="1")
    send(operator, channel, "3", once=unique)
    send(operator, channel, "4", once=unique)
    send(operator, channel, "5", skip_history="on")

    history = section(shown(operator, channel), "history")

    assert data_in(history) == ["3", "1"]
    assert "<bdi>team</bdi>=<bdi>red</bdi>" in history
    assert "<bdi>formula</bdi>=<bdi>a&lt;b</bdi>" in history
    times = [
        datetime.fromisoformat(time) for time in re.findall('<time datetime="([^"]*)"', history)
    ]
    assert len(times) == 2
    assert times == sorted(times, reverse=True)
    assert all(timedelta(0) <= datetime.now(UTC) - time < timedelta(hours=1) for time in times)


def test_version_without_history_is_an_error_of_the_channel(
    operator: httpx.Client, unique: str
) -> None:
    html = send(operator, unique, version="1").text
    assert "Error 108: not available." in errors_of_channel(html)
    assert '<details class="panel-more" id="more" open>' in html


def test_question_and_the_way_back_keep_the_form(operator: httpx.Client, unique: str) -> None:
    names = "\n".join(f"{unique}-{n}" for n in range(11))
    extras = {"tags": 'team="<b>"', "once": unique, "skip_history": "on"}
    html = send(operator, names, '{"t":  "<b>"}', **extras).text
    asked = hidden(html, *extras)

    html = post(operator, PAGE, **asked, edit="Back to the form").text

    assert {name: asked[name] for name in extras} == extras
    assert field(html, "tags") == extras["tags"]
    assert f'name="once" value="{unique}"' in html
    assert re.search('name="skip_history"[^>]*checked', html)
    assert (field(html, "channel"), field(html, "data")) == (names, '{"t":  "<b>"}')
    assert "errornote" not in html
    assert not any(unique in row for row in recent(html))


def test_list_of_channels_is_kept_for_the_next_publication(
    operator: httpx.Client, unique: str
) -> None:
    response = send(operator, f'{unique} "{unique} b"')
    assert field(response.text, "channel") == f'{unique}\n"{unique} b"'


def test_list_of_channels_too_long_for_an_address_is_left_out_of_it(
    operator: httpx.Client, unique: str
) -> None:
    names = " ".join(f"{unique}-{n}-{'x' * 200}" for n in range(100))
    response = send(operator, names, confirmed="1")
    assert response.status_code == 200
    assert "Published into 100 channels" in response.text
    assert "and 90 more" in response.text
    assert len(str(response.url)) < 200


# refusals

REFUSED = [
    ("nope-namespace:a", "Error 102: namespace not found."),
    ("שלום", "Error 107: bad request."),
    ('"\\u0000"', "A name contains a null character."),
]
"""Names, and what the service (spec: Errors) or the form answers."""


@pytest.mark.parametrize(("name", "message"), REFUSED, ids=["102", "107", "null"])
async def test_refused_channel_is_named_next_to_the_field_and_nothing_goes_out(
    staffed_site: ReadySite,
    operator: httpx.Client,
    guests: Guests,
    unique: str,
    name: str,
    message: str,
) -> None:
    client = await guests.open("17", unique)
    html = send(operator, f"{unique} {name}", '{"a":1.50}').text
    assert message in errors_of_channel(html)
    assert field(html, "channel") == f"{unique} {name}"
    assert field(html, "data") == '{"a":1.50}'
    assert not any(unique in row for row in recent(html))
    await assert_nothing_came(staffed_site, client, unique)


def test_errors_of_many_channels_are_cut_with_their_number(operator: httpx.Client) -> None:
    names = " ".join(f"nope-namespace:{n:02}" for n in range(13))
    errors = errors_of_channel(send(operator, names).text)
    assert "nope-namespace:09: Error 102" in errors
    assert "nope-namespace:10" not in errors
    assert "3 more channels are refused." in errors


# the question before


async def test_more_than_ten_channels_are_asked_about_first(
    staffed_site: ReadySite, operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = "\n".join([unique, *(f"{unique}-{n}" for n in range(10))])
    client = await guests.open("17", unique)

    html = send(operator, names, '{"t":"<b>"}', draft="d1").text

    assert "Confirm a large publication" in html
    assert "<strong>11</strong> channels, <strong>1</strong> subscriber" in reach(html)
    await assert_nothing_came(staffed_site, client, unique)

    response = post(operator, PAGE, **hidden(html), confirmed="Yes, publish")

    assert await published(client) == {"t": "<b>"}
    assert "Published into 11 channels" in response.text
    assert response.url.params["sent"] == "d1"


def hidden(html: str, *others: str) -> dict[str, str]:
    """The hidden fields of the page that asks; `others`: besides those that are always there."""
    form = html.partition('id="confirm-form"')[2].partition("</form>")[0]
    names = ("channel", "data", "draft", *others)
    return {
        name: unescape(form.partition(f'name="{name}" value="')[2].partition('"')[0])
        for name in names
    }


async def test_more_than_a_hundred_subscribers_are_asked_about_first(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    names = [f"{unique}-{n}" for n in range(10)]
    for _ in range(10):
        await guests.open("17", *names)
    assert "Published into 10 channels" in send(operator, " ".join(names)).text
    await guests.open("17", names[0])
    html = send(operator, " ".join(names)).text
    assert "Confirm a large publication" in html
    assert "<strong>10</strong> channels, <strong>101</strong> subscribers" in reach(html)


def test_one_entry_of_the_log_has_the_channels_that_have_the_publication(
    staffed_site: ReadySite, operator: httpx.Client, unique: str
) -> None:
    names = [f"demo:{unique}", unique, f"demo:{unique}-b"]  # the second one keeps no history

    html = send(operator, "\n".join(names), f'"{unique}"', version="1").text

    assert "Not published into 1 of 3 channels" in html
    [(_name, _model, targets, message)] = logged(staffed_site, unique)
    assert targets.split() == [names[0], names[2]]
    assert message == f'Published: "{unique}"'
    assert field(html, "channel") == unique

    send(operator, unique, '"nowhere"', version="1")
    assert len(logged(staffed_site, unique)) == 1


async def test_data_arrive_as_they_were_typed(
    operator: httpx.Client, guests: Guests, unique: str
) -> None:
    subscriber = await guests.open("17", unique)
    send(operator, unique, '{"b":1.0,"a":12345678901234567890123}')
    await subscriber.publication()
    assert '{"b":1.0,"a":12345678901234567890123}' in str(subscriber.frames[-1])
