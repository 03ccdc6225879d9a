"""Conversations: their sums, the latest first, in pages."""

from pathlib import Path

import pytest

from byok.features.journal.reading import latest_conversations, sum_requests
from tests.fakes.journal_entries import NOW, entry, write_journal

LOCAL = {"purpose": "", "model": "", "upstream": "", "attempts": 0, "cost": 0.0}
_CACHES = (("told", 0), ("untold", None))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(
        tmp_path / "journal.db",
        [
            entry(conversation="a", started=NOW, repairs=2),
            entry(conversation="b", started=NOW + 1),
            entry(conversation="", started=NOW + 2),
            entry(conversation="c", started=NOW + 3, **LOCAL),
            entry(
                conversation="a",
                started=NOW + 4,
                outcome="failed",
                error="upstream_auth",
                input_tokens=None,
                output_tokens=None,
                cost=None,
                model="other",
                dropped_calls=1,
            ),
            entry(conversation="a", started=NOW + 5),
            entry(conversation="d", started=NOW + 6),
        ],
    )


def test_conversations_are_added_up(path: Path) -> None:
    found = sum_requests(path, "a")
    assert found is not None
    assert found._asdict() == {
        "conversation": "a",
        "first": NOW,
        "last": NOW + 7.5,
        "requests": 3,
        "failed": 1,
        "input_tokens": 2400,
        "output_tokens": 60,
        "cache_read_tokens": 3000,
        "cost": 0.5,
        "unpriced": 1,
        "repairs": 2,
        "dropped_calls": 1,
        "client": "vscode/0.600.1",
        "models": ("one:m", "one:other"),
    }


def test_a_cache_that_nobody_told_of_is_not_an_empty_one(tmp_path: Path) -> None:
    told, untold = (entry(conversation=n, cache_read_tokens=r) for n, r in _CACHES)
    path = write_journal(tmp_path / "journal.db", [told, untold])
    found = [sum_requests(path, name) for name, _ in _CACHES]
    assert [sums and sums.cache_read_tokens for sums in found] == [0, None]


@pytest.mark.parametrize("name", ["", "x", "c", "a' OR 1 --"])
def test_a_conversation_without_questions_has_no_sums(path: Path, name: str) -> None:
    assert sum_requests(path, name) is None


def test_the_latest_conversations_come_first_in_pages(path: Path) -> None:
    seen: list[str] = []
    before = None
    for _ in range(4):
        page = latest_conversations(path, 1, before)
        seen.append("".join(c.conversation for c in page.conversations))
        before = page.before
    assert seen == ["d", "a", "", "b"]  # what only asked byok itself is left out
    assert before is None
    whole = latest_conversations(path, 10)
    assert [c.conversation for c in whole.conversations] == ["d", "a", "b"]
    assert whole.before is None
