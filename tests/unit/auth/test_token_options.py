"""What the functions that sign tokens can say, as the service reads it."""

from __future__ import annotations

import pytest

from realtime import tokens
from realtime.config import sources
from realtime.config.channel_options import Overrides
from realtime.tokens import Verifier
from tests.unit.auth.jwt_parts import NOW, SECRET


@pytest.fixture(autouse=True)
def key(settings: object) -> None:
    settings.REALTIME = {"token_hmac_secret_key": SECRET}  # type: ignore[attr-defined]


async def test_connection_token_says_meta_and_the_expiry_of_the_connection() -> None:
    token = tokens.connection_token("17", ttl=None, meta={"a": 1}, expire_at=NOW + 9.5)
    verified = await Verifier(sources.current()).connect(token, NOW)
    assert verified.expires_at == NOW + 9
    assert verified.meta is not None
    assert verified.meta.json == b'{"a":1}'


@pytest.mark.parametrize(
    ("make", "party"),
    [
        (tokens.subscription_token, {"client": "c"}),
        (tokens.user_subscription_token, {"user": "17"}),
    ],
    ids=["client", "user"],
)
async def test_subscription_token_says_data_options_and_expiry(
    make: object, party: dict[str, str]
) -> None:
    token = make(  # type: ignore[operator]
        **party,
        channel="$a",
        ttl=None,
        data=[1],
        override={"force_recovery": True, "join_leave": False},
        expire_at=NOW + 9,
    )

    verified = await Verifier(sources.current()).subscribe(token, NOW)

    assert verified.expires_at == NOW + 9
    assert verified.data is not None
    assert verified.data.json == b"[1]"
    assert verified.overrides == Overrides(join_leave=False, force_recovery=True)


def test_other_options_cannot_be_overridden() -> None:
    with pytest.raises(ValueError, match="publish cannot be overridden"):
        tokens.subscription_token("c", "$a", override={"publish": True})
