"""A panel: the pages in one home, for example in the Django admin.

Pages know their home through this class only, so the same pages can be served elsewhere.

    Panel      where the pages are served, in which frame, and who their operator is
      └ Page   a row of the table in `pages/`: name, path, label, who may open it, view
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise

from .operators import Operator

View: TypeAlias = "Callable[[PageRequest], HttpResponse]"


@dataclass(frozen=True, slots=True)
class Page:
    """One page. The first word of its `path` is its place below the home's URL."""

    name: str
    """For URLs: `panel.url(name)`."""
    path: str
    """One word and a slash."""
    label: str | Promise
    """In the tab bar, in the admin's index, and the page's title."""
    allowed: Callable[[Operator], bool]
    """Who may open the page and its parts."""
    view: View
    listed: bool = True
    """Whether it has a tab and a line in the admin's index."""
    under: str = ""
    """Name of the page whose tab is marked, for a page that has no tab."""
    parts: Mapping[str, View] = field(default_factory=dict)
    """More views of the page: `{"data": view}` is at "<path>data/", `panel.url("<name>_data")`."""


class Panel(ABC):
    """One home of the pages."""

    base_template: str
    """The frame: a template with the blocks of `admin/base_site.html`."""

    namespace: str
    """Namespace of the URL names."""

    prefix: str = ""
    """What URL names begin with, inside the namespace."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages

    @property
    def instance(self) -> str | None:
        """Instance namespace, where there can be several homes of one kind."""
        return None

    @abstractmethod
    def operator(self, request: HttpRequest) -> Operator:
        """Who asks."""

    @abstractmethod
    def context(self, request: HttpRequest) -> dict[str, Any]:
        """What the base template needs besides `title`."""

    def url(self, name: str, **query: object) -> str:
        """The URL of a page, or of a part of one ("overview_data").

        What it is about goes into the query: names of channels and users hold any character.
        """
        url = reverse(f"{self.namespace}:{self.prefix}{name}", current_app=self.instance)
        return f"{url}?{urlencode(query)}" if query else url

    def listed_for(self, operator: Operator) -> list[Page]:
        """The pages of the tab bar that an operator may open."""
        return [page for page in self.pages if page.listed and page.allowed(operator)]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to a page: the argument of its view."""

    http: HttpRequest
    panel: Panel
    page: Page
    operator: Operator

    def url(self, name: str, **query: object) -> str:
        """The URL of a page; see `Panel.url`."""
        return self.panel.url(name, **query)

    def redirect(self, name: str, **query: object) -> HttpResponse:
        """Send the browser to a page."""
        return redirect(self.url(name, **query))

    def render(self, template: str, *, status: int = 200, **context: object) -> HttpResponse:
        """The page, from a template that extends `admin_panel/base.html`."""
        surroundings = self.panel.context(self.http) | self._context()
        return TemplateResponse(
            self.http, f"admin_panel/{template}", surroundings | context, status=status
        )

    def fragment(self, template: str, **context: object) -> str:
        """A piece of the page, from a template that extends nothing."""
        return render_to_string(
            f"admin_panel/{template}", self._context() | context, request=self.http
        )

    def success(self, text: str | Promise) -> None:
        """Say on the next page that something was done."""
        messages.success(self.http, str(text))

    def warning(self, text: str | Promise) -> None:
        """Say on the next page what the operator should mind."""
        messages.warning(self.http, str(text))

    def _context(self) -> dict[str, Any]:
        return {
            "panel": self.panel,
            "page": self.page,
            "operator": self.operator,
            "tabs": self.panel.listed_for(self.operator),
            "title": self.page.label,
        }
