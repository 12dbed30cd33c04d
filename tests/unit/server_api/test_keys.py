"""The API key, in the header Authorization or in the query."""

from __future__ import annotations

import pytest

from realtime.server_api.http import Head, is_key

KEY = "the-key-of-the-server-api"
ENCODED = "".join(f"%{ord(letter):02X}" for letter in KEY)
WRONG = [
    *("", "apikey wrong", f"apikey {KEY.upper()}", f"apikey {KEY[:-1]}", f"apikey {KEY}x"),
    *("apikey", KEY, f"Bearer {KEY}", f"apikey: {KEY}", f"apikey {KEY} x", f"apikey {KEY} {KEY}"),
    *(f'apikey "{KEY}"', "apikey \xe9"),
]


@pytest.mark.parametrize(
    ("key", "authorization", "is_right"),
    [
        *(
            (KEY, f"{scheme}{KEY}", True)
            for scheme in ("apikey ", "APIKEY ", "ApiKey   ", "apikey\t")
        ),
        *((KEY, value, False) for value in WRONG),
        ("two words", "apikey two words", True),
        ("two words", "apikey  two words ", True),
        ("two words", "apikey two  words", False),
        ("two words", "apikey two", False),
        ("two words", "apikey words", False),
        ("two words", "two words", False),
    ],
)
def test_key_in_the_header(key: str, authorization: str, is_right: bool) -> None:
    assert is_key(key, Head("POST", "", None, authorization)) is is_right


@pytest.mark.parametrize(
    ("query", "is_right"),
    [
        (f"api_key={KEY}", True),
        (f"a=1&b&api_key={KEY}", True),
        (f"api_key={KEY}&api_key=wrong", True),
        (f"api_key={ENCODED}", True),
        ("api_key=wrong", False),
        ("api_key=", False),
        ("api_key", False),
        (f"api_key=wrong&api_key={KEY}", False),
        (f"apikey={KEY}", False),
        (f"API_KEY={KEY}", False),
        (f"api_key=apikey+{KEY}", False),
        ("api_key=%FF", False),
    ],
)
@pytest.mark.parametrize("header", [None, "apikey wrong", "Basic abc"])
def test_key_in_the_query_counts_whatever_the_header_says(
    query: str, header: str | None, is_right: bool
) -> None:
    assert is_key(KEY, Head("POST", query, None, header)) is is_right
