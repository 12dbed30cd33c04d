"""What a project still needs of the quick start: changes to three files, or advice.

settings.py   INSTALLED_APPS, ASGI_APPLICATION and REALTIME
asgi.py       the service in front of the application
urls.py       the path of the HTTP API

What is there already stays as it is. Where a file may mean more than it says, its author gets
advice instead.
"""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from realtime.checks.asgi_source import names_service
from realtime.config.sources import DEFAULT_ENV_PREFIX
from realtime.console.init.project import path_of
from realtime.console.init.source import NotSure, Source, Unreadable
from realtime.console.init.writing import Change

KEY_BYTES = 32
KEY_VARIABLE = f"{DEFAULT_ENV_PREFIX}API_KEY"
FILE_VARIABLE = f"{DEFAULT_ENV_PREFIX}CONFIG_FILE"
OPTION_VARIABLES = (KEY_VARIABLE, FILE_VARIABLE)
"""Variables that spare options in the settings."""
OPTION_SETTINGS = ("REALTIME", "REALTIME_CONFIG_FILE", "REALTIME_DEFAULTS")

FIRST_APP = "daphne"
APPS = ("channels", "rest_framework", "realtime", "realtime.api")
PANEL = "realtime.admin_panel"
ADMIN = "django.contrib.admin"

API_URLS = "realtime.api.urls"
API_PATH = "api"

ASGI_APPLICATION = 'ASGI_APPLICATION = "{path}"\n'
API_KEY = '    "api_key": "{key}",  # for the HTTP API\n'
OPTIONS = """\
REALTIME = {{
    "session_authentication": True,  # clients are the users of Django's login
{api_key}    "v3_use_offset": True,  # the positions of current client libraries
    "namespaces": [
        {{
            "name": "chat",  # channels chat:lobby, chat:7, ...
            "presence": True,
            "history_size": 100,
            "history_lifetime": 300,
            "history_recover": True,
        }},
    ],
}}
"""
ASGI = """\
import realtime.asgi

{name} = realtime.asgi.application({name})
"""
ROUTE = f'path("{API_PATH}", include("{API_URLS}"))'
URLS = f"""\
from django.urls import include, path

urlpatterns += [{ROUTE}]
"""


class Advice(NamedTuple):
    """A change that the author of a file has to make."""

    name: str
    """Path of the file in the project."""
    reason: str
    code: str
    """What to add at its end; empty: the reason says what to do."""


class Plan(NamedTuple):
    """What a project still needs."""

    changes: list[Change]
    advice: list[Advice]


def make_plan(directory: Path, settings: str, environment: Mapping[str, str]) -> Plan:
    """Read the files of a project and return what they still need.

    Args:
        directory: of the project.
        settings: name of the module of settings.
        environment: of the OPTION_VARIABLES.
    """
    planning = _Planning(directory, settings, environment)
    planning.plan()
    return Plan(planning.changes, planning.advice)


