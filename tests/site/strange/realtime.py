"""Hooks that do what clients tell them, good or bad. What decides stands in `data`, or in the
channel's or the user's name: `good-7` is `good`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group

import realtime
from realtime import hooks
from realtime.hooks import Connected, Data

User: Any = get_user_model()

logger = logging.getLogger("tests.site.strange")

SLOW = 8.0
"""Seconds; the time a hook has is much shorter in tests."""


def fail(*_: Any) -> Any:
    """Do what no hook should."""
    raise LookupError("the hook is broken")


# connect: decided by data["answer"]


def refuse(error: Exception) -> Callable[[Any], Any]:
    """A function that raises this."""

    def raise_it(*_: Any) -> Any:
        raise error.with_traceback(None)

    return raise_it


CONNECT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nobody": lambda _: None,
    "all": lambda data: Connected(
        user=data["user"],
        info={"name": "Ann"},
        channels=[data["channel"]],
        data={"welcome": True},
        ttl=data.get("ttl"),
    ),
    "query of channels": lambda data: Connected(
        user=data["user"],
        channels=Group.objects.filter(user=data["pk"]).values_list("name", flat=True),
    ),
    "anonymous": lambda _: Connected(),
    "anonymous user": lambda _: Connected(user=AnonymousUser()),
    "data null": lambda _: Connected(user="17", data=Data(None)),
    "error": refuse(hooks.Error(1010, "not today")),
    "disconnect": refuse(hooks.Disconnect(4010, "go away", reconnect=False)),
    "failure": fail,
    "text": lambda _: "17",
    "past": lambda _: Connected(user="17", ttl=-1),
    "unknown namespace": lambda _: Connected(user="17", channels=["nope:a"]),
    "slow": lambda _: time.sleep(SLOW),
}


@hooks.connect
def connect(request: hooks.ConnectRequest) -> Any:
    """Answer as the client wants it, and as the chat does not."""
    if isinstance(request.data, dict) and "echo" in request.data:
        told: dict[str, Any] = {
            "name": request.name,
            "version": request.version,
            "data": request.data,
        }
        told["agent"] = request.headers.get("user-agent")
        told["protocol"] = request.handshake.protocol
        return Connected(user="17", data=told)
    if not isinstance(request.data, dict) or "answer" not in request.data:
        return None
    return CONNECT[request.data["answer"]](request.data)


# refresh: decided by the user's name

asked: Counter[str] = Counter()
"""User → how often it was asked about."""


@hooks.refresh
async def refresh(request: hooks.RefreshRequest) -> Any:
    """Answer as the user is called."""
    asked[request.user] += 1
    match request.user.partition("-")[0]:
        case "stays":
            return Connected(ttl=1, info={"asked": asked[request.user]})
        case "moment":
            return time.time() + 1000
        case "same":
            return Connected(user=request.user, ttl=1, info={"asked": asked[request.user]})
        case "another":
            return Connected(user="18", ttl=1000)
        case "past":
            return time.time() - 1
        case "error":
            raise hooks.PermissionDenied
        case "disconnect":
            raise hooks.Disconnect(4011, "enough", reconnect=True)
        case "fails" if asked[request.user] < 3:
            fail()
        case "text" if asked[request.user] < 3:
            return "soon"
        case "yes" if asked[request.user] < 3:
            return True
    return None


@hooks.info
def info(user: Any) -> Any:
    """Take as many seconds as the user's first name says."""
    logger.info("describing %s", user.get_username())
    time.sleep(float(user.first_name or 0))
    if user.last_name == "refused":
        raise hooks.Disconnect(4060, "not you", reconnect=False)
    return {"name": user.get_username()}


# subscribe: decided by the channel's name

SUBSCRIBE: dict[str, Callable[[Any], Any]] = {
    "none": lambda _: None,
    "true": lambda _: True,
    "false": lambda _: False,
    "info": lambda request: {"params": dict(request.params)},
    "null": lambda _: Data(None),
    "error": refuse(hooks.Error(1020, "full")),
    "denied": refuse(hooks.PermissionDenied()),
    "disconnect": refuse(hooks.Disconnect(4020, "banned", reconnect=False)),
    "failure": fail,
    "object": lambda _: object(),
    "token": lambda request: {"token": request.token},
}


@hooks.subscribe("ask:{what}-{rest}")
def subscribe(request: hooks.SubscribeRequest) -> Any:
    """Answer as the channel is called."""
    return SUBSCRIBE[request.params["what"]](request)


@hooks.subscribe("slow:thread-*")
def slow_thread(request: hooks.SubscribeRequest) -> Any:
    """Hold a thread."""
    time.sleep(SLOW)


