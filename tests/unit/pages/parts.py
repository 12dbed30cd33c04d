"""What pages hold."""

from __future__ import annotations

import json
import re
from typing import Any

ELEMENT = re.compile(r"<script[^>]*data-realtime-channel[^>]*>(.*?)</script>", re.DOTALL)


def elements(html: str | bytes) -> list[dict[str, Any]]:
    text = html if isinstance(html, str) else html.decode()
    return [json.loads(found) for found in ELEMENT.findall(text)]
