"""Two forms of one method: for tests that wait, and for tests that are coroutines."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from realtime.serving import refuse_on_loop

if TYPE_CHECKING:
    from realtime.testing.clients import TestClient

P = ParamSpec("P")
R = TypeVar("R")


def twins(
    method: Callable[Concatenate[TestClient, P], Coroutine[Any, Any, R]],
) -> tuple[
    Callable[Concatenate[TestClient, P], R],
    Callable[Concatenate[TestClient, P], Coroutine[Any, Any, R]],
]:
    """A method that runs in the service, as one that waits for it, and as one to await."""
    name = method.__name__.removeprefix("_")

    def waiting(self: TestClient, /, *arguments: P.args, **named: P.kwargs) -> R:
        __tracebackhide__ = True
        refuse_on_loop(f"testing.TestClient.a{name}")
        return self.service.run(lambda: method(self, *arguments, **named))

    async def awaited(self: TestClient, /, *arguments: P.args, **named: P.kwargs) -> R:
        __tracebackhide__ = True
        return await self.service.arun(lambda: method(self, *arguments, **named))

    for twin, its_name in ((waiting, name), (awaited, f"a{name}")):
        update_wrapper(twin, method)
        twin.__name__ = its_name
        twin.__qualname__ = f"TestClient.{its_name}"
    return waiting, awaited
