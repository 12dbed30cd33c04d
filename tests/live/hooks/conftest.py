"""Fixtures of the tests of hooks and logins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.live.configurations import Serve
from tests.live.hooks_site import OPTIONS, environment
from tests.server import Server


@pytest.fixture(scope="module")
def site(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Serve a site: `site("strange", hook_timeout=2)`; `variables` are those of its environment."""

    def site(
        name: str = "hooks", variables: Mapping[str, str] | None = None, **options: Any
    ) -> Server:
        made = environment(tmp_path_factory, name) | dict(variables or {})
        return serve(environment=made, **(OPTIONS | options))

    return site
