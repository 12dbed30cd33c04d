"""What the modules of the checks share."""

from __future__ import annotations

from django.core import checks

Messages = list[checks.CheckMessage]

SECRET_LEAST_BYTES = 32
"""As long as the digest of SHA-256 (RFC 7518, 3.2)."""
