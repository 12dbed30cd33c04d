"""The tables that `make docs-tables` writes are current and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import tables
from realtime import checks
from realtime.config import parts
from realtime.config.options import CHANNEL_OPTION_FIELDS, CONFIG_FIELDS
from realtime.database import checks as database_checks
from realtime.live.rows import checks as live_checks
from realtime.tools.bench import command as bench
from realtime.tools.bench import reference
from tests.unit.checks.system_checks import ids_of_problems

STALE = "before\n<!-- generated: commands -->\n| old |\n<!-- end of generated -->\nafter\n"


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_generated_tables_are_current(page: Path) -> None:
    assert page.read_text() == tables.render(page.read_text())


def test_every_option_is_in_one_table_or_repeats_one_that_is() -> None:
    page = (tables.DOCS / "options.md").read_text()
    rows = re.findall(r"^\| ((?:`\w+`(?:<br>)?)+) \| (?!What)", page, re.MULTILINE)
    shown = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    options = {*CHANNEL_OPTION_FIELDS, *CONFIG_FIELDS}
    repeated = {name for name in options if tables.REPEATED.match(name)}

    assert sorted(shown) == sorted(options - repeated)
    for name in repeated:
        first = re.sub("^subscription_|(?<=^proxy_)[a-z]+", "", name).replace("proxy__", "proxy_")
        first = first.replace("proxy_", "proxy_connect_")
        assert first in shown or first.replace("connect", "refresh", 1) in shown


def test_every_system_check_is_in_the_table_and_no_other() -> None:
    modules = (database_checks, live_checks, parts)
    files = [
        *Path(checks.__path__[0]).glob("*.py"),
        *(Path(str(each.__file__)) for each in modules),
    ]
    code = "".join(path.read_text() for path in files)
    used = {
        *re.findall(r'(?:id=|check\(\n? *)"(realtime\.[EW]\d{3})"', code),
        *ids_of_problems(),
    }
    _, *rows = tables.system_checks()

    assert len(used) > 40
    assert sorted(name for name, _ in rows) == sorted(f"`{check}`" for check in used)


def test_stale_table_is_replaced_and_the_rest_of_the_page_is_kept() -> None:
    begin, rest = STALE.split("| old |\n")
    assert tables.render(STALE) == begin + tables.table("commands") + "\n" + rest


def test_check_names_stale_pages_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(STALE)
    monkeypatch.setattr(tables, "PAGES", [page])

    assert tables.main(["--check"]) == 1
    assert page.read_text() == STALE
    assert str(page) in capsys.readouterr().err

    assert tables.main([]) == 0
    assert page.read_text() != STALE
    assert tables.main(["--check"]) == 0


def test_reference_of_bench_is_that_of_the_page() -> None:
    page = (tables.DOCS / "performance.md").read_text()

    def row(heading: str) -> list[float]:
        section = page.partition(f"\n## {heading}")[2]
        [_, line, *_] = re.split(r"^\| ours, daphne \| (.*) \|$", section, flags=re.MULTILINE)
        return [float(cell.replace(",", "")) for cell in line.split(" | ")]

    assert row("Connections")[0] == reference.CONNECTIONS_PER_SECOND
    rate, p50, p99 = row("Latency: 1000 subscribers")
    assert (p50, p99) == pytest.approx((reference.P50 * 1000, reference.P99 * 1000))
    assert bench.DEFAULT_CONNECTIONS == 1000
    assert rate == bench.DEFAULT_RATE
