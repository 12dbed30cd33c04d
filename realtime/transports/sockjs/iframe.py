"""The page in an iframe, from which the SockJS library sends its requests with our origin."""

from __future__ import annotations

import hashlib
import html
from functools import lru_cache

_PAGE = """<!doctype html>
<html>
<head>
<meta charset="UTF-8">
<title>SockJS</title>
<script src="{url}"></script>
<script>SockJS.bootstrap_iframe();</script>
</head>
<body></body>
</html>
"""


@lru_cache(maxsize=4)
def page(sockjs_url: str) -> tuple[bytes, bytes]:
    """Return the page and its entity tag."""
    text = _PAGE.format(url=html.escape(sockjs_url, quote=True)).encode()
    return text, b'"%s"' % hashlib.blake2b(text, digest_size=16).hexdigest().encode()
