"""Lists in pages: which part of a list is shown, and links to the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Page, Paginator


def page_of(items: Sequence[Any], size: int, number: str | None) -> Page[Any]:
    """One page of a list; the first or last where there is no such page."""
    return Paginator(items, size).get_page(number)


def numbers(page: Page[Any]) -> list[int | None]:
    """The pages to link to; None where some are left out."""
    around = page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1)
    return [number if isinstance(number, int) else None for number in around]
