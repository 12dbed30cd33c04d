"""From a site with an app called `api` to the first message in a page of it, in a few steps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.browser import wait_for
from tests.install.pages import steps
from tests.install.running import Running, log_in
from tests.install.site import QUICK_HASHES, Site
from tests.server import wait_until

pytestmark = pytest.mark.timeout(600)  # the first test waits for both installations

MAX_STEPS = 5
"""Commands and edits."""

VIEWS = """\
from django.contrib.auth.decorators import login_required
from django.shortcuts import render


@login_required(login_url="/admin/login/")
def page(request):
    return render(request, "page.html")
"""
URLS = """\
from api import views

urlpatterns += [path("page", views.page)]
"""
PAGE = "<!DOCTYPE html>\n<title>A page of the site</title>\n"


@pytest.fixture(scope="module")
def own_site(sites: Mapping[str, Site], tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site that never heard of the service: it has an app, a page, tables and a user.

    The wheel is in its environment.
    """
    site = Site(tmp_path_factory.mktemp("own"), sites["newest"].environment)
    site.run("django-admin startproject mysite . && python manage.py startapp api")
    site.append("mysite/settings.py", 'INSTALLED_APPS += ["api"]\n' + QUICK_HASHES)
    site.append("mysite/urls.py", URLS)
    site.append("api/views.py", VIEWS)
    site.append("api/templates/page.html", PAGE)
    site.run("python manage.py migrate")
    site.create_user()
    return site


def test_first_message_takes_five_steps(own_site: Site, browser: Chrome, tmp_path: Path) -> None:
    code = steps("quickstart.md")
    taken = [code["install"]]  # in the fixture, with that wheel

    taken.append(f"{code['init'].strip()} --yes")
    assert "Changed: mysite/settings.py, mysite/asgi.py, mysite/urls.py" in own_site.run(taken[-1])

    taken.append(code["page"])
    own_site.append("api/templates/page.html", taken[-1])

    taken.append(code["run"])
    running = Running(own_site, [*shlex.split(taken[-1]), "--noreload"], tmp_path / "log")
    try:
        browser.get(f"{running.address}/page")
        log_in(browser)
        settings = (own_site.directory / "mysite/settings.py").read_text()
        (key,) = re.findall(r"""['"]api_key['"]: ['"]([\w-]+)""", settings)
        wait_until(lambda: running.subscribers(key) == 1, what="the page's subscription")

        curl = code["curl"].replace("a-key-of-your-own", key)
        taken.append(curl.replace("http://127.0.0.1:8000", running.address))
        assert '{"result":{}}' in own_site.run(taken[-1])

        def shown() -> list[str]:
            return [item.text for item in browser.find_elements(By.CSS_SELECTOR, "#messages li")]

        wait_for(browser, lambda: shown() == ["hi"], "the message")
    finally:
        running.stop()
    assert len(taken) <= MAX_STEPS, taken


def test_site_is_as_by_hand(own_site: Site) -> None:
    assert own_site.run("python manage.py realtime init").endswith("\nNothing to do.\n")
    said = own_site.run("python manage.py check --fail-level WARNING")
    assert said == "System check identified no issues (0 silenced).\n"
