"""What a site still needs of the quick start: a block at the end of each of three files.

settings   INSTALLED_APPS, ASGI_APPLICATION and REALTIME
asgi.py    the service in front of the application
urls.py    the path of the HTTP API

The settings run, with the block and without it: what is installed counts, not how it is written.
The other two files are read. Where a block at the end may be wrong, the author gets it instead.
"""

from __future__ import annotations

import ast
import re
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from realtime.checks import asgi_source
from realtime.config.sources import DEFAULT_ENV_PREFIX
from realtime.tools.init import files, urls
from realtime.tools.init.files import FileChange, NotSure, Source
from realtime.tools.init.site import Facts, look

KEY_BYTES = 32
KEY_VARIABLE = f"{DEFAULT_ENV_PREFIX}API_KEY"
FILE_VARIABLE = f"{DEFAULT_ENV_PREFIX}CONFIG_FILE"
OPTION_VARIABLES = (KEY_VARIABLE, FILE_VARIABLE)
"""Variables that spare options in the settings."""

FIRST_APP = "daphne"
APPS = (FIRST_APP, "channels", "rest_framework", "realtime", "realtime.api")
PANEL, ADMIN = "realtime.admin_panel", "django.contrib.admin"
API_PATH, API_URLS = "api", "realtime.api.urls"

FIRST_LINE = f'    "{FIRST_APP}",  # first: makes runserver speak WebSocket\n'
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
NEW_ASGI = """\
import os

from django.core.asgi import get_asgi_application

import realtime.asgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "{settings}")

{name} = realtime.asgi.application(get_asgi_application())
"""
URLS = f"""\
from django.urls import include, path

urlpatterns = [*urlpatterns, path("{API_PATH}", include("{API_URLS}"))]
"""
URLS_FIRST = f"""\
from django.urls import include, path

urlpatterns = [path("{API_PATH}", include("{API_URLS}")), *urlpatterns]
"""
_NAMED = re.compile(r"""DJANGO_SETTINGS_MODULE["'\],\s=]+["']([\w.]*\w)["']""")


class PlannedPart(NamedTuple):
    """What one file needs: nothing, a change, or the hand of its author."""

    name: str
    """Path of the file in the project."""
    change: FileChange | None = None
    reason: str = ""
    """Why its author has to make the change; "" if there is one, or none is needed."""
    block: str = ""
    """What to add at the end."""
    is_new: bool = False
    """Whether the block is all of a file that is not there."""


class Plan(NamedTuple):
    """What a site still needs."""

    parts: list[PlannedPart]
    untried: list[str]
    """Settings that do not run here, each with the reason."""


def make_plan(directory: Path, settings: str, environment: Mapping[str, str]) -> Plan:
    """Look at a site, and return what it still needs.

    Args:
        directory: where manage.py is.
        settings: name of the module of settings; "" for the one that manage.py names.
        environment: of the OPTION_VARIABLES.
    """
    planning = _Planning(directory.resolve(), look(directory, settings), environment)
    parts = [planning.settings(), planning.asgi(), planning.urls()]
    changed = Counter(part.change.path for part in parts if part.change)
    parts = [
        part._replace(change=None, reason="two of the modules are one file")
        if part.change and changed[part.change.path] > 1
        else part
        for part in parts
    ]
    return Plan(parts, [f"{facts.settings}: {facts.error}" for facts in planning.untried])


