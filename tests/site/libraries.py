"""Pages that use published libraries, and these libraries as installed for the tests."""

from __future__ import annotations

from pathlib import Path

from django.http import FileResponse, Http404, HttpRequest
from django.urls import path

DIRECTORY = Path(__file__).resolve().parent
PACKAGES = DIRECTORY.parent / "js" / "node_modules"
PAGES = ("sockjs", "streams")
SCRIPTS = {
    "events": DIRECTORY / "events.js",
    "sockjs": PACKAGES / "sockjs-client" / "dist" / "sockjs.min.js",
    "centrifuge": PACKAGES / "centrifuge" / "dist" / "centrifuge.min.js",
    "centrifuge-5": PACKAGES / "centrifuge-5" / "dist" / "centrifuge.js",
    "centrifuge-5-protobuf": PACKAGES / "centrifuge-5" / "dist" / "centrifuge.protobuf.js",
}


def page(request: HttpRequest, name: str) -> FileResponse:
    """A page; `start` and `next` in it are for tests."""
    if name not in PAGES:
        raise Http404
    return FileResponse((DIRECTORY / f"{name}.html").open("rb"))


def script(request: HttpRequest, name: str) -> FileResponse:
    """A script of these pages."""
    if name not in SCRIPTS:
        raise Http404
    return FileResponse(SCRIPTS[name].open("rb"))


urlpatterns = [path("<str:name>.js", script), path("<str:name>/", page)]
