"""What the app adds to the service of this process, for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth import get_user_model
from django.db.models.signals import post_delete

from realtime.answers import flusher as flushing
from realtime.answers import setup
from realtime.config import parts, sources
from realtime.hooks.registry import registry
from realtime.serving import serving


@contextmanager
def installed() -> Iterator[None]:
    """Install it, and take it away with the hooks of the test."""
    before = vars(registry).copy()
    for name in ("subscribe", "answer_end", "answer_stop", "guarded"):
        setattr(registry, name, list(before[name]))
    registry.methods = dict(registry.methods)
    setup.install()
    try:
        yield
    finally:
        running = _end_thread()
        vars(registry).update(before)
        serving.apps.clear()
        parts.namespaces.clear()
        sources.configuration.override()
        post_delete.disconnect(sender=get_user_model(), dispatch_uid=setup.__name__)
    assert not running


def _end_thread() -> int:
    """End the thread that writes answers: it would log into later tests. Return how many ran."""
    flusher = flushing.flusher
    if flusher._saver.is_alive():
        flusher._saver.join()
    with flusher._lock:
        left, thread = len(flusher._producers) + len(flusher._left), flusher._thread
        flusher._producers.clear()
        flusher._left.clear()
    if thread is not None:
        thread.join()
    return left
