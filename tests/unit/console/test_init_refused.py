"""Projects that `init` leaves to their authors, with what to add."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.console.init_project import Project

Edit = Callable[[str], str]


def replace(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


def end(code: str) -> Edit:
    return lambda text: f"{text}\n{code}\n"


URLCONF = "ROOT_URLCONF = 'mysite.urls'"


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        (
            "settings",
            replace("INSTALLED_APPS = [", "INSTALLED_APPS = [*OTHERS,"),
            "made by an expression",
        ),
        (
            "settings",
            replace("INSTALLED_APPS = [", "INSTALLED_APPS = OTHERS + ["),
            "made by an expression",
        ),
        ("settings", end("INSTALLED_APPS = []"), "INSTALLED_APPS is set more than once"),
        (
            "settings",
            end("if DEBUG:\n    INSTALLED_APPS = []"),
            "INSTALLED_APPS is set more than once",
        ),
        ("settings", end("from mysite.local import *"), "imports names with *"),
        ("settings", end("if DEBUG:\n    from mysite.local import *"), "imports names with *"),
        ("settings", end("("), "it has a syntax error"),
        ("settings", replace(URLCONF, "ROOT_URLCONF = __name__"), "ROOT_URLCONF is no string"),
        ("settings", replace(URLCONF, "ROOT_URLCONF = '../mysite.urls'"), "is no name of a module"),
        ("settings", replace(URLCONF, ""), "it has no ROOT_URLCONF"),
        (
            "settings",
            replace(URLCONF, "ROOT_URLCONF = 'mysite.asgi'"),
            "no statement of its own sets urlpatterns",
        ),
        (
            "settings",
            end("ASGI_APPLICATION = 'mysite.nowhere.application'"),
            "there is no such file",
        ),
        ("asgi", end("application = Middleware(application)"), "application is set more than once"),
        (
            "asgi",
            replace("get_asgi_application()\n", "Router(get_asgi_application())\n"),
            "routing or middleware of its own",
        ),
        (
            "asgi",
            replace("import os", "import os\nfrom mysite import realtime"),
            "the name realtime is in use there",
        ),
        ("urls", end("urlpatterns = urlpatterns + others"), "urlpatterns is set more than once"),
        (
            "urls",
            replace("urlpatterns = [", "urlpatterns = others + ["),
            "urlpatterns is made by an expression",
        ),
        (
            "urls",
            replace("import path", "import path\nfrom os import path"),
            "the name path is in use there",
        ),
        (
            "urls",
            replace("import path", "import path\n\ndef include(): pass"),
            "the name include is in use there",
        ),
        ("urls", replace("'admin/'", "'api'"), "the path 'api' is in use"),
    ],
    ids=lambda value: "" if callable(value) else ascii(value),
)
def test_file_that_may_mean_more_is_left_to_its_author(
    project: Project, name: str, edit: Edit, said: str
) -> None:
    project.change(name, edit)

    refused = project.refused()

    assert said in refused
    assert "Nothing was written. Make these changes, then run this command again" in refused


def test_advice_that_was_followed_is_enough(project: Project) -> None:
    project.change("settings", replace("INSTALLED_APPS = [", "INSTALLED_APPS = OTHERS + ["))
    shown = project.refused()
    code = shown.partition("where it fits:\n\n")[2].partition("\nNothing was written")[0]
    project.change(
        "settings", lambda text: f"OTHERS = []\n{text}\n" + code.replace("\n    ", "\n")[4:]
    )

    project.init()

    assert project.init() == "Nothing to do.\n"


def test_complete_site_may_import_all_names_of_a_module(project: Project) -> None:
    project.init()
    project.change("settings", end("from mysite.local import *"))

    assert project.init() == "Nothing to do.\n"


def test_application_is_found_beside_the_urls_of_a_nested_package(project: Project) -> None:
    (project.directory / "outer").mkdir()
    project.path("").parent.rename(project.directory / "outer" / "mysite")
    manage = project.directory / "manage.py"
    for path in [manage, *project.directory.glob("outer/mysite/*.py")]:
        path.write_text(path.read_text().replace("'mysite.", "'outer.mysite."))

    assert "+++ outer/mysite/asgi.py\n" in project.init("--dry-run")


def test_addition_elsewhere_is_no_doubt(project: Project) -> None:
    project.change("settings", end("if DEBUG:\n    INSTALLED_APPS += ['debug_toolbar']"))
    project.change("urls", end("urlpatterns += []"))

    project.init()

    assert project.init() == "Nothing to do.\n"


def test_package_of_settings_is_left_to_its_author(project: Project) -> None:
    package = project.path("settings").with_suffix("")
    package.mkdir()
    project.path("settings").rename(package / "__init__.py")

    refused = project.refused()

    assert "mysite/settings.py: it is a package" in refused
    assert "    REALTIME = {\n" in refused


def test_link_to_another_place_is_refused(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "settings.py"
    project.path("settings").rename(elsewhere)
    project.path("settings").symlink_to(elsewhere)

    assert "a link to a file outside of the project" in project.refused()


@pytest.mark.parametrize("name", ["settings", "asgi", "urls"])
def test_read_only_file_is_refused(project: Project, name: str) -> None:
    project.path(name).chmod(0o444)

    assert f"mysite/{name}.py: it is read-only" in project.refused()
