"""`channel`: declares the types of a channel pattern, and is the typed way to publish there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, Protocol, TypeVar, overload
from uuid import UUID

import msgspec
from asgiref.sync import sync_to_async

from realtime.config import sources
from realtime.hooks.registry import registry
from realtime.protocol.messages import HistoryResult
from realtime.server_api import publishing, queries
from realtime.server_api.arguments import AsyncPublishOptions, Position, PublishOptions
from realtime.server_api.queries import HistoryOptions
from realtime.serving import serving
from realtime.typed.contract import Adapter, Mismatch
from realtime.typed.declarations import Declaration, declarations, mode, refusal

if TYPE_CHECKING:
    from typing_extensions import TypeForm, Unpack

logger = logging.getLogger("realtime.typed")

S = TypeVar("S")
"""What the site publishes."""
A = TypeVar("A")
"""What clients may publish."""


class Serializer(Protocol):
    """A serializer of Django REST framework, for type checkers."""

    def run_validation(self, data: Any = ...) -> Any: ...
    def to_representation(self, instance: Any) -> Any: ...


class TypedChannel(Generic[S, A]):
    """One channel with declared types."""

    __slots__ = ("_declaration", "name")

    def __init__(self, name: str, declaration: Declaration) -> None:
        self.name = name
        """The name of the channel."""
        self._declaration = declaration

    def __repr__(self) -> str:
        return f"<TypedChannel {self.name}>"

    def publish(self, data: S, **options: Unpack[PublishOptions]) -> Position | None:
        """Publish a value of the declared type.

        Args:
            data: the value.
            options: as `realtime.publish` takes them.

        Returns:
            What `realtime.publish` returns.

        Raises:
            TypeError: the channel declares nothing that the site sends, or the value has no JSON
                form.
            BadRequest: code 107, the value does not have the declared type, and the option
                `typed_channels` says "raise".
        """
        return publishing.publish(self.name, self._encoded(data), **options)

    async def apublish(self, data: S, **options: Unpack[AsyncPublishOptions]) -> Position | None:
        """Publish a value of the declared type. Async version of `publish`, always at once."""
        return await publishing.apublish(self.name, self._encoded(data), **options)

    def history(self, **options: Unpack[HistoryOptions]) -> list[S | A]:
        """Return the data of the publications that the channel keeps, oldest first.

        Those that do not have the declared types, such as older ones, are left out and logged;
        where the option `typed_channels` says "raise", they raise.

        Args:
            options: as `realtime.history` takes them.

        Raises:
            BadRequest: code 107, as said.
        """
        reading = queries.reading(self.name, **options)
        return self._decoded(serving.call(reading, async_name="ahistory"))

    async def ahistory(self, **options: Unpack[HistoryOptions]) -> list[S | A]:
        """Return the data of what the channel keeps. Async version of `history`."""
        result = await serving.acall(queries.reading(self.name, **options))
        if self._declaration.received.may_query:
            return await sync_to_async(self._decoded)(result)
        return self._decoded(result)

    def _encoded(self, data: S) -> msgspec.Raw:
        adapter = self._declaration.sends
        if adapter is None:
            raise TypeError(f"{self._declaration.pattern.text!r} declares nothing that it sends")
        return msgspec.Raw(adapter.encode(data).raw)

    def _decoded(self, result: HistoryResult) -> list[S | A]:
        adapter: Adapter[Any] = self._declaration.received
        values: list[S | A] = []
        for publication in result.publications:
            try:
                values.append(adapter.decode(publication.data.json))
            except Mismatch as mismatch:
                if mode() == "raise":
                    raise refusal(mismatch) from None
                logger.warning(
                    "Publication %d of %r has another type: %s",
                    publication.offset,
                    self.name,
                    mismatch,
                )
        return values


class TypedChannels(Generic[S, A]):
    """The channels of one pattern: call it with the parameters of the pattern."""

    __slots__ = ("_declaration", "pattern")

    def __init__(self, declaration: Declaration) -> None:
        self._declaration = declaration
        self.pattern = declaration.pattern.text
        """The channel pattern."""

    def __repr__(self) -> str:
        return f"<TypedChannels {self.pattern}>"

    def __call__(
        self, name: str | None = None, /, **params: str | int | UUID
    ) -> TypedChannel[S, A]:
        """Return one channel.

        Args:
            name: the whole name, in place of the parameters; the only way with a star.
            params: the text for each name in the pattern.

        Raises:
            TypeError: a parameter is missing, the pattern does not have it, or it is not text.
            ValueError: the pattern does not match the name, or would read other parameters in it.
        """
        pattern = self._declaration.pattern
        if name is None:
            name = self._fill(params)
        elif params:
            raise TypeError(f"{self.pattern!r} takes the name of a channel, or parameters")
        elif pattern.match(name) is None:
            raise ValueError(f"{self.pattern!r} does not match {name!r}")
        return TypedChannel(name, self._declaration)

    def _fill(self, params: Mapping[str, str | int | UUID]) -> str:
        pattern = self._declaration.pattern
        if pattern.has_star:
            raise TypeError(f"{self.pattern!r} has a star: call it with the name of a channel")
        known = ", ".join(pattern.names) or "none"
        for name in params.keys() - set(pattern.names):
            raise TypeError(f"{self.pattern!r} has no parameter {name!r}; it has: {known}")
        if missing := [name for name in pattern.names if name not in params]:
            raise TypeError(f"{self.pattern!r} needs {', '.join(missing)}")
        texts = {name: _text(name, value) for name, value in params.items()}
        filled = pattern.fill(texts)
        if pattern.match(filled) != texts:
            raise ValueError(f"{filled!r} is not the channel of {texts} in {self.pattern!r}")
        return filled


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise TypeError(
            f"{name} must be text, a whole number or a UUID, not {type(value).__name__}"
        )
    return str.__str__(value) if isinstance(value, str) else str(value)


@overload
def channel(
    pattern: str, *, sends: type[Serializer], accepts: type[Serializer] | None = ...
) -> TypedChannels[Any, Any]: ...
@overload
def channel(pattern: str, *, sends: TypeForm[S], accepts: TypeForm[A]) -> TypedChannels[S, A]: ...
@overload
def channel(pattern: str, *, sends: TypeForm[S]) -> TypedChannels[S, Never]: ...
@overload
def channel(pattern: str, *, accepts: TypeForm[A]) -> TypedChannels[Never, A]: ...
def channel(pattern: str, *, sends: Any = None, accepts: Any = None) -> TypedChannels[Any, Any]:
    """Declare the types of the publications in the channels of a pattern.

    Declare them in the modules `realtime.py` of your apps, so that every process knows them.

    Args:
        pattern: as hooks have it: `orders:{pk}`, `chat:*`.
        sends: the type of what the site publishes, or a union of types.
        accepts: the type of what clients may publish, or a union. Without it they publish nothing.

    Returns:
        The channels of the pattern, to publish into and to read.

    Raises:
        TypeError: neither type is given.
        ValueError: it is not a pattern.
    """
    if sends is None and accepts is None:
        raise TypeError(f"{pattern!r} needs sends, accepts or both")
    declaration = Declaration(pattern, sends, accepts)
    if not declarations.all and registry.is_loaded:
        logger.warning(
            "The first typed channel, %r, is declared after the start: clients of a node that runs"
            " already are not checked. Declare it in a module realtime.py.",
            pattern,
        )
    declarations.add(declaration)
    sources.configuration.declare(declarations)
    return TypedChannels(declaration)
