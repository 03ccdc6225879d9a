"""Making room: nothing in use goes, the longest unused goes first."""

import random
from pathlib import Path

import pytest

from byok.search.index.store import blobs, checkpoints
from byok.search.index.store.eviction import count_bytes, evict, tidy
from byok.search.index.store.schema import INDEXED, NAMED
from tests.fakes.stores import FACTS, Opened, of_upload, upload, words

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


def test_eviction_needs_a_full_store(opened: Opened) -> None:
    ids = fill(opened, 1, 2, 3)
    assert run(opened, 10 * count_bytes(opened.database.connection)) == 0
    assert held(opened) == ids


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


def test_eviction_spares_what_a_checkpoint_names_by_an_alias(opened: Opened) -> None:
    given = upload("a.py", "x", name=b"\0foreign")
    with opened.database.writing() as db:
        checkpoints.make(db, "", [given.name], [], TODAY)
        _, (blob_id,) = blobs.store(db, [given], {}, 1)
    opened.batches.put([of_upload(blob_id, "a.py", words("a.py", "x"))])
    opened.batches.flush()
    assert run(opened, 0) == 0
    assert held(opened) == [blob_id]


def test_eviction_of_a_workspace_file_drops_its_copy_only(opened: Opened) -> None:
    (blob_id,) = fill(opened, 1)
    with opened.database.writing() as db:
        db.execute("INSERT INTO workspace(id, root) VALUES(1, 'x')")
        db.execute(
            "INSERT INTO file VALUES(1, '0.py', ?, ?, ?, ?, ?, NULL)", (*FACTS, blob_id)
        )
    assert run(opened, 0) == 1
    assert held(opened) == []
    assert opened.index.counts() == {blob_id: 1}
    opened.check()


def test_eviction_forgets_names_after_a_month(opened: Opened) -> None:
    fill(opened, 1, TODAY)
    run(opened, 0)
    states = "SELECT state FROM blob ORDER BY id"
    assert opened.database.rows(states) == [(NAMED,), (INDEXED,)]
    run(opened, 0)
    assert opened.database.rows(states) == [(INDEXED,)]


def test_eviction_counts_room_without_reading_contents(opened: Opened) -> None:
    plan = opened.database.rows("EXPLAIN QUERY PLAN SELECT sum(bytes) FROM content")
    assert "COVERING INDEX content_size" in str(plan)


def test_eviction_may_take_everything(opened: Opened) -> None:
    fill(opened, *range(1, 30))
    assert run(opened, 0) == 29
    assert opened.index.chunks == 0
    opened.check()


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


@pytest.mark.case("B113")
def test_eviction_spares_checkpoints_within_their_share(opened: Opened) -> None:
    with opened.database.writing() as db:
        made = checkpoints.make(db, "", [b"a" * 32, b"b" * 32], [], TODAY - 1)
    run(opened, 5 * count_bytes(opened.database.connection))
    assert opened.database.rows("SELECT id FROM checkpoint") == [(made,)]
