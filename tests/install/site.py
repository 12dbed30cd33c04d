"""A developer's site: begun with `startproject`, with an app and a WebSocket route of its own.

What it has before is what many sites have: an app called `api`, with its pages under a path of
its own, and a consumer of plain Channels behind a `ProtocolTypeRouter`.
"""

from __future__ import annotations

import shlex
import subprocess
from fnmatch import fnmatch
from pathlib import Path

from tests.install.environments import Environment
from tests.install.pages import steps

COMMAND_TIMEOUT = 300.0
"""Seconds; modules are compiled at the first command, which takes long on a busy machine."""

TOKEN_KEY = "a key of the site's own, long enough for HMAC"
USER, PASSWORD = "ann", "a password that is long enough"

OWN_VIEWS = """\
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render


def who(request):
    return JsonResponse({"app": __name__})


@login_required
def page(request):
    return render(request, "page.html")


def token_page(request):
    return render(request, "token_page.html")


class Undo(Exception):
    pass


def roll_back(request):
    try:
        with transaction.atomic():
            publish("chat:lobby", {"text": request.GET["text"]})
            raise Undo
    except Undo:
        return HttpResponse(status=204)
"""

OWN_URLS = """\
from django.urls import path

from api import views

urlpatterns = [
    path("who", views.who),
    path("page", views.page),
    path("token-page", views.token_page),
    path("roll-back", views.roll_back),
]
"""

OWN_ROUTES = """
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from api.consumers import RoomConsumer

routes = [path("ws/rooms/<str:room>/", RoomConsumer.as_asgi())]
application = ProtocolTypeRouter(
    {"http": application, "websocket": AuthMiddlewareStack(URLRouter(routes))}
)
"""

QUICK_HASHES = 'PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]\n'
"""The default takes a quarter of a second for each login."""

OWN_SETTINGS = f"""
INSTALLED_APPS += ["api"]
{QUICK_HASHES}CHANNEL_LAYERS = {{"default": {{"BACKEND": "channels.layers.InMemoryChannelLayer"}}}}
"""


class Site:
    """One project directory, and the environment in which it runs."""

    def __init__(self, directory: Path, environment: Environment) -> None:
        self.directory = directory
        self.environment = environment

    def run(self, command: str, *, check: bool = True, **variables: str) -> str:
        """Run lines of a shell in the project's directory; returns all their output."""
        finished = subprocess.run(
            ["sh", "-ec", command],
            cwd=self.directory,
            env=self.environment.variables(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_TIMEOUT,
        )
        assert finished.returncode == 0 or not check, finished.stdout
        return finished.stdout

    def append(self, name: str, code: str) -> None:
        """Add code at the end of a file, which is made if need be."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{code}")

    def begin(self) -> None:
        """Make the site as it was before the service came."""
        self.run("django-admin startproject mysite .")
        plain_asgi = (self.directory / "mysite" / "asgi.py").read_text()
        self.append("mysite/plain_asgi.py", plain_asgi)
        self.run("python manage.py startapp api")
        (self.directory / "api" / "views.py").write_text(OWN_VIEWS)
        self.append("api/urls.py", OWN_URLS)
        self.append("api/consumers.py", steps("migrating.md")["consumer"])
        self.append("mysite/asgi.py", OWN_ROUTES)
        self.append("mysite/settings.py", OWN_SETTINGS)
        self.append(
            "mysite/urls.py",
            "from django.urls import include\n"
            "from django.contrib.staticfiles.urls import staticfiles_urlpatterns\n\n"
            'urlpatterns += [path("api-of-its-own/", include("api.urls"))]\n'
            "urlpatterns += staticfiles_urlpatterns()  # as runserver, for the other servers\n",
        )

    def follow_quick_start(self) -> None:
        """Do what docs/quickstart.md says, from its second step on."""
        quick_start = steps("quickstart.md")
        self.append("mysite/settings.py", quick_start["settings"])
        self.append("mysite/asgi.py", quick_start["asgi"])
        self.append("mysite/plain_asgi.py", quick_start["asgi"])
        self.append("mysite/urls.py", quick_start["urls"])
        self.append("api/templates/page.html", quick_start["page"] + quick_start["form"])
        self.append("api/views.py", quick_start["view"])
        self.append("mysite/urls.py", quick_start["view-url"].replace("myapp", "api"))

    def follow_tokens(self) -> None:
        """Do what docs/tokens.md says for a page with a token."""
        tokens = steps("tokens.md")
        self.append("mysite/settings.py", f'REALTIME["token_hmac_secret_key"] = "{TOKEN_KEY}"\n')
        self.append("mysite/urls.py", tokens["urls"])
        self.append("api/templates/token_page.html", tokens["page"])

    def follow_migration(self) -> None:
        """Do what docs/migrating.md says to those who come from plain Channels."""
        migrating = steps("migrating.md")
        namespace = migrating["namespace"]
        self.append("mysite/settings.py", f'REALTIME["namespaces"].append(\n{namespace})\n')
        self.append("api/realtime.py", migrating["hooks"])

    def create_user(self) -> None:
        """Make the user who logs in. Needs the tables."""
        self.run(
            f"python manage.py createsuperuser --noinput --username {USER} --email a@example.org",
            DJANGO_SUPERUSER_PASSWORD=PASSWORD,
        )


def install_command(wheel: Path) -> list[str]:
    """What follows `pip install` in the quick start, with the wheel that was built."""
    command = shlex.split(steps("quickstart.md")["install"])
    assert command[:2] == ["pip", "install"], command
    assert fnmatch(f"path/to/{wheel.name}", command[2])
    return [str(wheel), *command[3:]]
