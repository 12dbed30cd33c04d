"""What decides in a channel: a hook closes the namespace in which its pattern can match."""

from __future__ import annotations

from typing import Any

import pytest

from realtime import channel_rules
from realtime.config.reader import load
from realtime.errors import Error, InternalError, NotAvailable, PermissionDenied
from realtime.hooks.deciding import Deciding, Kind, may_match
from realtime.hooks.patterns import Pattern
from realtime.hooks.registry import Registry
from realtime.hooks.site import SiteHooks
from realtime.node.hooks import NO_HANDSHAKE, Caller, Decider, KeyChange
from realtime.payload import check

CALLER = Caller("C", "17", NO_HANDSHAKE)
KINDS: tuple[Kind, ...] = ("subscribe", "publish", "map_put")
ASKED = 1000
"""The error of every hook here: it was asked."""


def ask(request: Any) -> None:
    raise Error(ASKED, "asked")


def registry_of(kind: Kind, *patterns: str) -> Registry:
    registry = Registry()
    for pattern in patterns:
        registry.add_pattern(getattr(registry, kind), pattern, ask)
    return registry


async def code_of(site: SiteHooks, kind: Kind, channel: str) -> int | None:
    """The code of the error that the site gives; None if the options decide."""
    options = channel_rules.options_of(channel, site._config)
    try:
        if kind == "publish":
            await site.publish(CALLER, channel, options, check(b"{}"))
        elif kind == "map_put":
            await site.put(CALLER, channel, options, KeyChange("k", check(b"{}")))
        elif site.decides(channel, options):
            await site.subscribe(CALLER, channel, "")
    except Error as error:
        return error.code
    return None


REFUSED, OPEN = PermissionDenied.code, None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        pytest.param(
            ["room:{room}"],
            {"room:1": ASKED, "room:1:2": REFUSED, "room:": REFUSED, "news:1": OPEN, "lobby": OPEN},
            id="a name in braces",
        ),
        pytest.param(
            ["room:{room}", "room:*"],
            {"room:1": ASKED, "room:1:2": ASKED, "room:": ASKED, "news:1": OPEN},
            id="a wider pattern beside it",
        ),
        pytest.param(["room:lobby"], {"room:lobby": ASKED, "room:1": REFUSED}, id="one name"),
        pytest.param(
            ["board-{board}"],
            {"board-1": ASKED, "board-": REFUSED, "lobby": REFUSED, ":a": REFUSED, "room:1": OPEN},
            id="no namespace",
        ),
        pytest.param(
            ["board-{board}", "{channel}"],
            {"board-1": ASKED, "lobby": ASKED, ":a": REFUSED, "room:1": OPEN},
            id="every name without a namespace",
        ),
        pytest.param(
            ["ro*"],
            {"rose": ASKED, "room:1": ASKED, "lobby": REFUSED, "news:1": OPEN},
            id="a part of a name and a star",
        ),
        pytest.param(
            ["{kind}:{name}"],
            {"room:1": ASKED, "room:1:2": REFUSED, "news:": REFUSED, "lobby": OPEN},
            id="any namespace",
        ),
        pytest.param(
            ["*:staff"],
            {"room:staff": ASKED, "room:1": REFUSED, "news:1": REFUSED, "lobby": REFUSED},
            id="a star before the colon",
        ),
        pytest.param(["*"], {"lobby": ASKED, "room:1": ASKED, "news:1:2": ASKED}, id="a star"),
        pytest.param([], {"lobby": OPEN, "room:1": OPEN}, id="none"),
        pytest.param(["other:*"], {"lobby": OPEN, "room:1": OPEN}, id="an unknown namespace"),
    ],
)
async def test_channel_that_no_pattern_of_its_namespace_matches_is_refused(
    kind: Kind, patterns: list[str], expected: dict[str, int | None]
) -> None:
    config = load({"namespaces": [{"name": "room"}, {"name": "news"}]})
    registry = registry_of(kind, *patterns)
    other = KINDS[kind == "subscribe"]
    registry.methods["one"] = ask
    site = SiteHooks(config, registry)

    assert {each: await code_of(site, kind, each) for each in expected} == expected
    assert {await code_of(site, other, each) for each in expected} == {OPEN}
    deciding = Deciding(registry, config)
    words = {ASKED: Decider.FUNCTION, REFUSED: Decider.UNMATCHED, OPEN: Decider.NONE}
    for channel, code in expected.items():
        options = channel_rules.options_of(channel, config)
        assert deciding.decider(kind, channel, options) is words[code]
    await site.close()


