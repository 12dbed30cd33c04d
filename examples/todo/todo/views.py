"""The page and its three actions: forms that are posted, and lead back to the page."""

from django.db import transaction
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from realtime.live import publish_html  # live

from .models import Item


def page(request):
    return render(request, "todo/page.html", {"items": Item.objects.all()})


@require_POST
def add(request):
    if title := request.POST.get("title", "").replace("\x00", "").strip()[:100]:
        item = Item.objects.create(title=title)
        publish_html("todo:all", "todo/item.html", {"item": item}, swap="append")  # live
    return redirect("page")


@require_POST
@transaction.atomic
def turn(request, pk):
    if item := Item.objects.select_for_update().filter(pk=pk).first():
        item.done = not item.done
        item.save()
        publish_html("todo:all", "todo/item.html", {"item": item}, swap="append")  # live
    return redirect("page")


@require_POST
def remove(request, pk):
    Item.objects.filter(pk=pk).delete()
    publish_html("todo:all", None, swap="remove", target=f"[data-key='{pk}']")  # live
    return redirect("page")
