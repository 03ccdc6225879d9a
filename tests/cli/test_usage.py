"""byok usage."""

import csv
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.journal_entries import entry, write_journal

DAY = 86_400


@pytest.fixture
def journal() -> Path:
    now = time.time()
    return write_journal(
        find_paths().journal,
        [
            entry(started=now, cost=0.5),
            entry(started=now, cost=None, model="other"),
            entry(started=now, cost=0.0, conversation="", outcome="failed"),
            entry(started=now - 10 * DAY, cost=1.0),
            entry(started=now - 40 * DAY, cost=100.0),
        ],
    )


@pytest.mark.usefixtures("journal")
def test_usage_adds_up_the_last_thirty_days(cli: Cli) -> None:
    done = cli("usage")
    assert (done.code, done.err) == (0, "")
    header, *rows = [line.split() for line in done.out.splitlines()]
    assert header == ["day", "requests", "failed", "in", "cached", "out", "cost"]
    assert len(rows) == 3
    assert rows[0][1:] == ["1", "1,200", "1,000", "30", "$1.00"]
    assert (
        " ".join(rows[-1])
        == "total 4 1 4,800 4,000 120 $1.50 + 1 request of unknown price"
    )


@pytest.mark.usefixtures("journal")
def test_usage_as_json_has_the_rows_and_the_total(cli: Cli) -> None:
    told = json.loads(cli("usage", "--by", "client", "--days", 1, "--json").out)
    assert (told["by"], told["days"]) == ("client", 1)
    assert [row["key"] for row in told["rows"]] == ["vscode/0.600.1"]
    total = told["total"]
    assert (total["requests"], total["cost"], total["unpriced"]) == (3, 0.5, 1)


@pytest.mark.usefixtures("journal")
def test_usage_as_csv_is_read_by_others(cli: Cli) -> None:
    out = cli("usage", "--by", "model", "--csv", "--days", "100").out
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["model"], row["requests"]) for row in rows] == [
        ("byok:one:m", "4"),
        ("byok:one:other", "1"),
    ]
    assert rows[0]["cost"] == "101.5"
    assert rows[1]["unpriced"] == "1"


@pytest.mark.case("B117")
def test_usage_as_csv_has_no_formula_and_no_control_character(cli: Cli) -> None:
    names = ["=1+1", "+1", "-1", "@x", "\x1b[31m", 'a,"b', "\ttab"]
    write_journal(
        find_paths().journal,
        [entry(started=time.time(), conversation=name) for name in names],
    )
    out = cli("usage", "--by", "conversation", "--csv").out
    assert "\x1b" not in out
    rows = list(csv.reader(out.splitlines()))[1:]
    assert sorted(row[0] for row in rows) == sorted(
        ["'=1+1", "'+1", "'-1", "'@x", "\\x1b[31m", 'a,"b', "'\ttab"]
    )


def test_usage_without_a_journal_says_so(cli: Cli) -> None:
    done = cli("usage")
    assert (done.code, done.out) == (0, "")
    assert "holds no requests to models" in done.err
    assert json.loads(cli("usage", "--json").out)["rows"] == []


@pytest.mark.parametrize("command", [["usage", "--by", "client"], ["log"]])
def test_damaged_requests_are_left_out_and_said(
    cli: Cli, journal: Path, command: list[str]
) -> None:
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute("UPDATE request SET client = x'00' WHERE id = 1")
    done = cli(*command)
    assert done.code == 0
    assert done.err == f"byok: {journal} is shown without 1 damaged request.\n"
    assert "other" in done.out or "$1.00" in done.out
