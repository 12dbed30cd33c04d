"""The table of the pages, in the order of the tabs."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from .. import service
from ..panel import Page
from . import (
    channel,
    channels,
    console,
    events,
    frames,
    log,
    namespaces,
    node,
    overview,
    palette,
    pending,
    publish,
    user,
    why,
)

PAGES: tuple[Page, ...] = (
    Page(
        "overview",
        "overview/",
        _("Overview"),
        lambda operator: operator.may_view,
        overview.show,
        # the palette is on every page; its part is here, because all who view have this one
        parts={"data": overview.data, "hour": overview.hour, "find": palette.find},
    ),
    Page(
        "node",
        "node/",
        _("Node"),
        lambda operator: operator.may_view,
        node.show,
        listed=False,
        under="overview",
    ),
    Page("events", "events/", _("Events"), lambda operator: operator.may_view, events.show),
    Page("channels", "channels/", _("Channels"), lambda operator: operator.may_view, channels.show),
    Page(
        "channel",
        "channel/",
        _("Channel"),
        lambda operator: operator.may_view,
        channel.show,
        listed=False,
        under="channels",
        parts={
            "token": channel.token,
            "publishers": channel.named,
            "data": channel.data,
            "remove": channel.remove,
        },
    ),
    Page(
        "user",
        "user/",
        _("User"),
        lambda operator: operator.may_view,
        user.show,
        parts={
            "disconnect": user.disconnect,
            "unsubscribe": user.unsubscribe,
            "close": user.close,
            "block": user.block,
            "unblock": user.unblock,
        },
    ),
    Page(
        "frames",
        "frames/",
        _("Frames"),
        lambda operator: operator.may_view and operator.may_trace,
        frames.show,
        listed=False,
        under="user",
        needs="trace",
        parts={"data": frames.data, "stop": frames.stop},
    ),
    Page("why", "why/", _("Why?"), lambda operator: operator.may_view, why.show),
    Page(
        "publish",
        "publication/",
        _("Publish"),
        lambda operator: operator.may_publish_somewhere,
        publish.show,
        needs="publish",
        parts={"reach": publish.reach, "channels": publish.channels},
    ),
    Page(
        "pending",
        "pending/",
        _("Pending"),
        lambda operator: operator.may_view and service.keeps_pending(),
        pending.show,
        parts={"retry": pending.retry, "drop": pending.drop},
    ),
    Page("log", "log/", _("Log"), lambda operator: operator.may_view, log.show),
    Page(
        "namespaces",
        "namespaces/",
        _("Namespaces"),
        lambda operator: operator.may_view,
        namespaces.show,
    ),
    Page(
        "console",
        "console/",
        _("Console"),
        lambda operator: operator.may_view,
        console.show,
        parts={"run": console.run},
    ),
)
