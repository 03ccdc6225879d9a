"""Repairs by model, since a time."""

from pathlib import Path
from typing import Any

import pytest

from byok.features.journal.reading import MendedModel, find_mended
from tests.fakes.journal_entries import NOW, entry, write_journal


def failed(error: str, **fields: Any) -> dict[str, Any]:
    return {"outcome": "failed", "error": error, **fields}


ENTRIES = [
    entry(started=NOW, **failed("upstream_auth")),
    entry(started=NOW + 1),
    *(entry(started=NOW + 2 + n, **failed("rate_limited")) for n in range(7)),
    entry(started=NOW + 10, **failed("rate_limited"), model="n"),
    entry(started=NOW + 11, **failed("bad_body"), model="", upstream=""),
    entry(started=NOW + 12, repairs=3, attempts=2, request_id="mended"),
    entry(started=NOW + 13, loop="ended-failing-6", model="n", request_id="loop"),
    entry(started=NOW + 14, outcome="cancelled"),
    entry(started=NOW + 15, dropped_calls=1, notices=2, request_id="dropped"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "journal.db", ENTRIES)


def test_repairs_are_counted_by_model(path: Path) -> None:
    found = find_mended(path, NOW)
    assert found.requests == 14
    assert found.models == [
        MendedModel("one:m", 12, 2, 3, 1, 2, 0, 1),
        MendedModel("one:n", 2, 1, 0, 0, 0, 1, 0),
    ]
    ids = [stored.entry.request_id for stored in found.latest]
    assert ids == ["dropped", "loop", "mended"]


def test_only_what_began_since_then_counts(path: Path) -> None:
    found = find_mended(path, NOW + 14)
    assert found.requests == 2
    assert [m.mended for m in found.models] == [1]