@hooks.subscribe("slow:coroutine-*")
async def slow_coroutine(request: hooks.SubscribeRequest) -> Any:
    """Wait on the event loop, and do not want to stop."""
    try:
        await asyncio.sleep(SLOW)
    except asyncio.CancelledError:
        await asyncio.sleep(SLOW)


@hooks.subscribe("slow:query-*")
async def slow_query(request: hooks.SubscribeRequest) -> Any:
    """Hold a thread from a coroutine, as a slow query does."""
    from asgiref.sync import sync_to_async

    await sync_to_async(time.sleep)(SLOW)


@hooks.subscribe("slow:brief-*")
async def brief(request: hooks.SubscribeRequest) -> Any:
    """Take a little while, and allow."""
    logger.info("asked about %s", request.channel)
    await asyncio.sleep(0.3)
    logger.info("allowed %s", request.channel)


@hooks.subscribe("$ask:*", "ask:#*", "ask:limited#*", "closed:*")
def never(request: hooks.SubscribeRequest) -> Any:
    """Not asked: tokens, names or options decide."""
    raise hooks.Error(1099, "the hook was asked")


# publish: decided by the data

PUBLISH: dict[str, Callable[[Any], Any]] = {
    "none": lambda _: None,
    "true": lambda _: True,
    "false": lambda _: False,
    "other": lambda request: {"instead": dict(request.params)},
    "null": lambda _: Data(None),
    "error": refuse(hooks.Error(1030, "rude")),
    "disconnect": refuse(hooks.Disconnect(4030, "too rude", reconnect=False)),
    "failure": fail,
    "object": lambda _: object(),
}


@dataclass
class Typed:
    """The data of the channels `ask:true-typed*`: an answer for the hook, and numbers."""

    answer: str
    numbers: list[int]


realtime.channel("ask:true-typed{rest}", accepts=Typed)


@hooks.publish("ask:{what}-{rest}")
async def publish(request: hooks.PublishRequest) -> Any:
    """Answer as the data say."""
    return PUBLISH[request.data["answer"]](request)


# rpc


@hooks.rpc
def echo(request: hooks.RPCRequest) -> Any:
    """Say what was said, and by whom."""
    return {"data": request.data, "user": request.user, "method": request.method}


@hooks.rpc
async def echo_async(request: hooks.RPCRequest) -> Any:
    """Say what was said."""
    return {"data": request.data}


@hooks.rpc("count.users")
async def count_users(request: hooks.RPCRequest) -> Any:
    """Use the asynchronous ORM."""
    return await User.objects.filter(pk=request.data).acount()


@hooks.rpc("use.database")
def use_database(request: hooks.RPCRequest) -> Any:
    """Keep a connection to the database for some seconds."""
    found = User.objects.filter(pk=0).exists()
    time.sleep(request.data)
    return not found


@hooks.rpc("nothing")
def nothing(request: hooks.RPCRequest) -> None:
    """Have nothing to say."""


@hooks.rpc("null")
def null(request: hooks.RPCRequest) -> Any:
    """Say null."""
    return Data(None)


@hooks.rpc("error")
def error(request: hooks.RPCRequest) -> Any:
    """Fail with the code the client wants."""
    raise hooks.Error(request.data, "as you wish")


@hooks.rpc("disconnect")
async def disconnect(request: hooks.RPCRequest) -> Any:
    """Close the connection."""
    raise hooks.Disconnect(4040, "as you wish", reconnect=True)


@hooks.rpc("failure")
def failure(request: hooks.RPCRequest) -> Any:
    """Be broken."""
    fail()


@hooks.rpc("exit")
def leave(request: hooks.RPCRequest) -> Any:
    """End the process."""
    raise SystemExit(1)


@hooks.rpc("object")
def unusable(request: hooks.RPCRequest) -> Any:
    """Answer what has no JSON form."""
    return object()


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(request: hooks.RPCRequest) -> Any:
        return function(request)

    return wrapper


@hooks.rpc("decorated")
@_decorated
async def decorated(request: hooks.RPCRequest) -> Any:
    """A coroutine function behind a decorator that does not know coroutines."""
    return "decorated"


# send


@hooks.message
def message(request: hooks.MessageRequest) -> None:
    """Close, break, or tell that something came."""
    import realtime

    match request.data:
        case "disconnect":
            raise hooks.Disconnect(4050, "as you wish", reconnect=False)
        case "failure":
            fail()
        case "error":
            raise hooks.Error(1050, "nobody hears this")
    realtime.publish(f"seen#{request.user}", request.data)