class _Planning:
    def __init__(self, directory: Path, site: Facts, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self.site = site
        self.environment = environment
        sys.path += [path for path in site.path if path not in sys.path]  # where modules are
        self.asgi_path = site.asgi or self._guess_asgi()
        self.served = self._named_by(site.wsgi) or self._named_by(self.asgi_path)
        names = {self.served, self._named_by(self.asgi_path)} - {"", site.settings}
        others = [] if site.error else [look(directory, name) for name in sorted(names)]
        self.tried = [site, *(other for other in others if not other.error)]
        self.untried = [other for other in others if other.error]
        for other in [] if site.error else [look(directory, name) for name in self._beside()]:
            if other.root:
                self.tried.append(other)
            elif other.error and other.modules:
                self.untried.append(other)

    def _loaded(self) -> set[str]:
        return {file for facts in (*self.tried, *self.untried) for file in facts.loaded}

    def _beside(self) -> Iterator[str]:
        """Yield modules with apps beside the settings: the environment may choose them."""
        spec = asgi_source.find(self.site.settings)
        if spec is None or spec.origin is None:
            return
        package = spec.name if spec.submodule_search_locations else spec.parent
        loaded = self._loaded()
        for path in sorted(Path(spec.origin).parent.glob("[!_]*.py")):
            name = f"{package}.{path.stem}".lstrip(".")
            is_known = str(path.resolve()) in loaded or name == self.site.root
            if not is_known and not path.stem.startswith("test"):
                with suppress(NotSure):
                    bound = _bound(files.read(self.directory, path).tree)
                    if "INSTALLED_APPS" in bound or "*" in bound:
                        yield name

    # settings

    def settings(self) -> PlannedPart:
        name = _file(self.site.settings or "settings")
        if self.site.error:
            every = self._settings_block([*APPS, PANEL], asgi=True, options=True)
            return PlannedPart(
                name, reason=f"the settings do not run: {self.site.error}", block=every
            )
        there = set.intersection(*(set(facts.apps) for facts in self.tried))
        needed = [*APPS, PANEL] if ADMIN in there else [*APPS]
        missing = [app for app in needed if app not in there]
        asgi = any(not facts.asgi for facts in self.tried)
        options = not self.environment.get(FILE_VARIABLE) and any(
            not facts.has_options for facts in self.tried
        )
        if not (missing or asgi or options):
            return PlannedPart(name)
        block = partial(self._settings_block, missing, asgi=asgi, options=options)
        if unsure := ", ".join(sorted(self._unsure({*needed}))):
            reason = f"whether {unsure} is installed may depend on the environment"
            return PlannedPart(name, reason=reason, block=block())
        reasons = []
        for module in self.site.modules:
            name = str(Path(module.file).relative_to(self.directory))
            tried = block("()" if module.is_tuple else "[]")
            try:
                change = files.append(files.read(self.directory, Path(module.file)), tried)
                self._try(module.file, tried, needed)
            except NotSure as error:
                reasons.append((name, str(error)))
            else:
                return PlannedPart(change.name, change, block=tried)
        name, reason = [*reasons, (name, "no file of the project has a list INSTALLED_APPS")][0]
        return PlannedPart(name, reason=reason, block=block())

    def _try(self, file: str, block: str, apps: Sequence[str]) -> None:
        """Raise NotSure where some settings do not get what a block at the end of a file says."""
        for facts in self.untried:
            if file not in facts.loaded:
                raise NotSure(f"{facts.settings} does not load it ({facts.error})")
        for facts in self.tried:
            if file not in facts.loaded:
                raise NotSure(f"{facts.settings} does not load it")
            after = look(self.directory, facts.settings, {file: f"\n{block}"})
            if after.error:
                raise NotSure(f"with it, {facts.settings} does not run: {after.error}")
            for app, number in Counter(after.apps).items():
                if number > 1:
                    raise NotSure(f"with it, {facts.settings} has the app {app} {number} times")
            if lacking := {*apps} - {*after.apps}:
                raise NotSure(f"{facts.settings} takes {', '.join(sorted(lacking))} out again")
            if not (after.asgi and (after.has_options or self.environment.get(FILE_VARIABLE))):
                raise NotSure(f"{facts.settings} takes nothing but apps from it")

    def _unsure(self, apps: set[str]) -> set[str]:
        """Return those of some apps that a condition adds: it may hold elsewhere, or only here."""
        nowhere = apps.difference(*(facts.apps for facts in self.tried))
        found = set[str]()
        for file in self._loaded():
            with suppress(NotSure):
                for node in files.read(self.directory, Path(file)).tree.body:
                    if any("APPS" in name for name in _names(node)):
                        named = {text.partition(".apps.")[0] for text in urls.strings(node)}
                        found |= named & (apps if isinstance(node, ast.If) else nowhere)
        return found

    def _settings_block(
        self, apps: Sequence[str], brackets: str = "[]", *, asgi: bool, options: bool
    ) -> str:
        first = FIRST_LINE if FIRST_APP in apps else ""
        last = "".join(f'    "{app}",\n' for app in apps if app != FIRST_APP)
        start, end = brackets[0], brackets[1]
        apps_code = f"INSTALLED_APPS = {start}\n{first}    *INSTALLED_APPS,\n{last}{end}\n"
        code = apps_code if apps else ""
        if asgi:
            code += ASGI_APPLICATION.format(path=self.asgi_path)
        if options:
            key = ""
            if not self.environment.get(KEY_VARIABLE):
                key = API_KEY.format(key=secrets.token_urlsafe(KEY_BYTES))
            code += OPTIONS.format(api_key=key)
        return code

    # asgi.py

    def _guess_asgi(self) -> str:
        """Return the path of the application, beside what other settings name."""
        site = self.site
        named = ((site.wsgi, 2), (site.root, 1), (site.settings, 1), (site.settings, 2))
        packages = [".".join(path.split(".")[:-parts]) for path, parts in named]
        guesses = [f"{package}.asgi" for package in packages if package]
        for guess in guesses:
            if asgi_source.find(guess):
                return f"{guess}.application"
        return f"{(guesses or ['mysite.asgi'])[0]}.application"

    def _named_by(self, path: str) -> str:
        """Return the settings that the module of an application names; "" if none."""
        try:
            match = _NAMED.search(self._open(path.rpartition(".")[0]).text)
        except NotSure:
            return ""
        return match[1] if match else ""

    def asgi(self) -> PlannedPart:
        module, _, name = self.asgi_path.rpartition(".")
        block = ASGI.format(name=name)
        try:
            source = self._open(module)
        except NotSure as error:
            is_new = asgi_source.find(module) is None
            if is_new:
                block = NEW_ASGI.format(name=name, settings=self.served or self.site.settings)
            return PlannedPart(_file(module), None, str(error), block, is_new)
        service = asgi_source.has_service(module)
        if service:
            return PlannedPart(source.name)
        bound = _bound(source.tree)
        reason = ""
        if service is None:
            reason = "it loads modules by their names, so it may have the service"
        elif name not in bound and "*" not in bound:
            reason = f"it has no {name}"
        elif bound.get("realtime", "realtime") != "realtime":
            reason = "the name realtime is in use there"
        return _part(source, reason, block)

    # urls.py

    def urls(self) -> PlannedPart:
        try:
            if not self.site.root:
                raise NotSure("the settings name no ROOT_URLCONF")
            source = self._open(self.site.root)
        except NotSure as error:
            return PlannedPart(_file(self.site.root or "urls"), reason=str(error), block=URLS)
        if urls.includes(source.tree, API_URLS, self._open):
            return PlannedPart(source.name)
        bound = _bound(source.tree)
        reason = ""
        if "urlpatterns" not in bound and "*" not in bound:
            reason = "it has no urlpatterns"
        elif not all(
            bound.get(name, "django").startswith("django") for name in ("include", "path")
        ):
            reason = "the name include or path is in use there"
        elif urls.takes(source.tree, API_PATH, self._open):
            reason = f"a view of the site gets {API_PATH!r}: put the service first, or elsewhere"
            return PlannedPart(source.name, reason=reason, block=URLS_FIRST)
        return _part(source, reason, URLS)

    def _open(self, module: str) -> Source:
        """Return a module of the project.

        Raises:
            NotSure: there is none, or it cannot be read.
        """
        spec = asgi_source.find(module) if module else None
        if spec is None or spec.origin is None:
            raise NotSure("there is no such file")
        return files.read(self.directory, Path(spec.origin))


def _part(source: Source, reason: str, block: str) -> PlannedPart:
    if not reason:
        try:
            return PlannedPart(source.name, files.append(source, block), block=block)
        except NotSure as error:
            reason = str(error)
    return PlannedPart(source.name, reason=reason, block=block)


def _file(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _bound(tree: ast.Module) -> dict[str, str]:
    """Return what a module binds: name → the module from which it comes, or ""."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom():
                origin = "." * node.level + (node.module or "")
                bound |= {alias.asname or alias.name: origin for alias in node.names}
            case ast.Import():
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    bound[alias.asname or top] = top
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound[node.name] = ""
            case ast.Name(ctx=ast.Store()):
                bound[node.id] = ""
            case _:
                pass
    return bound


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
