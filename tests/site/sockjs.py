"""A page with the published libraries for SockJS, and these libraries."""

from __future__ import annotations

from pathlib import Path

from django.http import FileResponse, Http404, HttpRequest
from django.urls import path

PACKAGES = Path(__file__).resolve().parent.parent / "js" / "node_modules"
SCRIPTS = {
    "sockjs": PACKAGES / "sockjs-client" / "dist" / "sockjs.min.js",
    "centrifuge": PACKAGES / "centrifuge" / "dist" / "centrifuge.min.js",
}


def page(request: HttpRequest) -> FileResponse:
    """The page; `start` and `next` in it are for tests."""
    return FileResponse(Path(__file__).with_name("sockjs.html").open("rb"))


def script(request: HttpRequest, name: str) -> FileResponse:
    """A library, as installed for the tests."""
    if name not in SCRIPTS:
        raise Http404
    return FileResponse(SCRIPTS[name].open("rb"))


urlpatterns = [path("", page), path("<str:name>.js", script)]
