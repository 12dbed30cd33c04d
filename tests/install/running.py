"""A server that runs a developer's site, and a visitor who is logged in there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.install.site import PASSWORD, USER, Site
from tests.ports import free_port
from tests.protocol_client import ProtocolClient, open_client
from tests.server import wait_until

TIMEOUT = 120.0
"""Seconds; modules are compiled at the first start."""


class Running:
    """One server process with what it starts, on a free port."""

    def __init__(self, site: Site, command: list[str], log: Path, **variables: str) -> None:
        """`command` without its port, which is put where the server wants it."""
        self.port = free_port()
        self.log = log
        place = [str(self.port)] if "runserver" in command else ["--port", str(self.port)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [site.environment.bin / command[0], *command[1:], *place],
                cwd=site.directory,
                env=site.environment.variables(**variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # signals of a terminal reach all of its processes
            )
        try:
            wait_until(self.listens, TIMEOUT, f"a server that runs {' '.join(command)}")
        except BaseException as error:
            self.stop()
            error.add_note(log.read_text())
            raise

    def listens(self) -> bool:
        """Whether it accepts connections."""
        assert self._process.poll() is None, "the server ended"
        return accepts(self.port)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        return f"ws://127.0.0.1:{self.port}/connection/websocket"

    def subscribers(self, key: str) -> int:
        """How many clients are subscribed to the channel of the quick start, by an API key."""
        command = {"method": "presence_stats", "params": {"channel": "chat:lobby"}}
        headers = {"Authorization": f"apikey {key}"}
        answer = httpx.post(
            f"{self.address}/api", json=command, headers=headers, trust_env=False, timeout=TIMEOUT
        )
        return int(answer.json()["result"]["num_clients"])

    def interrupt(self) -> int:
        """Press Ctrl-C in its terminal and wait; returns the exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(TIMEOUT)

    def stop(self) -> None:
        """End all of its processes, the hard way if need be."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(TIMEOUT)


def accepts(port: int) -> bool:
    """Whether anybody listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def log_in(browser: Chrome) -> None:
    """Send the form of Django's admin, which is shown, as the user of the site."""
    browser.find_element(By.NAME, "username").send_keys(USER)
    browser.find_element(By.NAME, "password").send_keys(PASSWORD)
    browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()


class Visitor:
    """A browser without a screen: cookies, forms, and the WebSocket of a page."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.address, trust_env=False, timeout=TIMEOUT)

    def log_in(self) -> Visitor:
        """Log in as the user of the site, through the form of Django's admin."""
        self.http.get("/admin/login/")
        response = self.post("/admin/login/", username=USER, password=PASSWORD)
        assert response.status_code == 302, response.text
        return self

    def post(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of a page."""
        fields["csrfmiddlewaretoken"] = self.http.cookies["csrftoken"]
        return self.http.post(path, data=fields)

    @property
    def headers(self) -> dict[str, str]:
        """What a browser sends with the handshake of a WebSocket."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        return {"Origin": self.server.address} | ({"Cookie": cookies} if cookies else {})

    @asynccontextmanager
    async def listening(self, channel: str = "chat:lobby") -> AsyncIterator[ProtocolClient]:
        """A client of the service that is subscribed to a channel."""
        async with open_client(self.server.socket, additional_headers=self.headers) as client:
            await client.result("subscribe", {"channel": channel})
            yield client
