"""Tables of rules about options: `@rules("E001")` adds a row, and `rules.problems` applies all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, ParamSpec, TypeAlias

P = ParamSpec("P")

Found: TypeAlias = Iterable[str | tuple[str, str]]
"""The texts of mistakes. A text whose hint is its own comes with it."""


class Problem(NamedTuple):
    """A mistake in the options. `id`: the ID of the system check that reports it, as "E001"."""

    id: str
    message: str
    hint: str


class OptionRules(Generic[P]):
    """Functions that find mistakes in the same arguments, in the order of their messages."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, Callable[P, Found]]] = []

    def __call__(
        self, check_id: str, hint: str = ""
    ) -> Callable[[Callable[P, Found]], Callable[P, Found]]:
        """Add a function.

        Args:
            check_id: the ID of the system check, such as "E001".
            hint: what to do about the mistakes that come without a hint.
        """

        def add(find: Callable[P, Found]) -> Callable[P, Found]:
            self._rows.append((check_id, hint, find))
            return find

        return add

    def problems(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[Problem]:
        """Yield every mistake that the functions find."""
        for check_id, hint, find in self._rows:
            for text, its_hint in with_hints(find(*args, **kwargs), hint):
                yield Problem(check_id, text, its_hint)


def with_hints(found: Found, hint: str) -> Iterator[tuple[str, str]]:
    """Yield each text with its hint, or with the one of all."""
    return ((each, hint) if isinstance(each, str) else each for each in found)
