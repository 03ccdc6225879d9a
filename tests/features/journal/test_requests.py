"""The journal is read without a daemon: the last requests, or those since a number."""

from pathlib import Path

import pytest

from byok.features.journal.requests import (
    LogFilter,
    entries_before,
    entries_since,
    highest_number,
    last_entries,
)
from tests.fakes.journal_entries import entry, write_journal

FAILED = {"outcome": "failed", "error": "upstream_garbled"}
NO_MODEL = {"purpose": "", "model": "", "upstream": "", "attempts": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(
        tmp_path / "journal.db",
        [
            entry(request_id="a"),
            entry(request_id="b", **FAILED),
            entry(request_id="c", conversation="c0ffee-2"),
            entry(request_id="d", **NO_MODEL),
            entry(request_id="e", **NO_MODEL, **FAILED, conversation=""),
            entry(request_id="f", conversation="c%ffee", purpose="", upstream="one"),
        ],
    )


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (LogFilter(), "abcef"),
        (LogFilter(everything=True), "abcdef"),
        (LogFilter(errors=True), "be"),
        (LogFilter(conversation="c0ffee-1"), "ab"),
        (LogFilter(conversation="c0"), "abc"),
        (LogFilter(conversation="c%"), "f"),
        (LogFilter(conversation="c_ffee"), ""),
        (LogFilter(conversation="c0ffee-1", errors=True), "b"),
        (LogFilter(conversation="c0ffee-1", everything=True), "abd"),
        (LogFilter(conversation="' OR 1 --"), ""),
    ],
)
def test_a_filter_chooses_requests(path: Path, wanted: LogFilter, ids: str) -> None:
    found = last_entries(path, 100, wanted)
    assert "".join(stored.entry.request_id for stored in found) == ids
    assert entries_since(path, 0, 100, wanted) == found


def test_the_last_requests_come_in_their_order(path: Path) -> None:
    found = last_entries(path, 2, LogFilter(everything=True))
    assert [(s.number, s.entry.request_id) for s in found] == [(5, "e"), (6, "f")]
    assert last_entries(path, 0) == []


def test_new_requests_are_those_with_a_higher_number(path: Path) -> None:
    found = entries_since(path, 3, 2, LogFilter(everything=True))
    assert [s.entry.request_id for s in found] == ["d", "e"]
    assert entries_since(path, 6, 2) == []
    assert highest_number(path) == 6


@pytest.mark.parametrize(
    ("wanted", "pages"),
    [
        (LogFilter(everything=True), ["fe", "dc", "ba", ""]),
        (LogFilter(errors=True, everything=True), ["eb", ""]),
        (LogFilter(conversation="c0ffee-1", exact=True), ["ba", ""]),
        (LogFilter(conversation="c0ffee", exact=True), [""]),
    ],
)
def test_requests_come_in_pages_the_latest_first(
    path: Path, wanted: LogFilter, pages: list[str]
) -> None:
    before: int | None = None
    seen: list[str] = []
    while not seen or seen[-1]:
        page = entries_before(path, before, 2, wanted)
        seen.append("".join(stored.entry.request_id for stored in page))
        before = page[-1].number if page else None
    assert seen == pages


def test_without_a_journal_there_are_no_requests(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    assert last_entries(path, 5) == entries_since(path, 0, 5) == []
    assert highest_number(path) == 0
    assert not path.exists()
