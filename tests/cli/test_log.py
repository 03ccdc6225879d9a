"""byok log, and requests as rows of its table."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from byok.cli.log import show_entries
from byok.core.platform.paths import find_paths
from byok.features.journal.entry import JournalEntry
from byok.features.journal.requests import StoredEntry
from tests.fakes.commands import Cli
from tests.fakes.journal_entries import UNKNOWN, entry, write_journal
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT

CHATS = [
    entry(request_id="a"),
    entry(request_id="b", outcome="failed", error="upstream_garbled"),
    entry(request_id="c", conversation="\udcff other"),
    entry(request_id="d", purpose="", model="", upstream=""),
]


@pytest.fixture
def journal() -> Path:
    return find_paths().journal


def ids(out: str) -> list[str]:
    return [told["request_id"] for told in json.loads(out)]


def test_log_chooses_requests_by_its_options(cli: Cli, journal: Path) -> None:
    write_journal(journal, CHATS)
    assert ids(cli("log", "--json").out) == ["a", "b", "c"]
    assert ids(cli("log", "--json", "--all").out) == ["a", "b", "c", "d"]
    assert ids(cli("log", "--json", "--errors").out) == ["b"]
    assert ids(cli("log", "--json", "-n", 2).out) == ["b", "c"]
    assert ids(cli("log", "--json", "--conversation", "c0f").out) == ["a", "b"]
    assert ids(cli("log", "--json", "--conversation", "\udcff").out) == ["c"]


def test_log_of_a_damaged_journal_is_an_error_with_a_cure(
    cli: Cli, journal: Path
) -> None:
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"no database at all" * 500)
    done = cli("log")
    assert (done.code, done.out) == (74, "")
    assert "cannot be read" in done.err
    assert "move the file away" in done.err


def follow(*options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "byok", "log", "-f", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )


def test_log_follows_until_it_is_interrupted(journal: Path) -> None:
    write_journal(journal, CHATS)
    process = follow("--json", "-n", "1")
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        write_journal(journal, [entry(request_id="new")])
        second = json.loads(process.stdout.readline())
        journal.rename(journal.with_name("old.db"))
        write_journal(journal, [entry(request_id="anew")])
        third = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    shown = [told["request_id"] for told in (first, second, third)]
    assert shown == ["c", "new", "anew"]
    assert (process.returncode, out, err) == (0, "", "")


def test_log_ends_when_nobody_reads(journal: Path) -> None:
    write_journal(journal, CHATS)
    process = follow("--json")
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdout.readline()
        process.stdout.close()
        write_journal(journal, [entry(request_id="new")] * 5)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def row(capsys: pytest.CaptureFixture[str], shown: JournalEntry) -> list[str]:
    show_entries([StoredEntry(1, shown)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert " ".join(lines[0].split()) == (
        "time request model in cached out first took cost end chat tools"
    )
    return lines[1].split()[2:]  # behind day and time


def test_a_chat_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = "chat one:m 1,200 1,000 30 0.40 s 2.50 s $0.2500 ok c0ffee-1"
    assert row(capsys, entry()) == shown.split()


def test_what_is_unknown_is_a_question_mark(capsys: pytest.CaptureFixture[str]) -> None:
    broken = entry(**UNKNOWN, outcome="cancelled", seconds=123.4, conversation="")
    shown = "chat one:m ? ? ? 0.40 s 123 s ? cancelled"
    assert row(capsys, broken) == shown.split()


def test_a_request_without_a_model_has_no_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    local = entry(
        purpose="",
        endpoint="/find-missing",
        model="",
        upstream="",
        model_asked="",
        attempts=0,
        first_byte=None,
        **{**UNKNOWN, "cost": 0.0},
        outcome="failed",
        error="bad_body",
        conversation="",
    )
    assert row(capsys, local) == ["find-missing", "2.50", "s", "bad_body"]


@pytest.mark.case("B117")
def test_hostile_names_are_shown_and_not_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = entry(
        model="\x1b]0;owned\x07[red]m",
        upstream="one",
        conversation="\u202eabc\nx",
        tool_calls="view\x1b[2J x3",
    )
    show_entries([StoredEntry(1, hostile)])
    out = capsys.readouterr().out
    assert "one:\\x1b]0;owned\\x07[red]m" in out
    assert "\\u202eabc\\nx" in out
    assert "view\\x1b[2J x3" in out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize(("columns", "wide"), [(165, False), (166, True)])
def test_only_a_wide_terminal_shows_tools(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    *,
    wide: bool,
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    show_entries([StoredEntry(1, entry(tool_calls="t" * 40))], goes_on=True)
    header, line = capsys.readouterr().out.splitlines()
    assert ("tools" in header) == wide
    assert len(line) <= columns


DAY = 86_400


@pytest.fixture
def used() -> Path:
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


@pytest.mark.usefixtures("used")
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


@pytest.mark.usefixtures("used")
def test_usage_as_json_has_the_rows_and_the_total(cli: Cli) -> None:
    told = json.loads(cli("usage", "--by", "client", "--days", 1, "--json").out)
    assert (told["by"], told["days"]) == ("client", 1)
    assert [row["key"] for row in told["rows"]] == ["vscode/0.600.1"]
    total = told["total"]
    assert (total["requests"], total["cost"], total["unpriced"]) == (3, 0.5, 1)


@pytest.mark.usefixtures("used")
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
    cli: Cli, used: Path, command: list[str]
) -> None:
    with closing(sqlite3.connect(used)) as db, db:
        db.execute("UPDATE request SET client = x'00' WHERE id = 1")
    done = cli(*command)
    assert done.code == 0
    assert done.err == f"byok: {used} is shown without 1 damaged request.\n"
    assert "other" in done.out or "$1.00" in done.out
