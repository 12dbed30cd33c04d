"""`manage.py realtime init` on sites of several shapes, and on those that it leaves alone."""

from __future__ import annotations

import json
import os
import pty
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from realtime.tools.init import files
from realtime.tools.init.files import FileChange, NotWritten
from realtime.tools.init.site import look
from tests.install.pages import steps
from tests.server import ROOT
from tests.unit.tools.init_project import SERVED, SHAPES, Project

NOTHING = "Nothing to do.\n"
APPS = ("daphne", "channels", "rest_framework", "realtime", "realtime.api")


@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_go_where_every_process_reads_them(project: Project, shape: str) -> None:
    make, file = SHAPES[shape]
    make(project)
    before = project.contents()

    project.init()

    after = project.contents()
    changed = {path for path in after if after[path] != before[path]}
    assert changed == {project.path(name) for name in (file, "asgi", "urls")}
    assert all(after[path].startswith(before[path]) for path in changed)
    for settings in {"", *re.findall(r"'(mysite\.settings\S*)'", project.read("wsgi"))}:
        facts = look(project.directory, settings)
        if "SECRET_OF_THE_HOST" not in facts.error:
            assert [facts.apps.count(app) for app in APPS] == [1] * len(APPS), facts
            assert (facts.asgi, facts.has_options) == ("mysite.asgi.application", True)

    again = project.init()
    assert NOTHING in again
    assert again.count(": nothing to add.\n") == 3
    assert project.contents() == after


def test_settings_that_do_not_run_here_are_named(project: Project) -> None:
    SHAPES["cookiecutter"][0](project)
    assert f"nothing was tried with them: {SERVED}.production: KeyError:" in project.init()


def test_blocks_are_those_of_the_quick_start(project: Project) -> None:
    shown = re.sub(r'(?<="api_key": ")[\w-]{43}"', 'a-key-of-your-own"', project.init("--dry-run"))
    added = [line[1:] for line in shown.splitlines() if re.match(r"\+(?!\+\+)", line)]
    code = [steps("quickstart.md")[name].splitlines() for name in ("settings", "asgi", "urls")]
    assert added == ["", *code[0][1:], "", *code[1][1:], "", *code[2][1:]]
    assert not re.search(r"^-(?!--)", shown, re.MULTILINE)


def test_site_that_followed_the_quick_start_by_hand_has_all(project: Project) -> None:
    for name in ("settings", "asgi", "urls"):
        project.append(name, steps("quickstart.md")[name])
    assert project.init().endswith(NOTHING)


def test_two_runs_make_two_keys(project: Project) -> None:
    assert project.init("--dry-run") != project.init("--dry-run")


@pytest.mark.parametrize(
    ("variable", "absent"), [("SERVICE_API_KEY", "api_key"), ("SERVICE_CONFIG_FILE", "REALTIME")]
)
def test_option_of_the_environment_is_not_written(
    project: Project, monkeypatch: pytest.MonkeyPatch, variable: str, absent: str
) -> None:
    monkeypatch.setenv(variable, "of the environment")
    assert absent not in project.init("--dry-run")


def test_only_what_is_missing_is_added(project: Project) -> None:
    project.append("settings", "INSTALLED_APPS = ['channels.apps.ChannelsConfig', 'daphne']\n")
    project.append("settings", "REALTIME = {}\n")
    project.append("routes", "from django.urls import include, path\n\nurlpatterns = [\n")
    project.append("routes", "    path('api', include('realtime.api.urls')),\n]\n")
    project.append("urls", "from django.urls import include\n")
    project.append("urls", "urlpatterns += [path('', include('mysite.routes'))]\n")

    project.init()

    block = project.read("settings").partition("REALTIME = {}\n")[2]
    assert block == (
        '\nINSTALLED_APPS = [\n    *INSTALLED_APPS,\n    "rest_framework",\n    "realtime",\n'
        '    "realtime.api",\n]\nASGI_APPLICATION = "mysite.asgi.application"\n'
    )
    assert project.read("urls").count("realtime") == 0


@pytest.mark.parametrize(("encoding", "newline"), [("utf-8-sig", "\r\n"), ("latin-1", "\n")])
def test_text_of_a_file_keeps_its_form(project: Project, encoding: str, newline: str) -> None:
    text = f"# coding: {encoding}\n# ä\n{project.read('settings')}# no end".replace("\n", newline)
    project.path("settings").write_bytes(text.encode(encoding))
    project.path("settings").chmod(0o640)
    target = project.path("settings").rename(project.path("real"))
    project.path("settings").symlink_to(target.name)

    project.init()

    assert project.path("settings").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    after = target.read_bytes().decode(encoding)
    assert after.startswith(f"{text}{newline}{newline}INSTALLED_APPS = [{newline}")
    assert after.count("\n") == after.count(newline)
    assert not look(project.directory, "").error


