"""The declarations of a site: channel patterns with the types of their publications.

    client ─► hooks ─► of_clients(channel) ─► accept(data)     always; refused with error 107
    site, /api, panel ─► check_sent(channel, data)             as the option `typed_channels` says

Adapters are made at their first use, or by the system checks: types may name others that come
later in a module.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from django.conf import settings
from django.core import mail

from realtime.config import sources
from realtime.config.channel_types import TypeDescription, TypedPattern
from realtime.errors import BadRequest, InternalError
from realtime.hooks.patterns import Pattern
from realtime.payload import Payload
from realtime.typed.adapters import adapter_of
from realtime.typed.contract import MAX_REASON, Adapter, Mismatch
from realtime.typed.examples import example

logger = logging.getLogger("realtime.typed")

_NAME = "\x01"
"""A text that no pattern holds: what a name stands for."""
_STARS = ("", ":", "\x02", "\x02:\x03")
"""What a star stands for: texts of each kind that patterns can tell apart."""


class Declaration:
    """One channel pattern, with the types of its publications."""

    def __init__(self, pattern: str, sends: Any, accepts: Any) -> None:
        """
        Args:
            pattern: as hooks have it.
            sends: the type of what the site publishes; None for nothing.
            accepts: the type of what clients may publish; None for nothing.

        Raises:
            ValueError: it is not a pattern.
        """
        self.pattern = Pattern(pattern)
        self._sends, self._accepts = sends, accepts
        self._lock = threading.Lock()
        self._made: dict[str, Adapter[Any] | None] = {}
        # of all adapters, those for serializers alone may query
        self.may_query = hasattr(accepts, "run_validation") or any(
            hasattr(each, "run_validation") for each in getattr(accepts, "__args__", ())
        )

    @property
    def sends(self) -> Adapter[Any] | None:
        """The adapter of what the site publishes; None: nothing is declared.

        Raises:
            TypeError: no adapter knows the type.
        """
        return self._adapter("sends", lambda: self._sends)

    @property
    def accepts(self) -> Adapter[Any] | None:
        """The adapter of what clients may publish; None: nothing.

        Raises:
            TypeError: no adapter knows the type.
        """
        return self._adapter("accepts", lambda: self._accepts)

    @property
    def received(self) -> Adapter[Any]:
        """The adapter of what subscribers get: publications of the site and of clients.

        Raises:
            TypeError: no adapter knows the type.
        """
        adapter = self._adapter("received", self._union)
        assert adapter is not None
        return adapter

    def _union(self) -> Any:
        if self._accepts is None:
            return self._sends
        if self._sends is None:
            return self._accepts
        return self._sends | self._accepts

    def _adapter(self, role: str, declared: Callable[[], Any]) -> Adapter[Any] | None:
        made = self._made
        if role not in made:
            with self._lock:
                if role not in made:
                    wanted = declared()
                    made[role] = None if wanted is None else adapter_of(wanted)
        return made[role]

    def accept(self, data: Payload) -> None:
        """Check what a client publishes. See `DataCheck`."""
        try:
            adapter = self.accepts
            if adapter is None:
                raise BadRequest(message="bad request: clients publish nothing here")
            adapter.decode(data.json)
        except Mismatch as mismatch:
            raise refusal(mismatch) from None
        except TypeError:
            logger.exception("The types of %r cannot be used", self.pattern.text)
            raise InternalError from None

    def check(self, data: Payload) -> None:
        """Check what the site publishes. Serializers are not run on an event loop.

        Raises:
            Mismatch: the data have none of the types that subscribers get.
            TypeError: no adapter knows the types.
        """
        adapter = self.received
        if not (adapter.may_query and _is_on_loop()):
            adapter.decode(data.json)

    def shadows(self, later: Declaration) -> bool:
        """Return whether it decides about every channel that a later one matches."""
        names = dict.fromkeys(later.pattern.names, _NAME)
        return all(
            self.pattern.match(later.pattern.fill(names, star)) is not None for star in _STARS
        )

    def problems(self) -> Iterator[str]:
        """Yield its mistakes, as sentences."""
        for role in ("sends", "accepts", "received"):
            try:
                getattr(self, role)
            except Exception as error:  # of libraries of types, and of code of the site
                reason = f"{type(error).__name__}: {error}"
                yield f"{self.pattern.text!r} {role} a type that no library knows. {reason}"
                return


def refusal(mismatch: Mismatch) -> BadRequest:
    """Return the error for data that do not have the declared type."""
    return BadRequest(message=f"bad request: {mismatch}"[:MAX_REASON])


class Declarations:
    """The declarations of a site, by channel. The first one that matches decides, as for hooks."""

    def __init__(self) -> None:
        self.all: list[Declaration] = []
        """In the order in which they were made."""
        self._any: list[Declaration] = []
        """Those that may match channels of any beginning."""
        self._by_beginning: dict[str, list[Declaration]] = {}
        """What the name of a channel has before its first colon → what may match it."""

    def add(self, declaration: Declaration) -> None:
        """Add one."""
        self.replace([*self.all, declaration])

    def replace(self, declarations: list[Declaration]) -> None:
        """Put these in place of all that were made."""
        self.all = declarations
        found = [(_beginning(each.pattern), each) for each in self.all]
        self._any = [each for beginning, each in found if beginning is None]
        self._by_beginning = {
            wanted: [each for beginning, each in found if beginning in (wanted, None)]
            for wanted, _ in found
            if wanted is not None
        }

    def find(self, channel: str) -> Declaration | None:
        """Return the declaration of a channel; None if there is none."""
        for declaration in self._by_beginning.get(channel.partition(":")[0], self._any):
            if declaration.pattern.match(channel) is not None:
                return declaration
        return None

    of_clients = find

    def check_sent(self, channel: str, data: Payload) -> None:
        """Check a publication of the site. See `ChannelTypes`."""
        declaration = self.find(channel)
        if declaration is None:
            return
        what_to_do = mode()
        if what_to_do == "off":
            return
        try:
            declaration.check(data)
        except Mismatch as mismatch:
            if what_to_do == "raise":
                raise refusal(mismatch) from None
            logger.warning("A publication into %r has another type: %s", channel, mismatch)
        except Exception:  # code of the site checks, too, and may query the database
            logger.exception("A publication into %r could not be checked", channel)
            if what_to_do == "raise":
                raise InternalError from None

    def mode(self) -> str:
        """Return what a publication of the site without its declared type leads to."""
        return mode()

    def mismatch(self, channel: str, data: Payload) -> str:
        """Return why data do not have a declared type. See `ChannelTypes`."""
        declaration = self.find(channel)
        if declaration is None:
            return ""
        try:
            declaration.check(data)
        except Mismatch as reason:
            return str(reason)
        except Exception as error:  # of code of the site: its text may hold what only the log may
            logger.exception("Data for %r could not be checked", channel)
            return f"the check failed: {type(error).__name__}"
        return ""

    def describe(self, channel: str) -> TypedPattern | None:
        """Return the declared types of a channel. See `ChannelTypes`."""
        declaration = self.find(channel)
        if declaration is None:
            return None
        try:
            return TypedPattern(
                declaration.pattern.text, list(map(_described, declaration.received.members()))
            )
        except TypeError:  # a system check says so
            return None
        except Exception:  # of libraries of types, and of code of the site
            logger.exception("The types of %r cannot be described", declaration.pattern.text)
            return None

    def patterns(self) -> list[str]:
        """Return the patterns of all declarations."""
        return [declaration.pattern.text for declaration in self.all]

    def problems(self) -> list[str]:
        """Return the mistakes in the declarations, as sentences."""
        problems: list[str] = []
        for number, declaration in enumerate(self.all):
            problems += declaration.problems()
            for earlier in self.all[:number]:
                if earlier.shadows(declaration):
                    problems.append(
                        f"The declaration of {declaration.pattern.text!r} is never used: an"
                        f" earlier one, {earlier.pattern.text!r}, is for the same channels."
                    )
                    break
        return problems


def _described(adapter: Adapter[Any]) -> TypeDescription:
    schema, named = adapter.schema()
    shown = {**schema, "components": {"schemas": named}} if named else schema
    if len(named) == 1 and list(schema) == ["$ref"]:
        [shown] = named.values()
    return TypeDescription(adapter.name, _lines(shown), _lines(example(schema, named)))


def _lines(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _beginning(pattern: Pattern) -> str | None:
    """Return what all its channels have before their first colon; None: that differs."""
    before, colon, _ = pattern.beginning.partition(":")
    return before if colon or not (pattern.names or pattern.has_star) else None


def mode() -> str:
    """Return what a publication of the site without its declared type leads to."""
    option = sources.current().typed_channels
    if option:
        return option
    # Django's test runners make this list, and those of pytest do
    return "raise" if settings.DEBUG or hasattr(mail, "outbox") else "off"


def _is_on_loop() -> bool:
    """Return whether this thread runs an event loop, on which nothing may query the database."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


declarations = Declarations()
"""Those of this site."""
