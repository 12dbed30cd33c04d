"""doctor: check the settings, a running service and Redis or PostgreSQL, and give advice.

finding     the result of a check
site        checks of the settings of this site
service     requests to the running service, which several checks share
network     checks of the service as clients, browsers and publishers reach it
login       the check of a login session
nodes       checks of the engine and the number of processes
redis       checks of each Redis of the engine
postgresql  checks of the PostgreSQL of the engine
"""

from __future__ import annotations

from collections.abc import Iterable

from django.core.management.base import CommandParser

from realtime.config import sources
from realtime.config.database_options import uses_postgresql
from realtime.config.options import Config
from realtime.errors import EngineUnavailable
from realtime.tools.base import CommandResult, Options, SubCommand, count, escape_for_terminal
from realtime.tools.configuration import messages_of_checks
from realtime.tools.doctor import login, network, nodes, postgresql, redis, site
from realtime.tools.doctor.finding import DoctorCheck, Finding, fail, ok, skip, warn
from realtime.tools.doctor.service import RunningService
from realtime.tools.remote import Remote, Unreachable, add_url_arguments

NO_URL = skip(
    "no --url was given, so no running service was checked",
    "Give the address that browsers use, for example --url https://example.org",
)


def _add_arguments(parser: CommandParser) -> None:
    add_url_arguments(
        parser,
        "address of the running site, as browsers use it: that of its reverse proxy, if any",
    )
    parser.add_argument(
        "--user",
        default="",
        metavar="NAME",
        help="with --url: connect also with a login session of this user, made for a moment",
    )


def _run(options: Options) -> CommandResult:
    remote = Remote(options["url"], options["timeout"]) if options["url"] else None
    if options["user"]:
        login.find_user(options["user"])
    configuration = _configuration()
    findings = [("configuration", configuration)]
    if configuration.status != "fail":
        findings += _run_checks(_checks(sources.current(), remote, options["user"]))
    failed = sum(finding.status == "fail" for _, finding in findings)
    text = "\n".join(_describe(name, finding) for name, finding in findings)
    value = {
        "ok": not failed,
        "checks": [{"check": name, **finding._asdict()} for name, finding in findings],
    }
    failure = f"{count(failed, 'check')} of {len(findings)} failed." if failed else ""
    return CommandResult(text, value, failure)


def _configuration() -> Finding:
    """Return the result of the system checks. After errors nothing else is checked."""
    messages = messages_of_checks()
    ids = ", ".join(sorted({str(message.id) for message in messages}))
    if any(message.is_serious() for message in messages):
        advice = "See manage.py realtime checkconfig. Nothing else was checked."
        return fail(f"the options have mistakes: {ids}", advice)
    if messages:
        return warn(f"there are warnings: {ids}", "See manage.py realtime checkconfig")
    return ok("no mistakes")


def _checks(config: Config, remote: Remote | None, user: str) -> Iterable[DoctorCheck]:
    yield from site.checks(config)
    yield from redis.checks(config)
    yield from postgresql.checks(config)
    if remote is None:
        yield DoctorCheck("service", lambda: NO_URL)
        return
    service = RunningService(remote, config)
    reached = _run_checks([DoctorCheck("service", lambda: network.reach(service))])
    yield DoctorCheck("service", lambda: reached[0][1])
    if reached[0][1].status != "fail":
        yield from network.checks(service, user)
        yield from nodes.checks(service)


def _run_checks(to_run: Iterable[DoctorCheck]) -> list[tuple[str, Finding]]:
    findings: list[tuple[str, Finding]] = []
    for check in to_run:
        try:
            finding = check.run()
        except Unreachable as error:
            finding = fail(str(error), "See the logs of the server and of the reverse proxy.")
        except EngineUnavailable as error:
            finding = (postgresql if uses_postgresql(sources.current()) else redis).away(error)
        findings.append((check.name, finding))
    return findings


def _describe(name: str, finding: Finding) -> str:
    lines = [f"{finding.status:<5} {name}: {escape_for_terminal(finding.found)}"]
    if finding.advice:
        lines.append(f"      {escape_for_terminal(finding.advice)}")
    return "\n".join(lines)


SUB_COMMANDS = (
    SubCommand(
        "doctor",
        "Look for common problems, and say what to do about them.",
        _add_arguments,
        _run,
        "Check the settings of this site, the server of the engine and, with --url, the\n"
        "running service as clients reach it. Each check prints ok, warn, fail, or skip if it\n"
        "could not be made; then the finding and what to do. The exit status is 1 if a check\n"
        "fails. The doctor changes nothing; a client of its own connects for a moment. With\n"
        "--user it also makes a login session, connects with it, and removes it.",
    ),
)
