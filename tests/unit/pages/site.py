"""A site whose pages have positions. A publication comes between its query and its response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import Context, Template, engines
from django.template.response import TemplateResponse
from django.urls import path
from django.views.decorators.cache import cache_page
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

import realtime
from realtime.pages import aset_positions, set_positions

TAG = '{% load realtime %}{% realtime_channel "orders:42" %}'
MANY = (
    "{% load realtime %}{% for name in names %}{% realtime_channel name %}{% endfor %}"
    '{% realtime_channels "orders:x" names %}'
)
TOKEN = '{% load realtime %}{% realtime_channel "$orders:42" as="mine" token=True %}'


def render(request: HttpRequest, text: str, **values: Any) -> str:
    return Template(text).render(Context({"request": request, **values}))


def page(request: HttpRequest) -> HttpResponse:
    text = request.POST.get("text") or request.GET.get("text", TAG)
    html = render(request, text, names=request.GET.getlist("name"))
    realtime.publish("orders:42", "after the query")
    return HttpResponse(html, content_type=request.GET.get("type", "text/html"))


async def apage(request: HttpRequest) -> HttpResponse:
    html = render(request, TAG)
    await realtime.apublish("orders:42", "after the query")
    return HttpResponse(html)


def rendered_later(request: HttpRequest) -> HttpResponse:
    realtime.publish("orders:42", "after the query")
    return TemplateResponse(request, engines["django"].from_string(TAG))


def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(render(request, TAG), content_type="text/plain")


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    def chunks() -> Iterator[str]:
        yield "<p>"
        yield render(request, request.GET.get("text", TAG))
        realtime.publish("orders:42", "after the query")
        yield render(request, TAG)

    return StreamingHttpResponse(chunks())


def cut(request: HttpRequest) -> StreamingHttpResponse:
    """A page in two chunks, cut at `at`, or in chunks of one byte."""
    html = render(request, f"<p>{TAG}</p>").encode()
    at = int(request.GET["at"])
    chunks = [html[:at], html[at:]] if at else [html[i : i + 1] for i in range(len(html))]
    return StreamingHttpResponse(iter(chunks))


async def astreamed(request: HttpRequest) -> StreamingHttpResponse:
    async def chunks() -> AsyncIterator[str]:
        yield render(request, TAG)
        await realtime.apublish("orders:42", "after the query")
        await asyncio.sleep(0)
        yield render(request, TAG)

    return StreamingHttpResponse(chunks())


def json(request: HttpRequest) -> HttpResponse:
    response = JsonResponse({})
    set_positions(response, request, request.GET.getlist("name"))
    set_positions(response, request, request.GET.getlist("more"))
    return response


async def ajson(request: HttpRequest) -> HttpResponse:
    response = JsonResponse({})
    await aset_positions(response, request, request.GET.getlist("name"))
    return response


class TagRenderer(TemplateHTMLRenderer):
    """Renders the tag as a template of its own."""

    def resolve_template(self, template_names: Any) -> Any:
        return engines["django"].from_string(template_names[0])


class RestPage(APIView):
    """A page of REST framework."""

    renderer_classes = (TagRenderer,)

    def get(self, request: Request) -> Response:
        return Response({}, template_name=request.query_params["text"])


urlpatterns = [
    path("page", page),
    path("apage", apage),
    path("later", rendered_later),
    path("plain", plain),
    path("streamed", streamed),
    path("astreamed", astreamed),
    path("cut", cut),
    path("cached", cache_page(60)(page)),
    path("json", json),
    path("ajson", ajson),
    path("rest", RestPage.as_view()),
]
