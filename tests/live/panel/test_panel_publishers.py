"""Who published, in the live tail and in the history: by the position, whatever the data are."""

from __future__ import annotations

from contextlib import closing

from tests.live.panel_site import OPERATOR, PASSWORD, sign_in
from tests.live.panel_staff import post
from tests.live.publish_page import send
from tests.live.tail_page import TailPage
from tests.panel.paths import page_path


def test_operator_who_published_is_named_in_tail_and_history_and_others_are_not(
    tail_page: TailPage, unique: str
) -> None:
    page = tail_page
    page.open(f"demo:{unique}")
    page.publish({"same": 1})
    with closing(sign_in(page.server.address, PASSWORD)) as browser:
        send(browser, page.channel, '{"same": 1}')
        params = f'{{"channel": "{page.channel}", "data": {{"same": 1}}}}'
        run = page_path("console") + "run/"
        assert post(browser, run, method="publish", params=params).json()["ok"]
        send(browser, page.channel, '{"same": 1}', once="first")
        page.publish({"same": 1})
        send(browser, page.channel, '{"same": 1}', once="first")

        def named() -> list[str]:
            return page.texts("#tail-list li :is([data-part=operator], [data-part=server])")

        expected = ["server", OPERATOR, OPERATOR, OPERATOR, "server"]
        page.until(lambda: named() == expected, "who published")
        page.element("tail-filter").send_keys(OPERATOR)
        assert len(page.data) == 3

        history = browser.get(page_path("channel", channel=page.channel)).text
    entries = history.partition('id="channel-history"')[2].split("panel-entry-head")[1:]
    assert [">operator</span>" in entry for entry in entries] == [
        name == OPERATOR for name in expected
    ]
