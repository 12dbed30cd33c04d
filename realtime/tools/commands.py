"""The table of the sub-commands."""

from collections.abc import Mapping

from realtime.tools import (
    calls,
    configuration,
    doctor,
    init,
    openapi,
    pending,
    tables,
    tail,
    tokens,
    top,
    typed,
)
from realtime.tools.base import SubCommand
from realtime.tools.bench import command as bench

SUB_COMMANDS: Mapping[str, SubCommand] = {
    command.name: command
    for command in (
        *init.SUB_COMMANDS,
        *tokens.SUB_COMMANDS,
        *configuration.SUB_COMMANDS,
        *calls.SUB_COMMANDS,
        *openapi.SUB_COMMANDS,
        *typed.SUB_COMMANDS,
        *pending.SUB_COMMANDS,
        *tables.SUB_COMMANDS,
        *top.SUB_COMMANDS,
        *bench.SUB_COMMANDS,
        *tail.SUB_COMMANDS,
        *doctor.SUB_COMMANDS,
    )
}
