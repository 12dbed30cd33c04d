"""The panel's page in the Django admin: publish into a channel.

It needs the permission `realtime_admin.publish`; every publication leaves an entry in the
admin's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from realtime.errors import (
    BadRequest,
    EngineUnavailable,
    Error,
    LimitExceeded,
    NamespaceNotFound,
    NotServing,
)
from realtime.service import publish

from .forms import PublishForm
from .models import Publication

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Publication]
else:
    ModelAdmin = admin.ModelAdmin

URL_NAME = "realtime_admin_publication_changelist"
"""The name under which the admin's index links to the page."""

LOG_PREFIX = "Data: "
LOGGED_CHARACTERS = 500
RECENT = 10

_ERRORS_OF_CHANNEL = (NamespaceNotFound, LimitExceeded, BadRequest)


@admin.register(Publication)
class PublishPage(ModelAdmin):
    """One page in place of the usual five: there is nothing to list, change or delete."""

    def get_urls(self) -> list[URLPattern]:
        """The page stands where the list would be."""
        return [path("", self.admin_site.admin_view(self.publish_view), name=URL_NAME)]

    def has_view_permission(self, request: HttpRequest, obj: Publication | None = None) -> bool:
        """Whether this user may publish."""
        return request.user.has_perm("realtime_admin.publish")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the admin's index shows the section."""
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: publishing is the page itself."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Publication | None = None) -> bool:
        """Nobody: what is published is published."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Publication | None = None) -> bool:
        """Nobody."""
        return False

    def publish_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, or publish and come back to it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            form = PublishForm(request.POST)
            if form.is_valid() and publish_and_log(request, form):
                channel: str = form.cleaned_data["channel"]
                messages.success(request, f"Published into {channel}.")
                return redirect(f"{request.path}?{urlencode({'channel': channel})}")
        else:
            form = PublishForm(initial={"channel": request.GET.get("channel", "")})
        context = {
            **self.admin_site.each_context(request),
            "title": "Publish",
            "opts": self.opts,
            "form": form,
            "entries": recent_entries(),
        }
        return TemplateResponse(request, "admin_panel/publish.html", context)


def publish_and_log(request: HttpRequest, form: PublishForm) -> bool:
    """Publish what the form holds; a refusal becomes an error of the form, and False."""
    channel: str = form.cleaned_data["channel"]
    data: str = form.cleaned_data["data"]
    try:
        with transaction.atomic():
            log(request, channel, data)
            # as it was typed: number spelling and key order reach the clients
            # and at once: when it fails, nothing is logged
            publish(channel, msgspec.Raw(data.encode()), on_commit=False)
    except Error as error:
        field = "channel" if isinstance(error, _ERRORS_OF_CHANNEL) else None
        form.add_error(field, f"Error {error.code}: {error.message}.")
    except (EngineUnavailable, NotServing) as error:
        form.add_error(None, str(error))
    except ValueError:
        form.add_error("data", "The service does not accept this as JSON.")
    else:
        return True
    return False


def log(request: HttpRequest, channel: str, data: str) -> None:
    """Leave an entry in the admin's log."""
    if len(data) > LOGGED_CHARACTERS:
        data = data[:LOGGED_CHARACTERS] + "…"
    assert request.user.pk is not None, "the admin admits nobody who is not signed in"
    LogEntry.objects.log_actions(
        user_id=request.user.pk,
        queryset=[Publication(channel=channel)],
        action_flag=ADDITION,
        # not the data alone: Django reads messages that begin with a bracket as its own
        change_message=LOG_PREFIX + data,
        single_object=True,
    )


def recent_entries() -> list[tuple[LogEntry, str]]:
    """What operators published here last, newest first, with the data."""
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(Publication))
    recent = entries.select_related("user").order_by("-action_time")[:RECENT]
    return [(entry, entry.change_message.removeprefix(LOG_PREFIX)) for entry in recent]
