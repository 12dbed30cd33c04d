"""The table of the pages, in the order of the tabs."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from .. import service
from ..panel import PanelPage
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

PAGES: tuple[PanelPage, ...] = (
    PanelPage(
        "overview",
        _("Overview"),
        overview.show,
        # the palette is on every page; its part is here, because all who view have this one
        parts={"data": overview.data, "hour": overview.hour, "find": palette.find},
    ),
    PanelPage("node", _("Node"), node.show, under="overview"),
    PanelPage("events", _("Events"), events.show),
    PanelPage("channels", _("Channels"), channels.show),
    PanelPage(
        "channel",
        _("Channel"),
        channel.show,
        under="channels",
        parts={
            "token": channel.token,
            "publishers": channel.named,
            "data": channel.data,
            "remove": channel.remove,
        },
    ),
    PanelPage(
        "user",
        _("User"),
        user.show,
        parts={
            "disconnect": user.disconnect,
            "unsubscribe": user.unsubscribe,
            "close": user.close,
            "block": user.block,
            "unblock": user.unblock,
        },
    ),
    PanelPage(
        "frames",
        _("Frames"),
        frames.show,
        allowed=lambda operator: operator.may_view and operator.may_trace,
        under="user",
        needs="trace",
        parts={"data": frames.data, "stop": frames.stop},
    ),
    PanelPage("why", _("Why?"), why.show),
    PanelPage(
        "publish",
        _("Publish"),
        publish.show,
        allowed=lambda operator: operator.may_publish_somewhere,
        needs="publish",
        word="publication",
        parts={"reach": publish.reach, "channels": publish.channels},
    ),
    PanelPage(
        "pending",
        _("Pending"),
        pending.show,
        allowed=lambda operator: operator.may_view and service.keeps_pending(),
        parts={"retry": pending.retry, "drop": pending.drop},
    ),
    PanelPage("log", _("Log"), log.show),
    PanelPage("namespaces", _("Namespaces"), namespaces.show),
    PanelPage("console", _("Console"), console.show, parts={"run": console.run}),
)