# what is left to its author


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            {"settings": "("},
            ["settings.py: the settings do not run: SyntaxError: "],
        ),
        (
            {"settings": "raise SystemExit('no key')"},
            ["settings.py: the settings do not run: SystemExit: no key."],
        ),
        (
            {"settings": "import os\nos._exit(0)"},
            ["settings.py: the settings do not run: they end the process."],
        ),
        (
            {
                "settings": "del INSTALLED_APPS, ROOT_URLCONF",
                "asgi": "from mysite import urls as realtime",
            },
            [
                "settings.py: no file of the project has a list INSTALLED_APPS.",
                "asgi.py: the name realtime is in use there.",
                "urls.py: the settings name no ROOT_URLCONF.",
            ],
        ),
        (
            {
                "settings": "ASGI_APPLICATION = 'mysite.nowhere.application'",
                "urls": "urlpatterns += [path('api', admin.site.urls)]",
            },
            ["nowhere.py: there is no such file.", "urls.py: a view of the site gets 'api'"],
        ),
        (
            {
                "asgi": "import importlib\nimportlib.import_module('x')",
                "urls": "from os import path",
            },
            ["so it may have the service.", "urls.py: the name include or path is in use there."],
        ),
        (
            {"settings": "ROOT_URLCONF = 'django.conf.urls.i18n'", "asgi": "del application\n("},
            ["it is outside of the project.", "asgi.py: it has a syntax error in line 18."],
        ),
        (
            {"settings": "ROOT_URLCONF = __name__\nurlpatterns = []"},
            ["settings.py: two of the modules are one file."],
        ),
        (
            {"settings": "ROOT_URLCONF = 'mysite.asgi'", "asgi": "app = application"},
            ["asgi.py: it has no urlpatterns."],
        ),
    ],
    ids=str,
)
def test_files_that_may_mean_more_are_left_to_their_authors(
    project: Project, code: dict[str, str], said: list[str]
) -> None:
    for name, text in code.items():
        project.append(name, f"{text}\n")
    refused = project.refused()
    assert [each for each in said if each not in refused] == []
    assert "Nothing was written. Make these changes, then run this command again." in refused
    for part in ("INSTALLED_APPS", "realtime.asgi.application(", "realtime.api.urls"):
        assert part in refused


def test_missing_application_is_shown_as_a_whole(project: Project) -> None:
    project.split()
    project.path("asgi").unlink()

    refused = project.refused()

    _, _, code = refused.partition("mysite/asgi.py: there is no such file. Make it:\n\n")
    code = code.partition("--- ")[0].replace("\n    ", "\n")[4:]
    assert f'"{SERVED}.production"' in code
    project.path("asgi").write_text(code)
    project.init()
    assert project.init().endswith(NOTHING)


def test_read_only_file_is_refused(project: Project) -> None:
    project.path("urls").chmod(0o444)
    assert "mysite/urls.py: it is read-only" in project.refused()


# manage.py


def test_directory_without_manage_py_is_refused(project: Project) -> None:
    project.path("../manage").unlink()
    assert "in the directory of yours" in project.refused()


def test_manage_py_chooses_the_settings_as_it_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.path("settings").rename(project.path("other"))
    for name in ("asgi", "wsgi"):
        project.replace(name, SERVED, "mysite.other")
    project.replace("../manage", "'mysite.settings'", "os.environ['STAGE'] and 'mysite.other'")
    monkeypatch.setenv("STAGE", "production")
    project.init()
    assert "REALTIME" in project.read("other")


# the terminal


def _at_a_terminal(directory: Path, answer: bytes) -> subprocess.CompletedProcess[str]:
    """Run `python -m realtime init`, and type an answer."""
    ours, terminal = pty.openpty()
    hidden = ("DJANGO_", "SERVICE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    try:
        os.write(ours, answer)
        return subprocess.run(
            [sys.executable, "-m", "realtime", "init"],
            cwd=directory,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        os.close(ours)
        os.close(terminal)


def test_yes_at_a_terminal_writes(project: Project) -> None:
    finished = _at_a_terminal(project.directory, b"yes\n")
    assert finished.returncode == 0, finished.stderr
    assert "Changed: mysite/settings.py, mysite/asgi.py, mysite/urls.py\n" in finished.stdout


@pytest.mark.parametrize("answer", [b"no\n", b"\x04"], ids=ascii)
def test_any_other_answer_writes_nothing(project: Project, answer: bytes) -> None:
    before = project.contents()
    finished = _at_a_terminal(project.directory, answer)
    assert finished.returncode == 1
    assert finished.stderr.endswith("CommandError: Nothing was written.\n")
    assert project.contents() == before


def test_without_a_terminal_nothing_is_written(project: Project) -> None:
    assert "there is no terminal to ask. Add --yes." in project.refused("--verbosity", "1")


def test_json_has_the_changes(project: Project) -> None:
    names = ["mysite/settings.py", "mysite/asgi.py", "mysite/urls.py"]

    value = json.loads(project.init("--json", "--yes"))

    assert (value["written"], value["by_hand"]) == (True, [])
    assert [change["name"] for change in value["changes"]] == names
    assert json.loads(project.init("--json", "--yes")) == {
        "changes": [],
        "written": False,
        "by_hand": [],
    }


# all or none


def _changes(directory: Path) -> list[FileChange]:
    changes = []
    for name in ("first.py", "second.py"):
        (directory / name).write_text("old")
        changes.append(FileChange(name, directory / name, b"old", b"new"))
    return changes


def test_file_that_cannot_be_replaced_takes_the_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = _changes(tmp_path)
    replace = Path.replace
    refused: list[Path] = []

    def fail(path: Path, target: Path) -> Path:
        if target.name == "second.py" and not refused:
            refused.append(path)
            raise PermissionError(1, "not permitted", str(path))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail)

    with pytest.raises(NotWritten, match="not permitted"):
        files.write(changes)

    assert refused
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "first.py": "old",
        "second.py": "old",
    }


def test_file_that_was_changed_meanwhile_stays(tmp_path: Path) -> None:
    changes = _changes(tmp_path)
    (tmp_path / "second.py").write_text("newer")
    with pytest.raises(NotWritten, match=r"second\.py was changed meanwhile"):
        files.write(changes)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "first.py": "old",
        "second.py": "newer",
    }


def test_failure_to_write_is_a_sentence(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(changes: object) -> None:
        raise NotWritten("mysite/settings.py was changed meanwhile")

    monkeypatch.setattr("realtime.tools.init.write", fail)

    with pytest.raises(
        CommandError, match=r"^Nothing was written: mysite/settings\.py was changed"
    ):
        project.init()
