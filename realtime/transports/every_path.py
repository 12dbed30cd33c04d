"""The paths of the service where its options have mistakes: all that it could serve."""

from __future__ import annotations

from dataclasses import replace

from realtime.config.options import Config
from realtime.config.rules import bad_paths


def every_path(config: Config) -> Config:
    """Return options with which every path is the service's, at the places that these name.

    An option without a path that a URL can have counts with its default.
    """
    usable = replace(config, **{name: getattr(Config(), name) for name, *_ in bad_paths(config)})
    return replace(
        usable,
        websocket_disable=False,
        sockjs_disable=False,
        events=True,
        http_stream=True,
        sse=True,
        uni_http_stream=True,
        uni_sse=True,
        uni_websocket=True,
        health=True,
    )
