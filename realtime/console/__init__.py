"""The sub-commands of `manage.py realtime`; one module for each group.

base           the types of a sub-command and its answer; layout of text
tokens         gentoken, checktoken
configuration  checkconfig, genconfig
calls          the methods of the server API, in this process, through Redis or over HTTP
init/          init: adds the service to the files of a site
api_document   openapi
typed/         schema, types: the typed channels as documents
pending        pending: rows of durable publications
bench          bench: how fast a running service is; see realtime.bench
top            top: the busiest nodes, channels and namespaces
tail           tail: publications, or the frames of a user
admin_log      entries in the admin's log
terminal       what a command that goes on does with a screen, or a pipe
doctor/        doctor: checks settings, a running service and Redis
remote         HTTP requests to a running service
websocket      a WebSocket connection to a running service
"""

from collections.abc import Mapping

from realtime.console import (
    api_document,
    bench,
    calls,
    configuration,
    doctor,
    init,
    pending,
    tail,
    tokens,
    top,
    typed,
)
from realtime.console.base import SubCommand

SUB_COMMANDS: Mapping[str, SubCommand] = {
    command.name: command
    for command in (
        *init.SUB_COMMANDS,
        *tokens.SUB_COMMANDS,
        *configuration.SUB_COMMANDS,
        *calls.SUB_COMMANDS,
        *api_document.SUB_COMMANDS,
        *typed.SUB_COMMANDS,
        *pending.SUB_COMMANDS,
        *top.SUB_COMMANDS,
        *bench.SUB_COMMANDS,
        *tail.SUB_COMMANDS,
        *doctor.SUB_COMMANDS,
    )
}
