"""Claims of later generations, beside those of the first one, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.auth.claims import TokenSubscription
from realtime.auth.issue import connection_token, user_subscription_token
from realtime.config.channel_options import Overrides
from realtime.config.options import ChannelOptions, Config
from realtime.config.reader import load
from realtime.tokens import ConnectToken, InvalidToken, SubscribeToken, Verifier
from tests.unit.auth.jwt_parts import NOW, SECRET, base64_of, token
from tests.unit.parts import data

CONFIG = load({"token_hmac_secret_key": SECRET})
PREVIOUS = "the secret before, which is long enough for every HMAC algorithm as well: 64 b"


async def connect(claims: object, config: Config = CONFIG) -> ConnectToken:
    return await Verifier(config).connect(token(claims), NOW)


async def subscribe(claims: object, config: Config = CONFIG) -> SubscribeToken:
    return await Verifier(config).subscribe(token(claims), NOW)


# connection tokens


@pytest.mark.parametrize(
    ("claims", "expires_at"),
    [
        ({"expire_at": NOW + 9}, NOW + 9),
        ({"expire_at": NOW + 9, "exp": NOW + 5}, NOW + 9),
        ({"expire_at": NOW + 5, "exp": NOW + 9}, NOW + 5),
        ({"expire_at": str(NOW + 9)}, NOW + 9),
        ({"expire_at": 0, "exp": NOW + 5}, None),
        ({"expire_at": -1, "exp": NOW + 5}, None),
        ({"expire_at": None, "exp": NOW + 5}, NOW + 5),
        # the token is valid, and what it opens has expired: error 110, not 109
        ({"expire_at": NOW - 5, "exp": NOW + 5}, NOW - 5),
    ],
    ids=str,
)
async def test_expire_at_is_the_expiry_of_the_connection(
    claims: object, expires_at: float | None
) -> None:
    assert (await connect(claims)).expires_at == expires_at


async def test_subs_are_server_side_subscriptions() -> None:
    verified = await connect(
        {
            "subs": {
                "a": {"info": {"i": 1}, "data": [1]},
                "b": {
                    "b64info": base64_of(b'"i"'),
                    "info": 5,
                    "b64data": base64_of(b'"d"'),
                    "data": 5,
                    "override": {
                        "presence": {"value": True},
                        "join_leave": {"value": False},
                        "force_push_join_leave": {"value": True},
                        "force_recovery": {"value": False},
                        "force_positioning": {"value": True},
                    },
                },
                "c": {"override": {"presence": None}},
                "d": None,
                "": {},
            }
        }
    )

    assert verified.channels == ("a", "b", "c", "d")
    assert verified.subs == {
        "a": TokenSubscription(data('{"i": 1}'), data("[1]")),
        "b": TokenSubscription(data('"i"'), data('"d"'), Overrides(True, False, True, False, True)),
        "c": TokenSubscription(),
        "d": TokenSubscription(),
    }


@pytest.mark.parametrize(("subs", "names"), [({}, ("a",)), (None, ("a",)), ({"b": {}}, ("b",))])
async def test_channels_count_only_without_subs(subs: object, names: tuple[str, ...]) -> None:
    assert (await connect({"subs": subs, "channels": ["a"]})).channels == names


@pytest.mark.parametrize(
    ("meta", "expected"), [({"a": 1}, b'{"a":1}'), (5, b"5"), (None, None), ("text", b'"text"')]
)
async def test_meta_is_any_json(meta: object, expected: bytes | None) -> None:
    found = (await connect({"meta": meta})).meta
    assert (None if found is None else found.json) == expected


# subscription tokens


@pytest.mark.parametrize(
    ("claims", "client", "user", "expected"),
    [
        pytest.param({"sub": "17"}, "C", "17", True, id="user"),
        pytest.param({"sub": "17"}, "C", "18", False, id="another user"),
        pytest.param({"sub": "17"}, "C", "", False, id="anonymous"),
        pytest.param({"sub": ""}, "C", "", True, id="for anonymous"),
        pytest.param({"sub": ""}, "C", "17", False, id="for anonymous, user"),
        # anonymous clients are many, and the token names one of them
        pytest.param({"sub": "", "client": "C"}, "C", "", True, id="anonymous client"),
        pytest.param({"sub": "", "client": "C"}, "D", "", False, id="another anonymous client"),
        pytest.param({"client": "C"}, "C", "17", True, id="client"),
        pytest.param({"client": "C"}, "D", "17", False, id="another client"),
        pytest.param({"client": "C", "sub": "17"}, "C", "17", True, id="both"),
        pytest.param({"client": "C", "sub": "17"}, "D", "17", True, id="only the user"),
        pytest.param({"client": "C", "sub": "17"}, "C", "18", True, id="only the client"),
        pytest.param({"client": "C", "sub": "17"}, "D", "18", False, id="neither"),
        pytest.param({}, "C", "17", False, id="for nobody"),
        pytest.param({"client": ""}, "", "17", False, id="no client ID"),
        pytest.param({"sub": 17}, "C", "17", False, id="number"),
        pytest.param({"sub": 17, "client": "C"}, "C", "17", True, id="number beside the client"),
    ],
)
async def test_token_is_for_its_user_or_its_client(
    claims: dict[str, Any], client: str, user: str, expected: bool
) -> None:
    verified = await subscribe({"channel": "a", **claims})
    assert verified.is_for(client, user, absent_is_anonymous=False) is expected
    assert verified.is_for(client, user, absent_is_anonymous=True) is expected


@pytest.mark.parametrize(
    ("claims", "user", "expected"),
    [
        ({}, "", True),
        ({"sub": None, "client": None}, "", True),
        ({"client": ""}, "", True),
        ({}, "17", False),
        ({"client": "C"}, "", False),
        ({"sub": 17}, "", False),
        ({"sub": {}}, "", False),
    ],
    ids=str,
)
async def test_token_without_a_user_is_for_anonymous_clients_where_absent_means_that(
    claims: dict[str, Any], user: str, expected: bool
) -> None:
    verified = await subscribe({"channel": "a", **claims})
    assert verified.is_for("D", user, absent_is_anonymous=True) is expected
    assert verified.is_for("D", user, absent_is_anonymous=False) is False


@pytest.mark.parametrize(
    ("claims", "subscription", "itself", "refreshed"),
    [
        ({}, None, None, None),
        ({"exp": NOW + 5}, NOW + 5, NOW + 5, NOW + 5),
        ({"exp": NOW + 5, "eto": False}, NOW + 5, NOW + 5, NOW + 5),
        ({"exp": NOW + 5, "eto": None}, NOW + 5, NOW + 5, NOW + 5),
        ({"exp": NOW + 5, "eto": True}, None, NOW + 5, NOW + 5),
        ({"exp": NOW + 5, "eto": True, "expire_at": NOW + 9}, NOW + 9, NOW + 5, NOW + 9),
        ({"expire_at": NOW + 9}, NOW + 9, None, NOW + 9),
        ({"expire_at": NOW + 9, "exp": NOW + 5}, NOW + 9, NOW + 5, NOW + 9),
        ({"expire_at": 0, "exp": NOW + 5}, None, NOW + 5, None),
        ({"expire_at": NOW - 5}, NOW - 5, None, NOW - 5),
    ],
    ids=str,
)
async def test_expire_at_is_the_expiry_of_the_subscription(
    claims: object, subscription: float | None, itself: float | None, refreshed: float | None
) -> None:
    verified = await subscribe(claims)
    expected = subscription, itself, refreshed
    assert (verified.expires_at, verified.token_expires_at, verified.refreshed_until) == expected


async def test_data_and_overrides_are_those_of_the_subscription() -> None:
    verified = await subscribe(
        {"data": {"a": 1}, "override": {"force_recovery": {"value": True}}, "info": 2}
    )
    assert verified.info == data("2")
    assert verified.data == data('{"a": 1}')
    assert verified.overrides == Overrides(force_recovery=True)


async def test_token_without_a_channel_names_none() -> None:
    assert (await subscribe({"sub": "17"})).channel == ""


HISTORY: dict[str, Any] = {"history_size": 5, "history_lifetime": 60}


def test_overrides_change_the_options_of_one_subscription() -> None:
    options = ChannelOptions(presence=True, **HISTORY)
    changed = Overrides(presence=False, force_recovery=True, join_leave=True).apply(options)
    assert (changed.presence, changed.force_recovery, changed.join_leave) == (False, True, True)
    assert not changed.force_push_join_leave
    assert changed.history_size == 5
    assert options.presence
    assert not options.force_recovery


def test_overrides_leave_the_other_rights_as_they_are() -> None:
    options = ChannelOptions(publish=True, presence=True, anonymous=True, **HISTORY)
    assert Overrides(presence=True).apply(options) == options


@pytest.mark.parametrize("check", [connect, subscribe])
@pytest.mark.parametrize(
    ("options", "claims", "is_valid"),
    [
        ({"token_audience": "us"}, {"aud": "us"}, True),
        ({"token_audience": "us"}, {"aud": ["them", "us"]}, True),
        ({"token_audience": "us"}, {"aud": "them"}, False),
        ({"token_audience": "us"}, {"aud": []}, False),
        ({"token_audience": "us"}, {"aud": "us too"}, False),
        ({"token_audience": "us"}, {}, False),
        ({"token_audience_regex": "^app-[0-9]$"}, {"aud": ["them", "app-1"]}, True),
        ({"token_audience_regex": "^app-[0-9]$"}, {"aud": "app-x"}, False),
        ({"token_audience_regex": "."}, {}, False),
        ({"token_audience_regex": "^app$"}, {"aud": "app\n"}, False),
        ({"token_issuer_regex": "^site$"}, {"iss": "site\n"}, False),
        ({"token_issuer": "site"}, {"iss": "site"}, True),
        ({"token_issuer": "site"}, {"iss": "other"}, False),
        ({"token_issuer": "site"}, {}, False),
        ({"token_issuer_regex": "^site"}, {"iss": "site-1"}, True),
        ({"token_issuer_regex": "^site"}, {"iss": "a site"}, False),
        ({"token_issuer": "site", "token_audience": "us"}, {"iss": "site"}, False),
        ({"token_issuer": "site", "token_audience": "us"}, {"iss": "site", "aud": "us"}, True),
    ],
    ids=str,
)
async def test_token_must_have_the_audience_and_issuer_of_the_options(
    check: Any, options: dict[str, Any], claims: dict[str, Any], is_valid: bool
) -> None:
    config = load({"token_hmac_secret_key": SECRET, **options})
    if is_valid:
        assert await check(claims, config)
    else:
        with pytest.raises(InvalidToken, match="another"):
            await check(claims, config)


async def test_token_of_another_issuer_is_invalid_even_when_it_has_expired() -> None:
    config = load({"token_hmac_secret_key": SECRET, "token_issuer": "site"})
    with pytest.raises(InvalidToken):
        await connect({"exp": 0}, config)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_previous_key_is_accepted_too(algorithm: str) -> None:
    verifier = Verifier(
        load({"token_hmac_secret_key": SECRET, "token_hmac_previous_secret_key": PREVIOUS})
    )
    for key in (SECRET, PREVIOUS):
        text = token({"sub": "17"}, algorithm, key)
        assert (await verifier.connect(text, NOW)).user == "17"
    with pytest.raises(InvalidToken, match="wrong signature"):
        await verifier.connect(token({"sub": "17"}, algorithm, SECRET[:-1]), NOW)


@pytest.mark.parametrize(
    ("until", "is_valid"),
    [(0, True), (int(NOW) + 1, True), (int(NOW), False), (int(NOW) - 1, False)],
)
async def test_previous_key_is_accepted_until_its_end(until: int, is_valid: bool) -> None:
    config = load(
        {
            "token_hmac_secret_key": SECRET,
            "token_hmac_previous_secret_key": PREVIOUS,
            "token_hmac_previous_secret_key_valid_until": until,
        }
    )
    verifier = Verifier(config)

    assert (await verifier.connect(token({"sub": "17"}), NOW)).user == "17"
    if is_valid:
        assert (await verifier.connect(token({}, key=PREVIOUS), NOW)).user == ""
    else:
        with pytest.raises(InvalidToken, match="wrong signature"):
            await verifier.connect(token({}, key=PREVIOUS), NOW)


# tokens this package makes


async def test_subscription_token_of_a_user_made_here_is_verified_here() -> None:
    made = user_subscription_token(CONFIG, "17", "a", ttl=60, info=1, data=[2])
    verified = await Verifier(CONFIG).subscribe(made, NOW)
    assert (verified.user, verified.client, verified.channel) == ("17", "", "a")
    assert (verified.info, verified.data) == (data("1"), data("[2]"))
    assert verified.expires_at == verified.token_expires_at
    assert verified.expires_at is not None


async def test_subscription_token_of_a_user_may_leave_the_subscription_for_ever() -> None:
    made = user_subscription_token(CONFIG, "", "a", ttl=60, keep_subscription=True)
    verified = await Verifier(CONFIG).subscribe(made, NOW)
    assert verified.user == ""
    assert verified.expires_at is None
    assert verified.token_expires_at is not None


async def test_connection_token_made_here_may_describe_its_subscriptions() -> None:
    subs = {"a": {"info": 1, "override": {"presence": {"value": False}}}}
    made = connection_token(CONFIG, "17", channels=["b"], subs=subs)
    verified = await Verifier(CONFIG).connect(made, NOW)
    assert verified.subs == {
        "b": TokenSubscription(),
        "a": TokenSubscription(info=data("1"), overrides=Overrides(presence=False)),
    }
