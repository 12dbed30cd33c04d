"""Receivers that write what they hear into a file, one line of JSON each.

The name of a user decides what else they do: `slow-7` makes one slow, and so on.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connections
from django.db.models.signals import post_save

import realtime
from realtime import signals

User: Any = get_user_model()

SLOW = 5.0
ENDLESS = 60.0
"""Seconds."""

SIGNALS = {
    signals.connected: "connected",
    signals.disconnected: "disconnected",
    signals.subscribed: "subscribed",
    signals.unsubscribed: "unsubscribed",
    signals.channel_occupied: "channel_occupied",
    signals.channel_vacated: "channel_vacated",
}


def connect() -> None:
    """Connect them, in this order."""
    for signal in SIGNALS:
        signal.connect(record)
    signals.user_online.connect(came)
    signals.user_offline.connect(went)
    signals.connected.connect(misbehave)
    signals.connected.connect(record_again)
    signals.connected.connect(look_up)
    signals.subscribed.connect(publish)
    signals.disconnected.connect(linger)
    post_save.connect(saved, sender=Group)


def write(kind: str, **details: Any) -> None:
    """Append a line, at once."""
    line = json.dumps({"kind": kind, "pid": os.getpid(), **details})
    with open(os.environ["TEST_SIGNALS"], "a", encoding="utf-8") as file:
        file.write(line + "\n")


def record(signal: Any, sender: Any, **details: Any) -> None:
    """Write what happened, and whether a database connection was left open before."""
    held = connections["default"].connection is not None
    write(SIGNALS[signal], held=held, thread=threading.current_thread().name, **details)


def came(user: str, **_: Any) -> None:
    """Write that a user came."""
    if user.startswith("online-"):
        write("user_online", user=user)


def went(user: str, certain: bool, **_: Any) -> None:
    """Write that a user went."""
    if user.startswith("online-"):
        write("user_offline", user=user, certain=certain)


def misbehave(user: str, **_: Any) -> None:
    """Be slow, fail, or use the database."""
    match user.partition("-")[0]:
        case "slow":
            time.sleep(SLOW)
        case "endless":
            time.sleep(ENDLESS)
        case "broken":
            raise LookupError("the receiver is broken")
        case "query":
            User.objects.count()
            assert connections["default"].connection is not None


def record_again(user: str, **_: Any) -> None:
    """Write that this receiver was called, too."""
    write("again", user=user)


async def look_up(user: str, **_: Any) -> None:
    """Use the asynchronous ORM."""
    if user.startswith("async-"):
        write("looked up", user=user, number=await User.objects.filter(pk=0).acount())


def publish(user: str, channel: str, **_: Any) -> None:
    """Publish what happened."""
    if user.startswith("publish-"):
        realtime.publish(channel, {"subscribed": user})


def linger(user: str, **_: Any) -> None:
    """Take a moment before it is written."""
    if user.startswith("linger-"):
        time.sleep(0.3)
        write("lingered", user=user)


def saved(instance: Group, created: bool, **_: Any) -> None:
    """Publish that a group was saved, as a site would."""
    if instance.name.startswith("watched:"):
        realtime.publish(instance.name, {"saved": instance.name, "created": created})
