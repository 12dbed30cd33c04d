"""What the runners of these tests are made with."""

TIMEOUT = 60.0
"""Seconds that a function has; far more than any needs."""

WORKERS = 2
"""Threads."""
