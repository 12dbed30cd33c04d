"""Write the tables of the documentation that come from the code: `make docs-tables`.

A page marks the place of a table by two comments, and what is between them is replaced:

    <!-- generated: options publish to proxy_publish -->
    <!-- end of generated -->

The first word names a row of `TABLES`, or is "api" (see `docs.reference`); the others are its
arguments. `--check` writes nothing and fails if a page is not current; `make check` runs that.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field
from itertools import pairwise
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "messaging_project.settings")
    django.setup()

from docs.reference import api
from realtime import checks, signals
from realtime.config.channel_rights import REPLACED
from realtime.config.fields import kind_of
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.database.checks import check_tables
from realtime.engine.redis.keys import Keys
from realtime.errors import DISCONNECTS, ERRORS, Disconnect, Error
from realtime.live.rows import checks as live_checks
from realtime.logs import FIELDS
from realtime.monitoring.table import PENDING, PROCESS, SERVICE
from realtime.protocol.v2.codes import CLOSES
from realtime.tools.commands import SUB_COMMANDS

DOCS = Path(__file__).resolve().parent
PAGES = sorted(DOCS.glob("*.md"))

TYPES = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool | str": "boolean or string",
    "list": "list of strings",
}

Row = Sequence[str]

_MARKED = re.compile(
    r"(?P<begin><!-- generated: (?P<table>[^>]+) -->\n).*?(?P<end><!-- end of generated -->)",
    re.DOTALL,
)
_CHECK = re.compile(r"^([EW]\d{3}): (.+?)(?=\n\s*[EW]\d{3}: |\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)


def options(first: str, _to: str, last: str) -> Iterator[Row]:
    """Yield the options from one to another, in the order of the code.

    Options that belong together have one row. Older names have a table of their own, and so have
    no row here; nor have the repeated members of records, which the page describes once.
    """
    fields = {**CHANNEL_OPTION_FIELDS, **CONFIG_FIELDS}
    names = list(fields)
    yield "Option", "Type", "Default", "Meaning"
    for name in names[names.index(first) : names.index(last) + 1]:
        if name not in OLDER and not REPEATED.match(name) and name not in _LATER:
            row = TOGETHER.get(name, [name])
            yield _row([fields[each] for each in row], row)


def older_options() -> Iterator[Row]:
    """Yield the channel options whose newer names say the same."""
    yield "Option", "Type", "Default", "Meaning"
    for name in OLDER:
        yield _row([CHANNEL_OPTION_FIELDS[name]], [name])


def _row(fields: Sequence[Field[Any]], names: Sequence[str]) -> Row:
    columns = (
        [f"`{name}`" for name in names],
        [TYPES[kind_of(option)] for option in fields],
        [_default(option) for option in fields],
        [str(option.metadata["meaning"]) for option in fields],
    )
    # one line for all where they say the same, or one for each
    return [column[0] if len(set(column)) == 1 else "<br>".join(column) for column in columns]


OLDER = tuple(REPLACED)
REPEATED = re.compile(
    r"subscription_token_|proxy_(subscribe|publish|rpc)_|proxy_refresh_(?!include)"
)
"""Members of records that have other names in front: `token_`, and `proxy_connect_`."""

TOGETHER: Mapping[str, Sequence[str]] = {
    line.split()[0]: line.split()
    for line in """
    allow_publish_for_client allow_publish_for_subscriber allow_publish_for_anonymous
    allow_presence_for_client allow_presence_for_subscriber allow_presence_for_anonymous
    allow_history_for_client allow_history_for_subscriber allow_history_for_anonymous
    history_lifetime history_meta_ttl
    force_positioning allow_positioning
    force_recovery allow_recovery
    user_subscribe_to_personal user_personal_channel_namespace user_personal_single_connection
    client_presence_ping_interval client_presence_expire_interval
    client_expired_close_delay client_expired_sub_close_delay
    ping_interval pong_timeout
    token_hmac_previous_secret_key token_hmac_previous_secret_key_valid_until
    token_rsa_public_key token_ecdsa_public_key
    token_audience token_audience_regex
    token_issuer token_issuer_regex
    admin_password admin_secret
    admin_insecure admin_insecure_in_production
    admin_name admin_accent
    redis_host redis_port
    redis_password redis_db
    redis_tls redis_tls_skip_verify
    redis_master_name redis_sentinels redis_sentinel_password
    redis_connect_timeout redis_read_timeout
    redis_wait_replicas redis_wait_timeout
    hook_timeout hook_workers
    http_stream sse
    uni_http_stream uni_sse uni_websocket
    sockjs_url sockjs_integrity
    health health_handler_prefix
    """.strip().splitlines()
}
"""Options of one row, by the first of them."""

_LATER = {name for names in TOGETHER.values() for name in names[1:]}


def _default(option: Field[Any]) -> str:
    words = {"True": "on", "False": "off", "None": "not set", "": "empty", "()": "empty"}
    text = str(option.default)
    return words.get(text, f"`{text}`")


def system_checks() -> Iterator[Row]:
    """Yield the id of each system check and what its function says about it."""
    yield "Id", "What it reports"
    described = dict(
        found
        for check in (
            *checks.CHECKS,
            *checks.DATABASE_CHECKS,
            *checks.OF_PARTS,
            *live_checks.CHECKS,
            check_tables,
        )
        for found in _CHECK.findall(inspect.getdoc(check) or "")
    )
    for name in sorted(described):
        yield f"`realtime.{name}`", " ".join(described[name].split()).removesuffix(".")


def commands() -> Iterator[Row]:
    """Yield the sub-commands of `manage.py realtime`."""
    yield "Command", "What it does"
    for command in SUB_COMMANDS.values():
        yield f"`{command.name}`", command.help


def redis_keys() -> Iterator[Row]:
    """Yield the rows of the table in the docstring of `Keys`."""
    for row in re.findall(r"^ *\| (.*) \|$", Keys.__doc__ or "", re.MULTILINE):
        yield row.split(" | ")


def disconnects() -> Iterator[Row]:
    """Yield the disconnects that come with advice for the client."""
    yield "Code", "Reason", "Reconnect", "When"
    for disconnect in sorted(DISCONNECTS, key=lambda disconnect: disconnect.code):
        if disconnect.advice:
            yield (
                str(disconnect.code),
                disconnect.reason,
                _yes(disconnect.reconnect),
                _when(disconnect),
            )


def errors() -> Iterator[Row]:
    """Yield the errors of commands."""
    yield "Code", "Message", "When"
    for error in ERRORS:
        yield str(error.code), error.message, _when(error)


def newer_disconnects() -> Iterator[Row]:
    """Yield the disconnects of the second generation, whose clients decide by the code."""
    yield "Code", "Reason", "Comes back", "First generation", "When"
    for disconnect, (code, reason) in sorted(CLOSES.items(), key=lambda row: row[1]):
        if reason:
            first = str(disconnect.code) if disconnect in DISCONNECTS else "-"
            yield str(code), reason, _yes(disconnect.reconnect), first, _when(disconnect)


def _when(refusal: type[Disconnect | Error]) -> str:
    """Return the first paragraph of what a class says about itself."""
    return " ".join((inspect.getdoc(refusal) or "").partition("\n\n")[0].split())


def site_signals() -> Iterator[Row]:
    """Yield the signals; the text below each says when it is sent, and then with what."""
    yield "Signal", "When", "Arguments"
    body = ast.parse(inspect.getsource(signals)).body
    for made, text in pairwise(body):
        match made, text:
            case ast.Assign(targets=[ast.Name(name)]), ast.Expr(ast.Constant(str(words))):
                when, arguments = " ".join(words.split()).split(". ", 1)
                yield f"`{name}`", when, arguments


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def metrics(scope: str) -> Iterator[Row]:
    """Yield metrics: those of "process", "pending" or "service"."""
    yield "Name", "Type", "Labels", "Meaning"
    for metric in {"process": PROCESS, "pending": PENDING, "service": SERVICE}[scope]:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"`{metric.name}`", metric.type, labels, metric.meaning


def log_fields() -> Iterator[Row]:
    """Yield the fields of log records."""
    yield "Field", "Meaning"
    for name, meaning in FIELDS.items():
        yield f"`{name}`", meaning


TABLES: Mapping[str, Callable[..., Iterator[Row]]] = {
    "options": options,
    "older-options": older_options,
    "checks": system_checks,
    "commands": commands,
    "metrics": metrics,
    "log-fields": log_fields,
    "redis-keys": redis_keys,
    "errors": errors,
    "signals": site_signals,
    "disconnects": disconnects,
    "disconnects-2": newer_disconnects,
}


def table(name: str, *arguments: str) -> str:
    """Return a table in Markdown.

    Raises:
        KeyError: there is no table of this name.
    """
    head, *rows = TABLES[name](*arguments)
    return "\n".join([_line(head), "|" + "---|" * len(head), *map(_line, rows)])


def _line(row: Row) -> str:
    return f"| {' | '.join(row)} |"


def render(text: str) -> str:
    """Return a page with its generated tables as the code has them now."""
    return _MARKED.sub(lambda found: found["begin"] + _between(found["table"]) + found["end"], text)


def _between(words: str) -> str:
    name, *arguments = words.split()
    return (api(*arguments) if name == "api" else table(name, *arguments)) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with `--check` list those that are not current.

    Returns:
        The exit status.
    """
    stale = [page for page in PAGES if render(page.read_text()) != page.read_text()]
    if "--check" in arguments:
        for page in stale:
            sys.stderr.write(f"{page} is not current: run `make docs-tables`\n")
        return bool(stale)
    for page in stale:
        page.write_text(render(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
