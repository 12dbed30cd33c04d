"""JSON Web Tokens: who connects, and who may subscribe to a private channel."""

from realtime.tokens.claims import ConnectToken, ExpiredToken, InvalidToken, SubscribeToken
from realtime.tokens.site import connection_token, observer_token, subscription_token
from realtime.tokens.verifier import Verifier

__all__ = [
    "ConnectToken",
    "ExpiredToken",
    "InvalidToken",
    "SubscribeToken",
    "Verifier",
    "connection_token",
    "observer_token",
    "subscription_token",
]
