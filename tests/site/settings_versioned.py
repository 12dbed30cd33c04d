"""Settings of a site whose own REST API has versions, told by URL namespaces."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

REST_FRAMEWORK = {
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.NamespaceVersioning",
    "ALLOWED_VERSIONS": ["v1", "v2"],
    "DEFAULT_VERSION": "v1",
}
