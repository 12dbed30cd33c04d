"""`python -m realtime mysite.asgi:application`: start daphne with settings for the service."""

from __future__ import annotations

import sys

from realtime.transports.servers.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
