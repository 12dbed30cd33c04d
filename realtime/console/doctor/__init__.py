"""doctor: look at the settings, a running service and Redis, and say what to do.

finding  what a check says
site     the settings of this site
service  the running service, as one visit finds it
network  what a client, a browser and the server API meet there
nodes    whether engine and processes fit together
redis    each Redis of the engine
"""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import CommandParser

from realtime.config import sources
from realtime.config.options import Config
from realtime.console.base import Answer, Options, SubCommand, count, shown
from realtime.console.configuration import messages_of_checks
from realtime.console.doctor import network, nodes, redis, site
from realtime.console.doctor.finding import Check, Finding, fail, ok, skip, warn
from realtime.console.doctor.service import Service
from realtime.console.remote import Remote, Unreachable, add_url_arguments
from realtime.engine import factory
from realtime.errors import EngineUnavailable

NO_URL = skip(
    "no --url was given, so no running service was looked at",
    "Give the address that browsers use, for example --url https://example.org",
)


def _add_arguments(parser: CommandParser) -> None:
    add_url_arguments(
        parser, "address of the running site as browsers use it, so with its proxy, if there is one"
    )


def _run(options: Options) -> Answer:
    remote = Remote(options["url"], options["timeout"]) if options["url"] else None
    configuration = _configuration()
    findings = [("configuration", configuration)]
    if configuration.status != "fail":
        findings += _look(_checks(sources.current(), remote))
    failed = sum(finding.status == "fail" for _, finding in findings)
    text = "\n".join(_describe(name, finding) for name, finding in findings)
    value = {
        "ok": not failed,
        "checks": [{"check": name, **finding._asdict()} for name, finding in findings],
    }
    failure = f"{count(failed, 'check')} of {len(findings)} failed." if failed else ""
    return Answer(text, value, failure)


def _configuration() -> Finding:
    """What the system checks say, in short; with errors nothing else can be looked at."""
    messages = messages_of_checks()
    ids = ", ".join(sorted({str(message.id) for message in messages}))
    if any(message.is_serious() for message in messages):
        advice = "See manage.py realtime checkconfig. Nothing else was looked at."
        return fail(f"the options have mistakes: {ids}", advice)
    if messages:
        return warn(f"there are warnings: {ids}", "See manage.py realtime checkconfig")
    return ok("no mistakes")


def _checks(config: Config, remote: Remote | None) -> Iterable[Check]:
    yield from site.checks(config)
    if factory.is_shared(config):
        yield from redis.checks(config)
    if remote is None:
        yield Check("service", lambda: NO_URL)
        return
    service = Service(remote, config)
    reached = _look([Check("service", lambda: network.reach(service))])
    yield Check("service", lambda: reached[0][1])
    if reached[0][1].status != "fail":
        yield from network.checks(service)
        yield from nodes.checks(service)


def _look(wanted: Iterable[Check]) -> list[tuple[str, Finding]]:
    findings: list[tuple[str, Finding]] = []
    for check in wanted:
        try:
            finding = check.look()
        except Unreachable as error:
            finding = fail(str(error), "Look into the logs of the server and of the proxy.")
        except EngineUnavailable as error:
            finding = redis.away(error)
        findings.append((check.name, finding))
    return findings


def _describe(name: str, finding: Finding) -> str:
    lines = [f"{finding.status:<5} {name}: {shown(finding.found)}"]
    if finding.advice:
        lines.append(f"      {shown(finding.advice)}")
    return "\n".join(lines)


SUB_COMMANDS = (
    SubCommand(
        "doctor",
        "Look for what usually goes wrong, and say what to do.",
        _add_arguments,
        _run,
        "Look at the settings of this site, at Redis where the engine uses it and, with --url, at\n"
        "the running service as a client meets it. For each check: ok, warn, fail, or skip when\n"
        "it was not looked at; then what was found and what to do. The exit status is 1 when a\n"
        "check fails. Nothing is changed; one client connects for a moment.",
    ),
)
