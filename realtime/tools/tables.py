"""tables: creates the tables of the PostgreSQL engine where `migrate` does not reach them."""

from __future__ import annotations

from contextlib import closing

from django.core.management.base import CommandError, CommandParser

from realtime.engine.postgresql import schema
from realtime.serving import serving
from realtime.tools.base import CommandResult, Options, SubCommand


def _add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--sql", action="store_true", help="print the SQL, and change nothing")


def _run(options: Options) -> CommandResult:
    config = serving.config()
    if options["sql"]:
        sql = schema.statements(config.database_schema)
        return CommandResult(sql, {"sql": sql})
    database = serving.engines(config).database(config)
    if database is None:
        raise CommandError("The engine is not postgresql.")
    with closing(database):
        database.create_tables()
    text = f"The tables are in {config.database_schema} at {database.address.label}."
    return CommandResult(text, {"schema": config.database_schema})


SUB_COMMANDS = (
    SubCommand(
        "tables",
        "Create the tables of the PostgreSQL engine, or print their SQL.",
        _add_arguments,
        _run,
        "Create the tables and functions of the PostgreSQL engine, as the options of this process\n"
        "name database and schema. What is there is kept: run it again with each new version.\n"
        'With "realtime.database" in INSTALLED_APPS, migrate does it in a database of DATABASES.\n'
        "--sql prints the statements for a user who may create a schema.",
    ),
)
