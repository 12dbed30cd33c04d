"""doctor: whether it can make a token that the service accepts."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.config.reader import load
from realtime.tools.doctor import network
from realtime.tools.doctor.service import RunningService
from realtime.tools.remote import Remote
from tests.unit.auth.jwt_parts import SECRET


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"token_audience": "us"}, True),
        ({"token_audience_regex": "^us$"}, False),
        ({"token_audience_regex": "^us$", "token_audience": "us"}, True),
        ({"token_issuer_regex": "^us$", "token_issuer": "them"}, False),
    ],
    ids=str,
)
def test_token_needs_the_parties_that_the_service_wants(
    options: dict[str, Any], expected: bool
) -> None:
    config = load({"token_hmac_secret_key": SECRET, **options})
    assert RunningService(Remote("http://127.0.0.1:9"), config).signs_tokens is expected


def test_doctor_says_which_option_is_missing() -> None:
    config = load({"token_hmac_secret_key": SECRET, "token_issuer_regex": "^us$"})
    finding = network.connect(RunningService(Remote("http://127.0.0.1:9"), config))
    assert finding.status == "skip"
    assert "token_issuer " in finding.found
