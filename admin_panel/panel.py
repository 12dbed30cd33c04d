"""The types of the panel. The same pages have two homes, which they know as `Panel` only.

Panel          one home of the pages: their URLs, their frame, and who the operator is
Page           a row of the table in `pages/`: name, label, permission, views
PageRequest    a request to a page: the argument of its view
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise

from .answering import Unavailable
from .health import watch
from .operators import Operator

View: TypeAlias = "Callable[[PageRequest], HttpResponse]"


@dataclass(frozen=True, slots=True)
class PanelPage:
    """One page."""

    name: str
    """For `panel.url(name)`."""
    label: str | Promise
    """In the tab bar, in the admin's index, and the page's title."""
    view: View
    allowed: Callable[[Operator], bool] = lambda operator: operator.may_view
    """Whether an operator may open the page and its parts."""
    under: str = ""
    """For a page without a tab: the name of the page whose tab is marked."""
    needs: str = "view"
    """Codename of the permission that an operator lacks who may not open it."""
    parts: Mapping[str, View] = field(default_factory=dict)
    """More views of the page: `{"data": view}` is at "<path>data/", `panel.url("<name>_data")`."""
    word: str = ""
    """Of the URL; empty: the name."""

    @property
    def path(self) -> str:
        """The path below the URL of the home: one word and a slash."""
        return f"{self.word or self.name}/"

    @property
    def listed(self) -> bool:
        """Whether the page has a tab, and an entry in the admin's index."""
        return not self.under


class Panel(ABC):
    """One home of the pages."""

    base_template: str
    """The template of the frame, with the blocks of `admin/base_site.html`."""

    namespace: str
    """Namespace of the URL names."""

    prefix: str = ""
    """Prefix of the URL names, inside the namespace."""

    def __init__(self, pages: Sequence[PanelPage]) -> None:
        self.pages = pages

    @property
    def instance(self) -> str | None:
        """The instance namespace, if there can be several homes of one kind."""
        return None

    @abstractmethod
    def operator(self, request: HttpRequest) -> Operator:
        """Return the operator who sent a request."""

    @abstractmethod
    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of the frame, besides `title`."""

    def url(self, name: str, **query: object) -> str:
        """Return the URL of a page, or of a part of one ("overview_data").

        Names of channels and users go into the query, because they may hold any character.
        """
        url = reverse(f"{self.namespace}:{self.prefix}{name}", current_app=self.instance)
        return f"{url}?{urlencode(query)}" if query else url

    def listed_for(self, operator: Operator) -> list[PanelPage]:
        """Return the pages of the tab bar that an operator may open."""
        return [page for page in self.pages if page.listed and page.allowed(operator)]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to a page: the argument of its view."""

    http: HttpRequest
    panel: Panel
    page: PanelPage
    operator: Operator

    def require(self, codename: str) -> None:
        """Raise PermissionDenied, which names the permission, if the operator lacks it."""
        if not self.operator.has(codename):
            raise PermissionDenied(codename)

    def url(self, name: str, **query: object) -> str:
        """Return the URL of a page; see `Panel.url`."""
        return self.panel.url(name, **query)

    def redirect(self, name: str, **query: object) -> HttpResponse:
        """Redirect the browser to a page."""
        return redirect(self.url(name, **query))

    def render(
        self,
        template: str,
        *,
        status: int = 200,
        unavailable: Unavailable | None = None,
        **context: object,
    ) -> HttpResponse:
        """Render the page from a template that extends `admin_panel/base.html`.

        Args:
            unavailable: why the service did not answer this page.
        """
        context["unavailable"] = unavailable
        values = self.panel.context(self.http) | self._context() | context
        if self.operator.may_view:
            look = watch.look(failed=unavailable)
            values.setdefault("health", watch.health(look))
        return TemplateResponse(self.http, f"admin_panel/{template}", values, status=status)

    def fragment(self, template: str, **context: object) -> str:
        """Render a part of the page from a template that extends none."""
        return render_to_string(
            f"admin_panel/{template}", self._context() | context, request=self.http
        )

    def success(self, text: str | Promise) -> None:
        """Show on the next page that an action succeeded."""
        messages.success(self.http, str(text))

    def warning(self, text: str | Promise) -> None:
        """Show a warning on the next page."""
        messages.warning(self.http, str(text))

    def _context(self) -> dict[str, Any]:
        return {
            "panel": self.panel,
            "page": self.page,
            "operator": self.operator,
            "tabs": self.panel.listed_for(self.operator),
            "title": self.page.label,
        }
