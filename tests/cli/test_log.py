"""byok log."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.journal_entries import entry, write_journal
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


def test_log_without_a_journal_says_so(cli: Cli, journal: Path) -> None:
    done = cli("log")
    assert (done.code, done.out) == (0, "")
    assert f"{journal} holds no such requests" in done.err
    assert json.loads(cli("log", "--json").out) == []
    assert not journal.parent.exists()


def test_log_shows_the_last_requests_without_a_daemon(cli: Cli, journal: Path) -> None:
    write_journal(journal, CHATS)
    done = cli("log")
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 4
    assert "upstream_garbled" in done.out
    assert len(cli("log", "-n", 1).out.splitlines()) == 2


def test_log_chooses_requests_by_its_options(cli: Cli, journal: Path) -> None:
    write_journal(journal, CHATS)
    assert ids(cli("log", "--json").out) == ["a", "b", "c"]
    assert ids(cli("log", "--json", "--all").out) == ["a", "b", "c", "d"]
    assert ids(cli("log", "--json", "--errors").out) == ["b"]
    assert ids(cli("log", "--json", "-n", 2).out) == ["b", "c"]
    assert ids(cli("log", "--json", "--conversation", "c0f").out) == ["a", "b"]
    assert ids(cli("log", "--json", "--conversation", "\udcff").out) == ["c"]


def test_log_as_json_has_every_column(cli: Cli, journal: Path) -> None:
    write_journal(journal, [entry(cost=None)])
    told = json.loads(cli("log", "--json").out)
    assert told == [{"id": 1, **entry(cost=None)._asdict()}]


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


def test_log_goes_on_in_the_columns_of_its_table(journal: Path) -> None:
    write_journal(journal, CHATS[:1])
    process = follow()
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        write_journal(journal, CHATS[1:2])
        lines.append(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
    assert lines[0].split()[0] == "time"
    places = {line.index("$0.2500") for line in lines[1:]}
    assert len(places) == 1


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
