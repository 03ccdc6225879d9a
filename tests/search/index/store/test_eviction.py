"""Making room: nothing in use goes, the longest unused goes first."""

import random
from pathlib import Path

import pytest

from byok.search.index.store import blobs, checkpoints
from byok.search.index.store.checkpoints import count_bytes, evict, tidy
from tests.fakes.stores import Opened, of_upload, upload, words

TODAY = 1000


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    return Opened(tmp_path)


def noise(number: object) -> str:
    """Return words that cannot be packed: contents take more room than their names."""
    return random.Random(str(number)).randbytes(5000).hex()


def fill(opened: Opened, *days: int, index: bool = True) -> list[int]:
    """Store an upload for each day of use; each takes about the same room."""
    ids = []
    for day in days:
        number = opened.database.one("SELECT count(*) FROM blob")
        data = upload(f"{number}.py", f"number {number} {noise(number)}")
        with opened.database.writing() as db:
            _, (blob_id,) = blobs.store(db, [data], {}, day)
        if index:
            prepared = words(data.path, "word")
            opened.batches.put([of_upload(blob_id, data.path, prepared)])
        ids.append(blob_id)
    opened.batches.flush()
    return ids


def held(opened: Opened) -> list[int]:
    return [
        i for (i,) in opened.database.rows("SELECT blob_id FROM content ORDER BY 1")
    ]


def run(opened: Opened, limit: int, day: int = TODAY) -> int:
    return evict(opened.database, opened.batches, limit, day)


def test_eviction_takes_the_least_recently_used_down_to_the_limit(
    opened: Opened,
) -> None:
    ids = fill(opened, 5, 3, 9, 1, 7)
    full = count_bytes(opened.database.connection)
    assert run(opened, full * 7 // 10) == 2
    assert held(opened) == [ids[0], ids[2], ids[4]]
    assert count_bytes(opened.database.connection) <= full * 7 // 10
    assert opened.index.chunks == 3
    opened.check()


def test_eviction_spares_what_was_used_today(opened: Opened) -> None:
    ids = fill(opened, TODAY, 1, TODAY)
    assert run(opened, 0) == 1
    assert held(opened) == [ids[0], ids[2]]
    assert run(opened, 0) == 0


def test_eviction_spares_what_is_not_indexed_yet(opened: Opened) -> None:
    ids = fill(opened, 1, 2, index=False)
    assert run(opened, 0) == 0
    assert held(opened) == ids


def test_eviction_spares_what_a_live_checkpoint_names(opened: Opened) -> None:
    ids = fill(opened, 1, 1, 1)
    names = [n for (n,) in opened.database.rows("SELECT name FROM blob ORDER BY id")]
    with opened.database.writing() as db:
        made = checkpoints.make(db, "", names[:2], [], TODAY - 30)
        db.execute("UPDATE blob SET used = 1")
    assert made
    assert run(opened, 1000) == 1
    assert held(opened) == ids[:2]
    assert run(opened, 0, TODAY + 1) == 2
    assert checkpoints.members_of(opened.database.connection, made) is None


def test_eviction_tidies_what_nobody_used_for_a_month(
    opened: Opened,
) -> None:
    with opened.database.writing() as db:
        checkpoints.make(db, "", [b"a" * 32], [], TODAY - 31)
        live = checkpoints.make(db, "", [b"b" * 32], [], TODAY - 30)
    tidy(opened.database, TODAY)
    assert opened.database.rows("SELECT id FROM checkpoint") == [(live,)]
    assert opened.database.rows("SELECT name FROM blob") == [(b"b" * 32,)]


@pytest.mark.case("B113")
def test_eviction_counts_names_and_checkpoints_and_takes_unused_ones(
    opened: Opened,
) -> None:
    ids = fill(opened, TODAY)
    held_bytes = count_bytes(opened.database.connection)
    names = [bytes([n, m]) * 16 for n in range(100) for m in range(50)]
    with opened.database.writing() as db:
        checkpoints.make(db, "", names[:4900], [], TODAY - 1)
        live = checkpoints.make(db, "", names[4900:], [], TODAY)
    full = count_bytes(opened.database.connection)
    assert full - held_bytes > 5000 * 100
    run(opened, full)  # more than their share
    assert opened.database.rows("SELECT id FROM checkpoint") == [(live,)]
    assert count_bytes(opened.database.connection) < held_bytes + 100 * 300
    assert held(opened) == ids
