"""Sites of several shapes, and the command that adds the service to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

SERVED = "mysite.settings"
STAR = "from .base import *\n"
LIST = "INSTALLED_APPS = ['django.contrib.contenttypes', 'django.contrib.auth']\n"
OWN_ASGI = """
from channels.routing import ProtocolTypeRouter, URLRouter

application = ProtocolTypeRouter({"http": application, "websocket": URLRouter([])})
"""
COOKIECUTTER_BASE = """
import os

DJANGO_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
THIRD_PARTY_APPS = ["rest_framework"]
LOCAL_APPS = os.environ.get("LOCAL_APPS", "django.contrib.humanize").split(",")
INSTALLED_APPS = DJANGO_APPS + THIRD_PARTY_APPS + LOCAL_APPS
"""


class Project:
    """What `startproject` makes, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        call_command("startproject", "mysite", str(directory))

    def path(self, name: str) -> Path:
        return self.directory / "mysite" / f"{name}.py"

    def read(self, name: str) -> str:
        return self.path(name).read_bytes().decode()

    def append(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(exist_ok=True)
        with self.path(name).open("ab") as file:
            file.write(text.encode())

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.path(name).write_bytes(text.replace(old, new).encode())

    def split(self, served: str = "production", base: str = "") -> None:
        """Make a package of the settings: base, local for manage.py, and production."""
        base += self.read("settings")
        self.path("settings").unlink()
        self.append("settings/__init__", "")
        self.append("settings/base", base.replace("parent.parent", "parent.parent.parent"))
        for name in ("local", "production"):
            self.append(f"settings/{name}", STAR)
        self.replace("../manage", SERVED, f"{SERVED}.local")
        for name in ("asgi", "wsgi"):
            self.replace(name, SERVED, f"{SERVED}.{served}")

    def contents(self) -> dict[Path, bytes]:
        """All files."""
        return {path: path.read_bytes() for path in self.directory.rglob("*.py")}

    def init(self, *arguments: str) -> str:
        """Run `init --yes`, or with other arguments; returns what it prints."""
        output = StringIO()
        call_command("realtime", "init", *(arguments or ["--yes"]), stdout=output, stderr=output)
        return output.getvalue()

    def refused(self, *arguments: str) -> str:
        """Run the command, which must fail and change nothing; returns all that it says."""
        output, before = StringIO(), self.contents()
        with pytest.raises(CommandError) as refused:
            call_command("realtime", "init", *(arguments or ["--yes"]), stdout=output)
        assert self.contents() == before
        return output.getvalue() + str(refused.value)


def fresh(project: Project) -> None:
    pass


def own_websockets(project: Project) -> None:
    project.append("asgi", OWN_ASGI)


def split(project: Project) -> None:
    project.split()
    project.append("settings/production", "DEBUG = False\nINSTALLED_APPS += []\n")


def cookiecutter(project: Project) -> None:
    """manage.py extends the path; apps are summed up; production needs secrets of its host."""
    project.split()
    project.append("settings/base", COOKIECUTTER_BASE)
    project.append("settings/local", "INSTALLED_APPS += ['django.contrib.sites']\nSITE_ID = 1\n")
    project.append(
        "settings/production",
        "import os\nSECRET_KEY = os.environ['SECRET_OF_THE_HOST']\nINSTALLED_APPS += ['anymail']\n",
    )
    project.replace("../manage", "    main()", "    sys.path.append('mysite/apps')\n    main()")
    project.path("urls").write_text("from django.urls import path\n\nurlpatterns = []\n")


def with_local_settings(project: Project) -> None:
    """A file of this host, which is not in the repository, adds to the list."""
    project.append("settings", "try:\n    from .host import *\nexcept ImportError:\n    pass\n")
    project.append(
        "host",
        "from .settings import INSTALLED_APPS\n\nINSTALLED_APPS += ['django.contrib.sites']\n",
    )
    project.append("settings", "SITE_ID = 1\n")


def overridden(project: Project) -> None:
    project.split(served="local")
    project.append("settings/local", project.read("settings/base").partition("MIDDLEWARE")[0])
    project.path("settings/production").write_text("from .local import *\n")


def executed(project: Project) -> None:
    """Parts that are not imported, as those of django-split-settings."""
    project.path("settings").rename(project.path("part"))
    project.append(
        "settings",
        "from pathlib import Path\n\n"
        "exec(compile(Path(__file__).with_name('part.py').read_text(), 'part.py', 'exec'))\n",
    )


def in_tuples(project: Project) -> None:
    project.split()
    project.append("settings/base", "INSTALLED_APPS = tuple(INSTALLED_APPS)\n")
    project.append("settings/production", "INSTALLED_APPS = INSTALLED_APPS + ()\n")


def listed_elsewhere(project: Project) -> None:
    """Apps of another package, and URLs that are a tuple."""
    code, found = project.read("settings"), re.compile(r"INSTALLED_APPS = \[.*?\]\n", re.DOTALL)
    project.append("../common", found.findall(code)[0])
    code = found.sub("from common import INSTALLED_APPS\n", code)
    project.path("settings").write_text(code)
    project.append("urls", "urlpatterns = tuple(urlpatterns)\n")


SHAPES: Mapping[str, tuple[Callable[[Project], None], str]] = {
    "fresh": (fresh, "settings"),
    "own WebSockets": (own_websockets, "settings"),
    "split": (split, "settings/base"),
    "cookiecutter": (cookiecutter, "settings/base"),
    "a file of the host": (with_local_settings, "settings"),
    "overridden list": (overridden, "settings/local"),
    "executed parts": (executed, "settings"),
    "apps of another package": (listed_elsewhere, "settings"),
    "tuples": (in_tuples, "settings/base"),
}
"""Name → what makes the shape, and the file at whose end the settings of the service belong."""
