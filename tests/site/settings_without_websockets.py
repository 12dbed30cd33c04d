"""The site where the package websockets is not installed."""

import sys

from tests.settings import *  # noqa: F403

sys.modules["websockets"] = None  # type: ignore[assignment]
