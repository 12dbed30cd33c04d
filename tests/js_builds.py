"""The published builds of the JavaScript client: where they are, how they reach a server."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).resolve().parent / "js"


@dataclass(frozen=True)
class Build:
    """One build of the client, the position variant its server writes, and a transport."""

    name: str
    module: str
    use_offset: bool
    as_in_browsers: bool = False
    """Without the package `long`, whose zero is true: 2.7 takes that for an offset, and
    leaves recovered publications in the order of seq and gen, newest first."""
    generation: int = 1
    sockjs: str = ""
    """The transport of `sockjs-client` it runs on; without one, a WebSocket of its own."""

    @property
    def protobuf(self) -> bool:
        return self.module.endswith((".protobuf.js", "/protobuf"))

    @property
    def transport(self) -> str:
        """What the event `connect` calls the transport."""
        return f"sockjs-{self.sockjs}" if self.sockjs else "websocket"

    def url(self, socket: str) -> str:
        """Where it connects to; `socket` is the URL of the WebSocket endpoint."""
        if self.sockjs:
            return socket.replace("ws", "http", 1).removesuffix("websocket") + "sockjs"
        # later clients offer a subprotocol
        return socket + "?format=protobuf" if self.protobuf and self.generation == 1 else socket


JSON = Build("json", "centrifuge/dist/centrifuge.js", use_offset=True)

JSON_SEQ = replace(JSON, name="json-seq", use_offset=False)

BUILDS = (
    JSON,
    Build("protobuf", "centrifuge/dist/centrifuge.protobuf.js", use_offset=True),
    JSON_SEQ,
    # before subprotocols; the last one whose Protobuf schema has seq and gen
    Build(
        "protobuf-2.7-seq",
        "centrifuge-2.7/dist/centrifuge.protobuf.js",
        use_offset=False,
        as_in_browsers=True,
    ),
)
"""All builds, over WebSocket."""


def over_sockjs(transport: str) -> Build:
    """The build over one transport of SockJS, which has no binary messages."""
    return replace(JSON, name=f"sockjs-{transport}", sockjs=transport)


STREAMING = over_sockjs("xhr-streaming")
OTHERS = tuple(over_sockjs(name) for name in ("websocket", "eventsource", "xhr-polling"))
"""With it, all transports that sockjs-client has without a document, so under Node."""


def _over(*builds: Build) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "build", builds, indirect=True, ids=[build.name for build in builds]
    )


USUAL = (*BUILDS, STREAMING)
"""What a test runs over unless it says otherwise."""
over_websocket = _over(*BUILDS)
"""For tests of frames, which SockJS does not tell the application."""
over_both_formats = _over(*BUILDS[:2])
"""Where waiting is what takes long, and seconds do not depend on what carries them."""
EVERY = (*USUAL, *OTHERS)
over_every_transport = _over(*EVERY)
"""For some tests of each kind: the transports differ in how bytes get there and back."""
over_each_position = _over(JSON, JSON_SEQ)
"""Where starting servers is what takes long: clients of all builds for which such a server is
one are there at once, see the fixture `crowd`."""
over_sockjs_alone = _over(STREAMING, *OTHERS)
"""For what only SockJS could spoil."""


def require_packages(package: str = "centrifuge") -> None:
    """Go on only where this npm package is installed."""
    if not (DIRECTORY / "node_modules" / package).is_dir():
        message = f"the npm package {package} is not installed (run `npm ci` in tests/js)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
