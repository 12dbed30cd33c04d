"""`python -m realtime mysite.asgi:application`: start daphne with settings for the service.

`python -m realtime init`: add the service to a site, before its `manage.py` knows the command.
"""

from __future__ import annotations

import sys

INIT = "init"


def main(arguments: list[str]) -> int:
    """Run what the first argument says. Return the exit status."""
    if arguments[:1] == [INIT]:
        from realtime.management.commands.realtime import Command

        Command().run_from_argv(["python", "-m realtime", *arguments])
        return 0
    # each way loads what it needs alone
    from realtime.transports.servers.launch import main as serve

    return serve(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
