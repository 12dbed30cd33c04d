"""The paths of the service where its options have mistakes."""

from __future__ import annotations

import pytest

from realtime.config.reader import read
from realtime.monitoring import application as monitoring
from realtime.transports.every_path import every_path
from realtime.transports.sockjs.application import serves_sockjs
from realtime.transports.websocket import serves_websocket


@pytest.mark.parametrize(
    ("option", "path", "paths"),
    [
        ("websocket_handler_prefix", "relative", ["/connection/websocket"]),
        ("websocket_handler_prefix", "", ["/connection/websocket"]),
        ("sockjs_handler_prefix", "s", ["/connection/sockjs", "/connection/sockjs/info"]),
        ("sockjs_handler_prefix", "/s/", ["/connection/sockjs", "/connection/sockjs/info"]),
        ("health_handler_prefix", "state", ["/realtime/live", "/realtime/ready"]),
        ("health_handler_prefix", "/", ["/realtime/live", "/realtime/ready"]),
        ("metrics_handler_prefix", "m/", ["/realtime/metrics"]),
    ],
)
def test_path_that_no_url_has_leaves_the_service_at_its_default(
    option: str, path: str, paths: list[str]
) -> None:
    readable = every_path(read({option: path, "metrics_key": "k" * 16})[0])
    assert [
        each
        for each in paths
        if not serves_websocket(each, readable)
        and not serves_sockjs(each, readable)
        and not monitoring.serves(each, readable)
    ] == []
