"""Fixtures of the panel's live tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.live.standalone_site import serve_panel, sign_in, visitor
from tests.ready_site import ReadySite
from tests.server import Server


@pytest.fixture(scope="module")
def server(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The ready site with its standalone panel."""
    return serve_panel(serve, tmp_path_factory)


@pytest.fixture
def browser(server: Server) -> Iterator[httpx.Client]:
    """A browser in which an operator is signed in with the password of that panel."""
    with visitor(server) as browser:
        sign_in(browser)
        yield browser


@pytest.fixture
def site(staffed_site: ReadySite) -> ReadySite:
    """The ready site, with some staff."""
    return staffed_site
