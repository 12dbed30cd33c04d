"""All sub-commands by name, in the order in which `--help` lists them."""

from __future__ import annotations

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
