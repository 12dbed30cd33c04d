"""What several tests of the publish page send."""

from __future__ import annotations

BROKEN = [
    ("{", 1, 2),
    ("hi", 1, 1),
    ('{"a": 1 "b"}', 1, 9),
    ("{'a': 1}", 1, 2),
    ('{"a":\n  b}', 2, 3),
    ('{"a":\r\n  b}', 2, 3),
    ("1 2", 1, 3),
    ('[1,\n"NaN",\nNaN]', 3, 1),
    ("-Infinity", 1, 1),
    ('["a\tb"]', 1, 4),
]
"""Text that is no JSON (RFC 8259); line and column of the first character that cannot stand."""
