"""What `manage.py realtime init` finds in the URLs of a site."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from realtime.tools.init import files, urls

PAGES = "urlpatterns = [path('<slug:name>', page)]"


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        ("re_path('.*', page)", True),
        ("re_path('^(?P<rest>.*)$', page)", True),
        ("path('<path:rest>', page)", True),
        ("path('<slug:name>', page)", True),
        ("path('api', include([]))", True),
        ("path('', include('site.pages'))", True),
        ("path('', include(('site.pages', 'pages'), namespace='pages'))", True),
        ("path('', include([re_path('^api', page)]))", True),
        ("path('', admin.site.urls)", True),
        ("i18n_patterns(path('<path:rest>', page), prefix_default_language=False)", True),
        ("path('api/', page)", False),
        ("path('<slug:name>/', page)", False),
        ("path('<own:name>', page)", False),
        ("re_path('^', include([]))", False),
        ("path('', include(router.urls))", False),
        ("path('', include('of.a.library'))", False),
        ("path('news/', include('site.pages'))", False),
        ("path('news/', include([path('<path:rest>', page)]))", False),
        ("i18n_patterns(path('<path:rest>', page))", False),
    ],
)
def test_path_is_taken_as_django_would_resolve_it(route: str, takes: bool) -> None:
    def opened(module: str) -> files.Source:
        if module != "site.pages":
            raise files.NotSure
        return files.Source(module, Path(), b"", PAGES, ast.parse(PAGES))

    assert urls.takes(ast.parse(f"urlpatterns = [{route}]"), "api", opened) is takes
