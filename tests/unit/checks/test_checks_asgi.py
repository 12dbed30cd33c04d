"""The check of ASGI_APPLICATION: which applications have the service, without an import of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from realtime.checks import asgi_source
from tests.unit.checks.system_checks import SECURE, found, ids

DJANGO = "from django.core.asgi import get_asgi_application\n"
PLAIN = DJANGO + "application = get_asgi_application()\n"
WRAPPED = (
    DJANGO
    + "import realtime.asgi\napplication = realtime.asgi.application(get_asgi_application())\n"
)
FAIL = "raise AssertionError('a check imported this')\n"

GOOD = {
    "wrapped": {"asgi": WRAPPED},
    "from import": {
        "asgi": "from realtime.asgi import application as serve\napplication = serve(None)\n"
    },
    "module by another name": {
        "asgi": "from realtime import asgi as service\napplication = service.application(None)\n"
    },
    "imported": {"asgi": "from mysite.servers import application\n", "servers": WRAPPED},
    "imported, relative": {"asgi": "from .servers import application\n", "servers": WRAPPED},
    "star": {"asgi": "from mysite.servers import *\n", "servers": WRAPPED},
    "imported over two modules": {
        "asgi": "from mysite import servers\napplication = servers.application\n",
        "servers": "from .inner import application\n",
        "inner": WRAPPED,
    },
    "built by a function": {
        "asgi": "from mysite.build import make\napplication = make()\n",
        "build": "def make():\\n    from realtime.asgi import application\\n"
        "    return application(None)\\n",
    },
    "wrapped by middleware": {
        "asgi": "from mysite.build import wrap\nfrom mysite.servers import inner\n"
        "application = wrap(inner)\n",
        "build": "def wrap(application):\n    return application\n",
        "servers": WRAPPED.replace("\napplication", "\ninner"),
    },
    "named in a string": {
        "asgi": "from mysite.build import load\napplication = load('realtime.asgi.application')\n",
        "build": "def load(path):\n    ...\n",
    },
    "imported by name": {
        "asgi": "from importlib import import_module\n"
        "application = import_module('mysite.servers').application\n",
        "servers": WRAPPED,
    },
    "name made in another way": {
        "asgi": WRAPPED.replace("\napplication =", "\nx =") + "globals()['application'] = x\n"
    },
    "syntax of another Python": {"asgi": "application ="},
    "circle": {
        "asgi": "from mysite.servers import application\n",
        "servers": "import mysite.asgi\nimport realtime.asgi\napplication = None\n",
    },
}

BAD = {
    "nowhere": ("cannot be found", {}),
    "no application": ("has no 'application'", {"asgi": DJANGO}),
    "plain": ("without the service", {"asgi": PLAIN}),
    "plain, imported": (
        "without the service",
        {"asgi": "from mysite.servers import application\n", "servers": PLAIN},
    ),
    "in a comment": ("without the service", {"asgi": PLAIN + "# import realtime.asgi\n"}),
    "consumers publish": (
        "without the service",
        {
            "asgi": PLAIN + "from mysite.consumers import Chat\n",
            "consumers": "import realtime\nclass Chat: ...\n",
        },
    ),
}


def make_site(directory: Path, modules: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the package `mysite`, of which no module can be imported."""
    package = directory / "mysite"
    package.mkdir()
    (package / "__init__.py").write_text(FAIL)
    for name, source in modules.items():
        (package / f"{name}.py").write_text(f"{source}{FAIL}" if source[-1] == "\n" else source)
    monkeypatch.syspath_prepend(directory)


@pytest.mark.parametrize("modules", GOOD.values(), ids=list(GOOD))
def test_application_with_the_service_is_found(
    modules: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(tmp_path, modules, monkeypatch)
    assert asgi_source.mistake_in("mysite.asgi.application") == ""


LOADS = "from importlib import import_module\nChat = import_module('mysite.chat')\n"


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ({"asgi": PLAIN}, False),
        (GOOD["imported"], True),
        ({"asgi": PLAIN + LOADS}, None),
        ({"asgi": PLAIN + "import mysite.consumers\n", "consumers": LOADS}, False),
    ],
)
def test_only_the_module_itself_leaves_a_doubt(
    modules: dict[str, str], expected: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_site(tmp_path, modules, monkeypatch)
    assert asgi_source.has_service("mysite.asgi") is expected


@pytest.mark.parametrize(
    ("source", "expected"), [(WRAPPED, ""), (PLAIN, "without the service")], ids=["good", "bad"]
)
def test_packages_without_init_are_searched(
    source: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "mysite" / "inner" / "innermost"
    directory.mkdir(parents=True)
    (directory / "asgi.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    mistake = asgi_source.mistake_in("mysite.inner.innermost.asgi.application")
    assert expected in mistake
    assert bool(mistake) is bool(expected)
    assert "mysite" not in sys.modules


@pytest.mark.parametrize(("expected", "modules"), BAD.values(), ids=list(BAD))
def test_application_without_the_service_is_reported(
    expected: str,
    modules: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> None:
    make_site(tmp_path, modules, monkeypatch)
    settings.ASGI_APPLICATION = "mysite.asgi.application"
    messages = found(**SECURE)
    assert ids(messages) == ["realtime.W031"]
    assert expected in messages[0].msg
    assert "mysite" not in sys.modules


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (None, "is not set"),
        ("asgi", "cannot be found"),
        ("json.application", "cannot be found"),
        ("json.loads", "without the service"),
    ],
)
def test_path_that_names_no_application_is_reported(
    settings: Settings, path: str | None, expected: str
) -> None:
    settings.ASGI_APPLICATION = path
    messages = found(**SECURE)
    assert ids(messages) == ["realtime.W031"]
    assert expected in messages[0].msg


@pytest.mark.parametrize("module", ["messaging_project", "tests.site"])
def test_real_applications_have_the_service(module: str) -> None:
    assert asgi_source.mistake_in(f"{module}.asgi.application") == ""
