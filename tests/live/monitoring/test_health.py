"""Live and ready, in front of the site and as its views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.api_client import post
from tests.live.processes import environment, wsgi_site
from tests.redis_server import RedisServer
from tests.server import Server, wait_until

PLACES = {"/realtime": 405, "/health": 403}
"""In front of the site; its views, as the test site includes them: what refuses a POST, there
Django's protection against forged requests."""


@pytest.mark.parametrize("server_name", ["daphne", "uvicorn"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("path", ["/live", "/ready"])
def test_process_that_serves_is_alive_and_ready(
    serve: Callable[..., Server], server_name: str, place: str, path: str
) -> None:
    server = serve(server=server_name, health=True)
    answer = post(server, method="GET", path=place + path, headers={})
    head = post(server, method="HEAD", path=place + path, headers={})
    refused = post(server, method="POST", path=place + path, headers={})
    assert (answer.status, answer.body) == (200, b"ok\n")
    assert "no-store" in answer.headers["Cache-Control"]
    assert (head.status, head.body, refused.status) == (200, b"", PLACES[place])


def test_paths_are_the_site_s_while_health_is_off(serve: Callable[..., Server]) -> None:
    for path in ("/realtime/live", "/realtime/ready", "/realtime"):
        assert post(serve(), method="GET", path=path, headers={}).status == 404


def test_process_without_clients_is_ready_while_it_reaches_redis(
    own_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    redis = own_redis()
    with wsgi_site(environment(tmp_path, {"redis_url": redis.url})) as process:

        def status(path: str) -> int:
            return post(process, method="GET", path=f"/health{path}", headers={}).status

        before = status("/ready")
        redis.kill()
        wait_until(lambda: status("/ready") == 503, what="the end of readiness")

        assert (before, status("/live")) == (200, 200)
