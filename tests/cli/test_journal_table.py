"""Requests as rows of a table: what is unknown shows as such."""

import pytest

from byok.cli.journal_table import show_entries
from byok.features.journal.entry import JournalEntry
from byok.features.journal.reading import StoredEntry
from tests.fakes.journal_entries import entry


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


def test_what_is_unknown_is_a_question_mark(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = entry(
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        cost=None,
        outcome="cancelled",
        seconds=123.4,
        conversation="",
    )
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
        input_tokens=None,
        output_tokens=None,
        cache_read_tokens=None,
        first_byte=None,
        cost=0.0,
        outcome="failed",
        error="bad_body",
        conversation="",
    )
    assert row(capsys, local) == ["find-missing", "2.50", "s", "bad_body"]


def test_tools_and_loops_stand_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    shown = row(capsys, entry(tool_calls="view x3, save-file", loop="warned-failing-3"))
    assert " ".join(shown[-5:]) == "c0ffee-1 warned-failing-3, view x3, save-file"
    shown = row(capsys, entry(tool_calls="t" * 200))
    assert shown[-1] == "t" * 37 + "..."


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


def test_a_narrow_terminal_gets_fewer_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    show_entries([StoredEntry(1, entry())], goes_on=True)
    header, line = capsys.readouterr().out.splitlines()
    assert "cached" not in header
    assert len(line) <= 100


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
