"""The options of one kind of tokens: connection tokens, or subscription tokens with own keys.

The options of both kinds have the same names behind their prefixes, `token_` and
`subscription_token_`.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime.config.fields import option


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """Who signs tokens of one kind, and what their claims must be."""

    prefix: str
    """`token` or `subscription_token`: with a name below, the name of an option."""
    hmac_secret_key: str = option("", "Verifies HS256/384/512 tokens.", secret=True)
    hmac_previous_secret_key: str = option(
        "", "Previous HMAC key, accepted while keys are rotated.", secret=True
    )
    hmac_previous_secret_key_valid_until: int = option(
        0, "Unix time at which that key stops to be valid; 0: never."
    )
    rsa_public_key: str = option("", "PEM; verifies RS256/384/512 tokens.")
    ecdsa_public_key: str = option("", "PEM; verifies ES256/384/512 tokens.")
    jwks_public_endpoint: str = option(
        "", "URL of a JSON Web Key Set; when set, only its keys are accepted."
    )
    audience: str = option("", "What a token must name in aud; empty: anything.")
    audience_regex: str = option(
        "", "Regular expression that an audience of a token must match; empty: anything."
    )
    issuer: str = option("", "What a token must name in iss; empty: anything.")
    issuer_regex: str = option(
        "", "Regular expression that the issuer of a token must match; empty: anything."
    )
    user_id_claim: str = option("", "Claim that holds the user ID; empty: sub.")

    def name_of(self, name: str) -> str:
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
