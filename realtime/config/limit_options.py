"""The options that bound what clients ask for: how many connections, and how fast.

docs/limits.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from realtime.config.fields import option, seconds
from realtime.config.rates import Rate, as_rates, parse, parse_named

COMMANDS = frozenset(
    """
    subscribe unsubscribe publish presence presence_stats history ping send rpc refresh sub_refresh
    """.split()  # noqa: SIM905 - read as words
)
"""The commands that may have a rate of their own."""


@dataclass(frozen=True)
class LimitOptions:
    """The limits of one installation."""

    client_connection_limit: int = option(
        0, "Connections of one process; a handshake beyond gets status 503; 0: no limit."
    )
    client_connection_rate_limit: int = option(
        0, "New connections a second of one process; a handshake beyond gets 503; 0: no limit."
    )
    address_connection_rate: str = option(
        "",
        "New connections of one address at one process, such as 10/s burst 100; a handshake beyond"
        " gets status 503; empty: no limit. Behind a reverse proxy it needs trusted_proxies.",
    )
    overload_lag: float = seconds(
        1.0,
        "Lateness of the event loop, seconds, that for 3 s makes a process refuse handshakes with"
        " 503, and presence and history with error 111; 0: never.",
    )
    client_command_rates: str = option(
        "* 100/s burst 1000, presence 10/s burst 200, history 10/s burst 200",
        "Commands of one client, by method, * for all of them: beyond, error 111; empty: no limit.",
        convert=as_rates,
    )

    user_connection_limit: int = option(
        0,
        "Connections of one user at all processes together; later ones are closed, at the same"
        " process at once, at others after about 15 s; 0: no limit.",
    )
    user_channel_limit: int = option(
        0,
        "Subscriptions of one user at one process, over all connections; a subscribe beyond is"
        " error 106; 0: no limit.",
    )
    user_command_rates: str = option(
        "",
        "Commands of one user over all connections and processes, as client_command_rates: beyond,"
        " error 111; empty: no limit.",
        convert=as_rates,
    )

    @property
    def rates_of_users(self) -> dict[str, Rate]:
        """The rates of one user's commands, by method."""
        return parse_named(self.user_command_rates, COMMANDS)

    @property
    def rates_of_clients(self) -> dict[str, Rate]:
        """The rates of one client's commands, by method."""
        return parse_named(self.client_command_rates, COMMANDS)

    @property
    def rate_of_addresses(self) -> Rate | None:
        """The rate of new connections of one address; None for no limit."""
        text = self.address_connection_rate.strip()
        return parse(text) if text else None


RATES: Mapping[str, str] = {
    "client_command_rates": "rates_of_clients",
    "user_command_rates": "rates_of_users",
    "address_connection_rate": "rate_of_addresses",
}
"""Option → the property that reads it."""
