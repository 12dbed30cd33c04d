"""Static files with hashes in their names, where imports in modules are rewritten, too."""

from __future__ import annotations

import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage

APPS = ("realtime/", "admin_panel/", "messaging_project/")


class Storage(ManifestStaticFilesStorage):
    support_js_module_import_aggregation = True


def test_modules_are_stored_with_hashes_in_their_imports(tmp_path: Path) -> None:
    storage = Storage(location=tmp_path, base_url="/static/")
    paths = {
        path: (found, path)
        for finder in finders.get_finders()
        for path, found in finder.list([])
        if path.startswith(APPS)
    }
    assert "realtime/client.js" in paths
    for path, (found, _) in paths.items():
        with found.open(path) as file:
            storage.save(path, file)

    failures = [
        (name, hashed)
        for name, _, hashed in storage.post_process(paths)
        if isinstance(hashed, Exception)
    ]

    assert failures == []
    for path in paths:
        if path.endswith(".js"):
            text = (tmp_path / storage.stored_name(path)).read_text()
            imported = re.findall(
                r'^(?:import|export)\b[^;]* from "([./][^"]*)";', text, re.MULTILINE
            )
            assert [name for name in imported if not re.search(r"\.[0-9a-f]{12}\.js$", name)] == []
