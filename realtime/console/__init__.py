"""What `manage.py realtime` can do; one module for each group of sub-commands.

base           what a sub-command is, and what it answers
table          all of them
tokens         gentoken, checktoken
configuration  checkconfig, genconfig
calls          the methods of the server API, in this process, through Redis or over HTTP
remote         HTTP requests to a running service
websocket      a client just large enough to look at a running service
doctor         looks at settings, service and Redis, and says what to do
"""

from collections.abc import Mapping

from realtime.console import calls, configuration, doctor, tokens
from realtime.console.base import SubCommand

SUB_COMMANDS: Mapping[str, SubCommand] = {
    command.name: command
    for command in (
        *tokens.SUB_COMMANDS,
        *configuration.SUB_COMMANDS,
        *calls.SUB_COMMANDS,
        *doctor.SUB_COMMANDS,
    )
}
