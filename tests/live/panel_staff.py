"""Staff of the ready site with some of the permissions, and what they send and leave behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import httpx

from tests.live.panel_site import OPERATOR, PASSWORD, sign_in
from tests.ready_site import ReadySite, manage

STAFF = {
    "viewer": ["view"],
    "publisher": ["view", "publish"],
    "demo": ["view", "publish_demo"],
    "disconnecter": ["view", "disconnect"],
    "unsubscriber": ["view", "unsubscribe"],
    "remover": ["view", "remove_history"],
    "blocker": ["view", "block"],
    "tracer": ["view", "trace"],
    "blind": ["publish", "disconnect", "unsubscribe", "remove_history", "block", "trace"],
    "editor": ["publish"],
    "for-demo": ["publish_demo"],
    "newcomer": [],
    "visitor": ["publish"],
}
"""Name → codenames of the permissions."""

VISITOR = "visitor"
"""The one who is no staff."""

ADD = """
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Permission, User
hashed = make_password({password!r})  # once: it takes long on purpose
for name, codenames in {staff!r}.items():
    user = User.objects.create(username=name, password=hashed, is_staff=name != {visitor!r})
    user.user_permissions.set(Permission.objects.filter(
        content_type__app_label="realtime_admin", codename__in=codenames))
    assert user.user_permissions.count() == len(codenames), name
"""

LOG = """
SELECT auth_user.username, django_content_type.model, object_id, change_message
FROM django_admin_log
JOIN auth_user ON auth_user.id = user_id
JOIN django_content_type ON django_content_type.id = content_type_id
ORDER BY django_admin_log.id
"""


def add_staff(site: ReadySite) -> None:
    """Add the members of the staff."""
    code = ADD.format(staff=STAFF, password=PASSWORD, visitor=VISITOR)
    manage(site.directory, "shell", "--verbosity", "0", "--no-imports", "-c", code)


class Staff:
    """The browsers of members of the staff, without JavaScript; each signs in once."""

    def __init__(self, site: ReadySite) -> None:
        self._site = site
        self._browsers: dict[str, httpx.Client] = {}

    def __enter__(self) -> Staff:
        return self

    def __exit__(self, *_: object) -> None:
        for browser in self._browsers.values():
            browser.close()

    def __getitem__(self, name: str) -> httpx.Client:
        if name not in self._browsers:
            password = self._site.password if name == OPERATOR else PASSWORD
            self._browsers[name] = sign_in(self._site.address, password, name)
        return self._browsers[name]


def post(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form, as its page would."""
    fields["csrfmiddlewaretoken"] = browser.cookies["csrftoken"]
    return browser.post(path, data=fields)


def logged(site: ReadySite, word: str) -> list[tuple[str, str, str, str]]:
    """Entries of the admin's log about a word: who, model, target, and what was done."""
    with closing(sqlite3.connect(site.directory / "db.sqlite3")) as database:
        return [row for row in database.execute(LOG) if word in row[2]]
