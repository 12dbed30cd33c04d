"""The options of one kind of tokens: connection tokens, or subscription tokens with own keys.

The options of both kinds have the same names behind their prefixes, `token_` and
`subscription_token_`.
"""

from __future__ import annotations

from typing import NamedTuple


class TokenOptions(NamedTuple):
    """Who signs tokens of one kind, and what their claims must be."""

    prefix: str
    """`token` or `subscription_token`: with a name below, the name of an option."""
    hmac_secret_key: str = ""
    hmac_previous_secret_key: str = ""
    hmac_previous_secret_key_valid_until: int = 0
    rsa_public_key: str = ""
    ecdsa_public_key: str = ""
    jwks_public_endpoint: str = ""
    audience: str = ""
    audience_regex: str = ""
    issuer: str = ""
    issuer_regex: str = ""
    user_id_claim: str = ""

    def __repr__(self) -> str:
        """For logs and error reports: options hold secrets."""
        return f"<options of {self.prefix}>"

    def option(self, name: str) -> str:
        """Return the whole name of an option."""
        return f"{self.prefix}_{name}"

    @property
    def verifies(self) -> bool:
        """Whether there is any key to verify these tokens with."""
        return any(
            (
                self.hmac_secret_key,
                self.hmac_previous_secret_key,
                self.rsa_public_key,
                self.ecdsa_public_key,
                self.jwks_public_endpoint,
            )
        )
