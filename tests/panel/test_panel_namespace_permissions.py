"""The permissions of namespaces: made after migrate, and after flush."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.test import override_settings

from admin_panel import permissions


def of_namespaces() -> set[str]:
    """The permissions there are to publish into a namespace."""
    found = Permission.objects.filter(
        content_type__app_label=permissions.APP_LABEL, codename__startswith="publish_"
    )
    return {permission.codename for permission in found}


@pytest.mark.django_db(transaction=True)
def test_permissions_of_namespaces_are_there_after_a_flush() -> None:
    with override_settings(REALTIME={"namespaces": [{"name": "chat"}, {"name": "news"}]}):
        call_command("flush", interactive=False, verbosity=0)

        assert of_namespaces() == {"publish_chat", "publish_news"}
