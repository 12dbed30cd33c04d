"""What the modules of the checks share."""

from __future__ import annotations

from django.core import checks

Messages = list[checks.CheckMessage]
