"""The sync and the async version of one method: for plain tests, and for coroutines."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from realtime.node.node import Node
from realtime.serving import refuse_on_loop

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Service(Protocol):
    """Runs what clients do. `TestService` is one."""

    @property
    def node(self) -> Node:
        """The node that serves. Belongs to the event loop of the service."""

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the service and wait, from a thread without a loop."""

    async def arun(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in the service. Async version of `run`."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run a function of the test in a thread that may use the test's database."""


class InService(Protocol):
    """An object whose methods have two versions."""

    service: Service


C = TypeVar("C", bound=InService)


def sync_and_async(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, R]],
) -> tuple[
    Callable[Concatenate[C, P], R],
    Callable[Concatenate[C, P], Coroutine[Any, Any, R]],
]:
    """Make two versions of a method that runs in the service.

    Args:
        method: a coroutine function; its name begins with an underscore.

    Returns:
        One that waits for it, and one to await, whose name begins with "a".
    """
    name = method.__name__.removeprefix("_")

    def waiting(self: C, /, *arguments: P.args, **named: P.kwargs) -> R:
        __tracebackhide__ = True
        refuse_on_loop(f"testing.TestClient.a{name}")
        return self.service.run(lambda: method(self, *arguments, **named))

    async def awaited(self: C, /, *arguments: P.args, **named: P.kwargs) -> R:
        __tracebackhide__ = True
        return await self.service.arun(lambda: method(self, *arguments, **named))

    for version, its_name in ((waiting, name), (awaited, f"a{name}")):
        update_wrapper(version, method)
        version.__name__ = its_name
        version.__qualname__ = f"TestClient.{its_name}"
    return waiting, awaited
