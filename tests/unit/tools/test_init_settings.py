"""`manage.py realtime init` on settings of which some processes have others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.unit.tools.init_project import LIST, SERVED, STAR, Project


def _local_adds_an_app(project: Project) -> None:
    project.append("settings/local", "INSTALLED_APPS += ['daphne']\n")


def _one_has_a_list_of_its_own(project: Project) -> None:
    project.append("settings/production", LIST)


def _one_is_alone(project: Project) -> None:
    project.path("settings/production").write_text(project.read("settings/base"))


def _one_does_not_run(project: Project) -> None:
    project.path("settings/production").write_text(f"raise ValueError\n{STAR}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_local_adds_an_app, f"with it, {SERVED}.local has the app daphne 2 times"),
        (_one_has_a_list_of_its_own, f"{SERVED}.production takes channels, daphne, realtime, "),
        (_one_is_alone, f"{SERVED}.production does not load it"),
        (_one_does_not_run, f"{SERVED}.production does not load it (ValueError: )"),
    ],
)
def test_settings_that_no_block_serves_are_left_to_their_author(
    project: Project, change: object, said: str
) -> None:
    project.split()
    assert callable(change)
    change(project)
    assert f"mysite/settings/base.py: {said}" in project.refused()


def _lists_are_apart(project: Project) -> None:
    """Nothing but the environment names the settings of production."""
    project.split(served="local")
    project.replace("settings/base", "INSTALLED_APPS", "COMMON_APPS")
    for name in ("local", "production"):
        project.append(f"settings/{name}", "INSTALLED_APPS = [*COMMON_APPS]\n")


def _environment_chooses_the_list(project: Project) -> None:
    project.split(served="local")
    for name in ("local", "production"):
        project.path(f"settings/{name}").write_text(project.read("settings/base"))
    project.path("settings/base").unlink()
    project.append(
        "settings/__init__",
        "import os\n\nif 'STAGE' in os.environ:\n    from .production import *\n"
        "else:\n    from .local import *\n",
    )
    for name in ("asgi", "wsgi", "../manage"):
        project.replace(name, f"{SERVED}.local", SERVED)


@pytest.mark.parametrize("change", [_lists_are_apart, _environment_chooses_the_list])
def test_settings_beside_those_in_force_are_not_forgotten(
    project: Project, change: Callable[[Project], None]
) -> None:
    change(project)
    refused = project.refused()
    assert re.search(rf"settings/local\.py: {SERVED}\.production (does not load it|takes)", refused)


def test_other_modules_beside_the_settings_do_not_count(project: Project) -> None:
    project.append("apps", LIST)
    project.append("test_settings", LIST + "ROOT_URLCONF = 'mysite.urls'\n")
    project.append("fragment", "INSTALLED_APPS += ['x']\n")
    project.init()
    assert project.init().endswith("Nothing to do.\n")


@pytest.mark.parametrize(
    "code",
    [
        "if 'STAGE' in os.environ:\n    INSTALLED_APPS += ['channels']\n",
        "'STAGE' in os.environ and INSTALLED_APPS.append('channels')\n",
        "MORE_APPS = {'production': ['channels']}\n"
        "INSTALLED_APPS += MORE_APPS.get(os.environ.get('STAGE'), [])\n",
        "if 'STAGE' not in os.environ:\n    INSTALLED_APPS += ['channels']\n",
    ],
)
def test_app_of_some_hosts_is_not_repeated(project: Project, code: str) -> None:
    project.append("settings", f"import os\n\n{code}")
    assert "whether channels is installed may depend on the environment" in project.refused()
