"""The contract of an observer: who sees from outside what happens at a node.

Nothing that an observer does reaches a client. A node without one serves as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from realtime.cluster.survey import Handler, SurveyQuestion
from realtime.node.subscriber import Subscriber
from realtime.protocol.messages import ChannelName, Publication, StreamPosition, UserID

Published: TypeAlias = Callable[[ChannelName, Publication, StreamPosition | None], None]


class Observer:
    """See the module. This one sees nothing. No method raises."""

    published: Published | None = None
    """Gets each publication that the node delivers, and never raises; None: nobody looks."""

    def __init__(self, node: object = None) -> None:
        self.questions: dict[type[SurveyQuestion], Handler] = {}
        """What it answers to other processes, beside what the node answers."""

    def start(self) -> None:
        """Begin to observe: the node has started."""

    def stop(self) -> None:
        """Release everything: the node stops."""

    def happened(self, kind: str, text: str = "", *, subject: str = "") -> None:
        """Note an event of the node. `kind`, `text`, `subject`: see `operators.event_log`."""

    def opened(self, client: Subscriber) -> None:
        """Note that a client has connected."""

    def closed(self, user: UserID, code: int, reason: str) -> None:
        """Note that a connection ended.

        Args:
            user: its user.
            code: what the client got, 0 if it went by itself.
            reason: a short English text.
        """

    def refused(
        self, user: UserID, command: str, channel: ChannelName, code: int, message: str
    ) -> None:
        """Note that a command was refused.

        Args:
            user: who sent it.
            command: its method.
            channel: what it is about; "" if that is not known.
            code: of the error.
            message: of the error.
        """
