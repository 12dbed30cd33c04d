"""Credentials of a test client: the headers of its handshake, and its token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http.cookies import Morsel
from typing import Any

from realtime import channel_rules
from realtime.auth import issue
from realtime.config.options import Config
from realtime.hooks.site_values import to_payload, user_id


class Credentials:
    """Read at every connect, so cookies and tokens may change."""

    def __init__(
        self,
        user: Any,
        *,
        token: str | Callable[[], str],
        info: object,
        channels: Iterable[str],
        cookies: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
    ) -> None:
        """See `TestService.client`.

        Raises:
            TypeError: both user and token are given, the user is not a user, or `channels` is not
                a list of names.
        """
        if user is not None and token:
            raise TypeError("give either a user or a token")
        self._user = None if user is None else user_id(user)
        self._token = token
        self._info = None if info is None else to_payload(info)
        self._channels = channel_rules.names(channels)
        self._cookies = {} if cookies is None else cookies
        self._headers = dict(headers or {})

    def token(self, config: Config) -> str:
        """Return the connection token, "" for none. May call a function of the test.

        Raises:
            ValueError: tokens cannot be made here, but are verified with keys of others (JWKS).
        """
        if not isinstance(self._token, str):
            return self._token()
        if self._token or self._user is None:
            return self._token
        if config.connection_tokens.jwks_public_endpoint:
            raise ValueError(
                "token_jwks_public_endpoint is set, so the test kit cannot make a token for a"
                " user: pass one with token=."
            )
        return issue.connection_token(config, self._user, info=self._info, channels=self._channels)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers of the handshake."""
        headers = {"host": "testserver", **{k.lower(): v for k, v in self._headers.items()}}
        cookies = [
            f"{name}={value.coded_value if isinstance(value, Morsel) else value}"
            for name, value in self._cookies.items()
        ]
        if cookies:
            headers["cookie"] = "; ".join(cookies)
        return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
