"""The test site under WSGI, served by the standard library, a thread for each request.

python -m tests.site.wsgi
"""

from __future__ import annotations

import os
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
application = get_wsgi_application()


class ThreadingServer(ThreadingMixIn, WSGIServer):
    """Serves several requests at a time."""

    daemon_threads = True
    request_queue_size = 100


def main() -> None:
    """Serve on a free port, and tell which one it is."""
    server = ThreadingServer(("127.0.0.1", 0), WSGIRequestHandler)
    server.set_app(application)
    print(f"Serving on http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
