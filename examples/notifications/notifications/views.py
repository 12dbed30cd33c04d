from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from . import inbox

PEOPLE = ("Ada", "Ben", "Chen")
READ_SHOWN = 20


@login_required
def page(request):
    """Show all unread notifications, so that each page can count them, and some others."""
    by_newest = request.user.notifications.order_by("-pk")
    rows = [*by_newest.filter(read=False), *by_newest.filter(read=True)[:READ_SHOWN]]
    context = {
        "channel": inbox.channel_of(request.user),
        "notifications": sorted(rows, key=lambda row: -row.pk),
        "people": PEOPLE,
    }
    return render(request, "notifications/page.html", context)


@login_required
@require_POST
def read(request, pk=None):
    """Mark one notification as read, or all."""
    inbox.mark_read(request.user, **({} if pk is None else {"pk": pk}))
    return redirect("page")


@login_required
@require_POST
def order(request):
    """Send someone a parcel: some work in a transaction, a part of which is the notification."""
    with transaction.atomic():
        inbox.notify(person(request.POST.get("to")), f"A parcel from {request.user} is on its way")
        if "fail" in request.POST:  # what fails later undoes the notification, too
            transaction.set_rollback(True)
    return redirect("page")


def enter(request):
    """Log in as one of some people without a password. Your site has a login of its own."""
    if request.method == "POST":
        login(request, person(request.POST.get("name")))
        return redirect("page")
    return render(request, "notifications/enter.html", {"people": PEOPLE})


def person(name):
    """Return one of those people as a user."""
    if name not in PEOPLE:
        raise Http404(name)
    return get_user_model().objects.get_or_create(username=name)[0]
