"""The ready site's panel on servers that a test restarts on their ports, alone or over a Redis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx

from tests.live.panel_site import OPERATOR, PASSWORD
from tests.ports import free_port
from tests.ready_site import manage, migrate
from tests.server import API_KEY, SECRET, Server

VIEWER = "viewer"
"""Staff who may look, and do nothing."""

SET_UP = f"""
from django.contrib.auth.models import Permission, User
User.objects.create_superuser({OPERATOR!r}, password={PASSWORD!r})
viewer = User.objects.create_user({VIEWER!r}, password={PASSWORD!r}, is_staff=True)
viewer.user_permissions.add(
    Permission.objects.get(content_type__app_label="realtime_admin", codename="view")
)
"""


def make_site(directory: Path) -> Path:
    """A migrated database with users, for any number of servers; returns its directory."""
    migrate(directory)
    manage(directory, "shell", "--verbosity", "0", "--no-imports", "-c", SET_UP)
    return directory


NAMESPACES = [
    {
        "name": "demo",
        "publish": True,
        "subscribe_to_publish": True,
        "presence": True,
        "join_leave": True,
        "history_size": 100,
        "history_lifetime": 300,
        "history_recover": True,
    },
    {"name": "long", "history_size": 5000, "history_lifetime": 300},
    {"name": "seats", "map": "recoverable"},
]
"""That of the ready site, one that keeps much, and one of maps."""


class PanelServer:
    """A daphne that serves the ready site; after a restart it is where it was."""

    def __init__(
        self,
        site: Path,
        log: Path,
        *,
        redis_url: str = "",
        application: str = "messaging_project.asgi:application",
        **environment: str,
    ) -> None:
        """
        Args:
            site: what `make_site` made.
            log: a directory of this server's own.
            application: what the server serves.
            environment: more of it.
        """
        self._log = log
        self._application = application
        self.environment = {
            "DJANGO_SETTINGS_MODULE": "messaging_project.settings",
            "DJANGO_DATA_DIR": str(site),
            "SERVICE_API_KEY": API_KEY,
            "SERVICE_TOKEN_HMAC_SECRET_KEY": SECRET,
            "SERVICE_NAMESPACES": json.dumps(NAMESPACES),
            **environment,
        }
        if redis_url:
            self.environment["SERVICE_REDIS_URL"] = redis_url
        self._port = free_port()
        self.server = self._start()

    def _start(self) -> Server:
        return Server(
            self._log,
            environment=self.environment,
            port=self._port,
            application=self._application,
        )

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def socket(self) -> str:
        return self.server.socket

    def api(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the server API, which must succeed."""
        result: dict[str, Any] = self.server.api(method, **params)["result"]
        return result

    def publish(self, channel: str, *data: object) -> None:
        """Publish each of the data, in one request."""
        commands = (
            {"method": "publish", "params": {"channel": channel, "data": each}} for each in data
        )
        response = httpx.post(
            f"{self.address}/api",
            content="\n".join(json.dumps(command) for command in commands),
            headers={"Authorization": f"apikey {API_KEY}"},
            timeout=20,
        )
        replies = [json.loads(line) for line in response.text.splitlines()]
        assert replies == [{"result": {}}] * len(data), response.text

    def change(self, channel: str, key: str, **params: Any) -> None:
        """Put a key of a map, or remove it if there are no data."""
        method = "map_publish" if "data" in params else "map_remove"
        response = httpx.post(
            f"{self.address}/api/{method}",
            json={"channel": channel, "key": key, **params},
            headers={"X-API-Key": API_KEY},
            timeout=20,
        )
        assert response.json()["result"]["offset"], response.text

    def stop(self) -> None:
        """Stop it in order."""
        self.server.stop()

    def discard(self) -> None:
        """Be done with it."""
        self.server.discard()

    def start(self) -> None:
        """Start it again, on the same port."""
        self.server = self._start()
