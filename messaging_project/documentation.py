"""The documentation beside the demo: what `make docs` builds, or else its source as text."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.static import serve

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "dist/docs"
SOURCE = ROOT / "docs"


def first_page() -> str:
    """Return the path of the first page; "" where the project has no documentation."""
    for directory, name in ((BUILT, "index.html"), (SOURCE, "index.md")):
        if (directory / name).is_file():
            return reverse("documentation", args=[name])
    return ""


@require_safe
def documentation(request: HttpRequest, path: str) -> HttpResponseBase:
    """Return a file of the documentation, with the setting DEMO only."""
    if not settings.DEMO:
        raise Http404("The setting DEMO is off.")
    if not path.endswith(".md"):
        return serve(request, path, document_root=str(BUILT))
    page = b"".join(serve(request, path, document_root=str(SOURCE)))
    return HttpResponse(page, content_type="text/plain; charset=utf-8")
