"""`manage.py realtime init` on fresh projects, and on those that have some of it."""

from __future__ import annotations

import ast
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

from realtime.console.init import writing
from realtime.console.init.writing import Change, NotWritten
from tests.install.pages import steps
from tests.server import ROOT
from tests.unit.console.init_project import FILES, Project

NOTHING = "Nothing to do.\n"


def test_dry_run_shows_the_changes_and_makes_none(project: Project) -> None:
    before = project.contents()

    shown = project.init("--dry-run")

    assert project.contents() == before
    for name in FILES:
        assert f"+++ mysite/{name}.py\n" in shown
    assert "\n+    'daphne',\n" in shown
    assert "\n-from django.urls import path\n+from django.urls import include, path\n" in shown


def test_second_run_has_nothing_to_do(project: Project) -> None:
    project.init()
    after = project.contents()

    assert project.init() == NOTHING
    assert project.contents() == after


def test_changes_are_those_of_the_quick_start(project: Project) -> None:
    shown = re.sub(r"(?<='api_key': ')[\w-]{43}'", "a-key-of-your-own'", project.init("--dry-run"))
    changed = [line for line in shown.splitlines() if line.startswith(("+", "-"))]

    documented = steps("quickstart.md")["changes"].splitlines()
    assert changed == [line for line in documented if line.startswith(("+", "-"))]


def test_changes_are_what_a_site_does_by_hand(project: Project) -> None:
    project.init()

    made = _settings(project.read("settings"))
    by_hand = _settings(steps("quickstart.md")["settings"])
    options, documented = ast.literal_eval(made["REALTIME"]), ast.literal_eval(by_hand["REALTIME"])
    assert options.pop("api_key") != documented.pop("api_key")
    assert options == documented
    assert made["ASGI_APPLICATION"] == by_hand["ASGI_APPLICATION"]
    first, _rest, *last = re.findall(r"'([\w.]+)'|\*", by_hand["INSTALLED_APPS"])
    apps = ast.literal_eval(made["INSTALLED_APPS"])
    assert (apps[0], apps[-len(last) :]) == (first, last)


def _settings(code: str) -> dict[str, str]:
    """Name of a setting → the code of its value."""
    return {
        node.targets[0].id: ast.unparse(node.value)
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def test_two_runs_make_two_keys(project: Project) -> None:
    first = project.init("--dry-run")

    assert project.init("--dry-run") != first


def test_key_of_the_environment_is_not_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "a key of the environment")

    project.init()

    assert "api_key" not in project.read("settings")