class _Planning:
    def __init__(self, directory: Path, settings: str, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.settings = settings
        self.environment = environment
        self.changes: list[Change] = []
        self.advice: list[Advice] = []

    def plan(self) -> None:
        source = self._open(self.settings, self._settings_code([FIRST_APP, *APPS, PANEL]))
        if source is None:
            return
        asgi, urls = None, None
        try:
            asgi = source.constant("ASGI_APPLICATION") or self._guess_asgi(source)
            urls = source.constant("ROOT_URLCONF")
            if urls is None:
                raise NotSure("it has no ROOT_URLCONF")
        except NotSure as reason:
            self.advice.append(Advice(source.name, f"{reason}", ""))
        self._plan_settings(source, asgi)
        if asgi is not None:
            self._plan_asgi(asgi)
        if urls is not None:
            self._plan_urls(urls)
        paths = [change.path for change in self.changes]
        if len({*paths}) < len(paths):
            self.advice.append(Advice(source.name, "two of the modules are one file", ""))

    def _open(self, module: str, code: str) -> Source | None:
        """Return a module's source; None if it cannot be read, with advice."""
        try:
            return Source(self.directory, path_of(self.directory, module))
        except NotSure as reason:
            name = "/".join(module.split(".")) + ".py"
            known = "" if isinstance(reason, Unreadable) else code
            self.advice.append(Advice(name, str(reason), known))
            return None

    def _plan_file(self, source: Source, code: str, edit: Callable[[], None]) -> None:
        """Collect the changes that a function makes to a file, or advice with the code to add."""
        try:
            if source.has_star_import():
                raise NotSure("it imports names with *, so other files have a part in it")
            edit()
            after = source.result()
            source.check_writable()
        except NotSure as reason:
            self.advice.append(Advice(source.name, str(reason), code))
        else:
            self.changes.append(
                Change(source.name, source.path, source.encoding, source.text, after)
            )

    # settings

    def _plan_settings(self, source: Source, asgi: str | None) -> None:
        there = _items(source)
        needed = [FIRST_APP, *APPS, *([PANEL] if _has(ADMIN, there) else [])]
        missing = [app for app in needed if not _has(app, there)]
        code = ""
        if not source.bindings("ASGI_APPLICATION") and asgi is not None:
            code += ASGI_APPLICATION.format(path=asgi)
        if not self._has_options(source):
            code += self._options()

        def edit() -> None:
            if missing:
                self._add_apps(source, missing)
            if code:
                source.append(code)

        if missing or code:
            self._plan_file(source, _apps_code(missing) + code, edit)

    def _add_apps(self, source: Source, apps: list[str]) -> None:
        value = source.value("INSTALLED_APPS")
        if not _is_plain(value):
            raise NotSure("INSTALLED_APPS is made by an expression")
        assert isinstance(value, ast.List | ast.Tuple)
        items = [(app, f'"{app}"') for app in apps]
        source.extend(
            value,
            [item for app, item in items if app == FIRST_APP],
            [item for app, item in items if app != FIRST_APP],
        )

    def _settings_code(self, apps: list[str]) -> str:
        return _apps_code(apps) + self._options()

    def _has_options(self, source: Source) -> bool:
        return bool(self.environment.get(FILE_VARIABLE)) or any(
            source.bindings(name) for name in OPTION_SETTINGS
        )

    def _options(self) -> str:
        key = ""
        if not self.environment.get(KEY_VARIABLE):
            key = API_KEY.format(key=secrets.token_urlsafe(KEY_BYTES))
        return OPTIONS.format(api_key=key)

    def _guess_asgi(self, source: Source) -> str | None:
        """Return the path of the application, beside the module that other settings name."""
        for setting, parts in (("WSGI_APPLICATION", 2), ("ROOT_URLCONF", 1)):
            package = (source.constant(setting) or "").split(".")[:-parts]
            if self.directory.joinpath(*package, "asgi.py").is_file():
                return ".".join([*package, "asgi", "application"])
        raise NotSure("it has no ASGI_APPLICATION, and no asgi.py is beside the URLconf")

    # asgi.py

    def _plan_asgi(self, path: str) -> None:
        module, _, name = path.rpartition(".")
        code = ASGI.format(name=name)
        source = self._open(module, code)
        if source is None or names_service(source.tree):
            return
        self._plan_file(source, code, lambda: self._wrap(source, name, code))

    def _wrap(self, source: Source, name: str, code: str) -> None:
        match source.value(name):
            case ast.Call(func=ast.Name(id="get_asgi_application"), args=[], keywords=[]):
                pass
            case _:
                raise NotSure("the application has routing or middleware of its own")
        if source.bindings("realtime"):
            raise NotSure("the name realtime is in use there")
        source.append(code)

    # urls.py

    def _plan_urls(self, module: str) -> None:
        source = self._open(module, URLS)
        if source is None or API_URLS in source.strings():
            return
        self._plan_file(source, URLS, lambda: self._add_route(source))

    def _add_route(self, source: Source) -> None:
        value = source.value("urlpatterns")
        if not isinstance(value, ast.List):
            raise NotSure("urlpatterns is made by an expression")
        if any(_is_api_route(node) for node in ast.walk(source.tree)):
            raise NotSure(f"the path {API_PATH!r} is in use, so choose another one")
        missing = [name for name in ("include", "path") if not _imports(source, name)]
        (before,) = (node for node in source.tree.body if getattr(node, "value", None) is value)
        if missing:
            source.import_names("django.urls", missing, before)
        source.extend(value, [], [ROUTE])


def _apps_code(apps: list[str]) -> str:
    first = [f'    "{app}",\n' for app in apps if app == FIRST_APP]
    last = [f'    "{app}",\n' for app in apps if app != FIRST_APP]
    if not apps:
        return ""
    return "".join(["INSTALLED_APPS = [\n", *first, "    *INSTALLED_APPS,\n", *last, "]\n"])


def _items(source: Source) -> set[str]:
    """Return the strings in lists: parts of INSTALLED_APPS may be lists with names of their own."""
    return {
        item.value
        for node in source.nodes()
        if isinstance(node, ast.List | ast.Tuple)
        for item in node.elts
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    }


def _has(app: str, items: set[str]) -> bool:
    return any(item == app or item.startswith(f"{app}.apps.") for item in items)


def _is_plain(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) and all(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in value.elts
    )


def _is_api_route(node: ast.AST) -> bool:
    match node:
        case ast.Call(args=[ast.Constant(value=str(route)), *_]):
            return re.fullmatch(rf"\^?{API_PATH}(\$|\\Z)?", route) is not None
        case _:
            return False


def _imports(source: Source, name: str) -> bool:
    """Return whether a name is Django's; False if it is free.

    Raises:
        NotSure: it is something else.
    """
    bindings = source.bindings(name)
    if not bindings:
        return False
    ours = {
        id(alias)
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 0
        if node.module in ("django.urls", "django.urls.conf", "django.conf.urls")
        for alias in node.names
        if alias.name == name
    }
    if any(id(binding) not in ours for binding in bindings):
        raise NotSure(f"the name {name} is in use there")
    return True