@pytest.mark.parametrize(
    ("kind", "pattern", "expected"),
    [
        # public channels need no token, and about private ones no subscribe hook is asked
        ("subscribe", "$room:{room}", {"room:1": OPEN, "lobby": OPEN}),
        ("subscribe", "$board-{board}", {"board-1": OPEN, "lobby": OPEN}),
        # and publishing needs no token anywhere
        ("publish", "$room:{room}", {"$room:1": ASKED, "room:1": REFUSED, "$room:1:2": REFUSED}),
        ("publish", "room:*", {"room:1": ASKED, "$room:1": REFUSED}),
        ("publish", "room:{room}", {"room:1#17": ASKED, "room:1:2#17": REFUSED}),
    ],
)
async def test_private_channels_are_of_the_namespace_where_hooks_are_asked_about_them(
    kind: Kind, pattern: str, expected: dict[str, int | None]
) -> None:
    site = SiteHooks(load({"namespaces": [{"name": "room"}]}), registry_of(kind, pattern))
    assert {each: await code_of(site, kind, each) for each in expected} == expected
    await site.close()


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9/ask"])
async def test_where_an_endpoint_decides_about_the_rest_it_is_asked(
    kind: Kind, endpoint: str
) -> None:
    options = {
        "namespaces": [{"name": "room", f"proxy_{kind}": True}, {"name": "news"}],
        f"proxy_{kind}_endpoint": endpoint,
    }
    registry = registry_of(kind, "room:{room}", "news:{news}")
    site = SiteHooks(load(options), registry)

    code = await code_of(site, kind, "room:1:2")

    assert code == (100 if endpoint else NotAvailable.code)
    assert await code_of(site, kind, "news:1:2") == REFUSED
    await site.close()


@pytest.mark.parametrize(
    ("endpoint", "code", "expected"),
    [
        ("", NotAvailable.code, Decider.MISSING),
        ("http://127.0.0.1:9/ask", InternalError.code, Decider.ENDPOINT),
    ],
)
async def test_the_publish_endpoint_decides_about_maps(
    endpoint: str, code: int, expected: Decider
) -> None:
    options = {"namespaces": [{"name": "room", "proxy_publish": True}]}
    config = load(options | {"proxy_publish_endpoint": endpoint})
    site = SiteHooks(config, Registry())
    assert await code_of(site, "map_put", "room:1") == code
    decider = Deciding(Registry(), config).decider
    assert decider("map_put", "room:1", config.namespaces["room"]) is expected
    await site.close()


async def test_publish_hooks_close_maps_too() -> None:
    site = SiteHooks(load({"namespaces": [{"name": "room"}]}), registry_of("publish", "room:{a}"))
    assert await code_of(site, "map_put", "room:1") == REFUSED
    assert await code_of(site, "map_put", "lobby") == OPEN
    await site.close()


async def test_feed_of_a_live_model_closes_no_namespace() -> None:
    registry = Registry()
    registry.add_guard("room:{room}", ask)
    site = SiteHooks(load({"namespaces": [{"name": "room"}]}), registry)
    assert await code_of(site, "subscribe", "room:1") == ASKED
    assert await code_of(site, "subscribe", "room:1:2") == OPEN
    await site.close()


@pytest.mark.parametrize(
    ("options", "pattern", "namespaces"),
    [
        ({"channel_namespace_boundary": ""}, "room:{room}", [""]),
        ({"channel_namespace_boundary": "/"}, "room/{room}", ["room"]),
        ({"channel_namespace_boundary": "/"}, "room:{room}", [""]),
        ({"channel_namespace_boundary": "/"}, "{room}", ["", "room", "news"]),
        ({"channel_private_prefix": ""}, "$room:{room}", []),
        ({"channel_private_prefix": "p:"}, "p:room:{room}", ["room"]),
    ],
)
def test_namespaces_are_found_by_the_options(
    options: dict[str, str], pattern: str, namespaces: list[str]
) -> None:
    config = load({"namespaces": [{"name": "room"}, {"name": "news"}], **options})
    names = ("", *config.namespaces)
    assert [name for name in names if may_match(Pattern(pattern), name, config)] == namespaces