def test_options_of_a_file_need_no_setting(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_CONFIG_FILE", "config.json")

    project.init()

    assert "REALTIME" not in project.read("settings")


def test_panel_is_left_out_without_the_admin(project: Project) -> None:
    project.change("settings", lambda text: text.replace("    'django.contrib.admin',\n", ""))

    project.init()

    assert "'realtime.api',\n]" in project.read("settings")


# what is there already


def test_site_that_followed_the_quick_start_by_hand_has_all(project: Project) -> None:
    for name in FILES:
        code = steps("quickstart.md")[name]
        project.change(name, lambda text, code=code: f"{text}\n{code}")  # type: ignore[misc]

    assert project.init() == NOTHING


def test_what_a_site_has_stays_as_it_is(project: Project) -> None:
    def add(text: str) -> str:
        text = text.replace(
            "'django.contrib.admin',", "'django.contrib.admin',\n    'rest_framework',"
        )
        return f"{text}\nASGI_APPLICATION = 'mysite.asgi.application'\nREALTIME = {{}}\n"

    project.change("settings", add)
    project.init()

    settings = project.read("settings")
    assert settings.count("rest_framework") == 1
    assert settings.endswith("REALTIME = {}\n")
    assert "    'channels',\n    'realtime',\n" in settings


def test_apps_named_by_their_configuration_are_there(project: Project) -> None:
    project.change(
        "settings",
        lambda text: text.replace(
            "'django.contrib.admin',",
            "'django.contrib.admin.apps.AdminConfig',\n    'channels.apps.ChannelsConfig',",
        ),
    )

    project.init()

    settings = project.read("settings")
    assert "'channels'," not in settings
    assert "realtime.admin_panel" in settings


def test_own_pages_under_api_stay(project: Project) -> None:
    project.change(
        "urls", lambda text: text.replace("]\n", "    path('api/', include('api.urls')),\n]\n")
    )
    project.change("urls", lambda text: text.replace("import path", "import include, path"))

    project.init()

    assert project.read("urls").endswith(
        "    path('api/', include('api.urls')),\n"
        "    path('api', include('realtime.api.urls')),\n"
        "]\n"
    )


def test_link_stays_a_link(project: Project) -> None:
    path = project.path("settings")
    target = path.with_name("real.py")
    path.rename(target)
    path.symlink_to(target.name)

    project.init()

    assert path.is_symlink()
    assert "REALTIME" in target.read_text()


def test_permissions_of_a_file_stay(project: Project) -> None:
    project.path("settings").chmod(0o640)

    project.init()

    assert stat.S_IMODE(project.path("settings").stat().st_mode) == 0o640
    assert {
        path.name
        for path in project.path("settings").parent.iterdir()
        if path.name != "__pycache__"
    } == {
        "__init__.py",
        "asgi.py",
        "settings.py",
        "urls.py",
        "wsgi.py",
    }


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
    # the settings of the site would raise: none of them runs
    project.change("settings", lambda text: f"{text}\nraise SystemExit('it ran')\n")

    finished = _at_a_terminal(project.directory, b"yes\n")

    assert finished.returncode == 0, finished.stderr
    assert "Changed: mysite/settings.py, mysite/asgi.py, mysite/urls.py\n" in finished.stdout
    assert project.init() == NOTHING


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
    value = json.loads(project.init("--json", "--yes"))

    assert value["written"] is True
    assert [change["name"] for change in value["changes"]] == [
        f"mysite/{name}.py" for name in FILES
    ]
    assert json.loads(project.init("--json", "--yes")) == {"changes": [], "written": False}


# manage.py


def test_directory_without_manage_py_is_refused(project: Project) -> None:
    (project.directory / "manage.py").unlink()

    assert "in the directory of your manage.py" in project.refused()


@pytest.mark.parametrize(
    "line",
    [
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'mysite.other'",
        "os.environ.setdefault('DJANGO_SETTINGS_MODULE', name)",
    ],
)
def test_manage_py_that_names_several_settings_is_refused(project: Project, line: str) -> None:
    with (project.directory / "manage.py").open("a") as file:
        file.write(f"\n{line}\n")

    assert "does not name one module of settings. Add --settings." in project.refused()


def test_environment_names_the_settings(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.path("settings").rename(project.path("other"))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "mysite.other")

    project.init()

    assert "REALTIME" in project.read("other")


# all or none


def _changes(directory: Path) -> list[Change]:
    changes = []
    for name in ("first.py", "second.py"):
        (directory / name).write_text("old")
        changes.append(Change(name, directory / name, "utf-8", "old", "new"))
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
        writing.write(changes)

    assert refused
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "first.py": "old",
        "second.py": "old",
    }


def test_file_that_was_changed_meanwhile_stays(tmp_path: Path) -> None:
    changes = _changes(tmp_path)
    (tmp_path / "second.py").write_text("newer")

    with pytest.raises(NotWritten, match=r"second\.py was changed meanwhile"):
        writing.write(changes)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "first.py": "old",
        "second.py": "newer",
    }


def test_failure_to_write_is_a_sentence(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(changes: object) -> None:
        raise NotWritten("mysite/settings.py was changed meanwhile")

    monkeypatch.setattr("realtime.console.init.write", fail)

    with pytest.raises(
        CommandError, match=r"^Nothing was written: mysite/settings\.py was changed"
    ):
        project.init()
