"""Lists in pages: a page of a list, and the numbers of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Page, Paginator


def page_of(items: Sequence[Any], size: int, number: str | None) -> Page[Any]:
    """Return a page of a list; the first or the last one if the number is out of range."""
    return Paginator(items, size).get_page(number)


def numbers(page: Page[Any]) -> list[int | None]:
    """Return the numbers of the pages to link to; None for omitted ones."""
    around = page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1)
    return [number if isinstance(number, int) else None for number in around]
