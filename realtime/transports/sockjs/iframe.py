"""The page in an iframe, from which the SockJS library sends its requests with our origin.

A page that frames it uses our origin: its requests have cookies, and count as those of a page of
this site. So it is there only with `sockjs_iframe`, and only for the origins in `allowed_origins`:
browsers refuse other frames (`frame-ancestors`), and the page drops messages of other origins.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from realtime.config import origins
from realtime.config.options import Config

_PAGE = """<!doctype html>
<html>
<head>
<meta charset="UTF-8">
<title>SockJS</title>
<script src="{url}"{integrity}></script>
<script>{script}</script>
</head>
<body></body>
</html>
"""

_SCRIPT = """
var origins = %s.map(function (pattern) { return new RegExp("^" + pattern + "$"); });
addEventListener("message", function (event) {
  var known = event.origin === location.origin || origins.some(function (origin) {
    return origin.test(event.origin);
  });
  if (!known) event.stopImmediatePropagation();
}, true);
SockJS.bootstrap_iframe();
"""


class IframePage(NamedTuple):
    """The page, its entity tag, and its content security policy."""

    content: bytes
    tag: bytes
    policy: bytes


def page(config: Config) -> IframePage:
    """Return the page of a configuration in which `sockjs_iframe` is on."""
    return _page(*config.sockjs_script, config.allowed_origins or ())


@lru_cache(maxsize=4)
def _page(url: str, integrity: str, patterns: tuple[str, ...]) -> IframePage:
    sources = [source for pattern in patterns for source in origins.frame_ancestors(pattern)]
    script = _SCRIPT % json.dumps([_expression(source) for source in sources])
    attributes = f' integrity="{html.escape(integrity)}" crossorigin="anonymous"'
    content = _PAGE.format(
        url=html.escape(url), integrity=attributes if integrity else "", script=script
    ).encode()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{digest}' {_source_of(url)}",
            "connect-src 'self'",
            "frame-src 'self'",  # the transport iframe-htmlfile
            "base-uri 'none'",
            " ".join(("frame-ancestors 'self'", *sources)),
        )
    ).encode("latin-1")
    tag = hashlib.blake2b(content + policy, digest_size=16).hexdigest()
    return IframePage(content, f'"{tag}"'.encode(), policy)


def _source_of(url: str) -> str:
    """Return the source of a script in the words of a policy."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else "'self'"


def _expression(source: str) -> str:
    """Return a source of `frame-ancestors` as a regular expression of JavaScript."""
    escaped = re.escape(source).replace(r"\-", "-")
    return escaped.replace(r"://\*\.", r"://[^/:]+\.").replace(r":\*", r":[0-9]+")
