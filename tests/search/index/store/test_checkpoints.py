"""Checkpoints are sets: the same names give the same id, whatever the way there."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.search.index.store import blobs, checkpoints
from byok.search.index.store.blobs import find_known, store
from byok.search.index.store.checkpoints import (
    count_bytes,
    drop_unused,
    evict,
    make,
    members_of,
    members_of_all,
    touch,
)
from byok.search.index.store.schema import INDEX, pack_ids, unpack_ids
from byok.storage.database import Database
from tests.fakes.stores import Opened, of_upload, upload, words

NAMES = [bytes([n]) * 32 for n in range(20)]
SETS = st.frozensets(st.sampled_from(NAMES))


@contextmanager
def rows_in(folder: Path) -> Iterator[sqlite3.Connection]:
    database = Database(folder / "data.db", INDEX)
    with database.writing() as db:
        yield db
    database.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with rows_in(tmp_path) as db:
        yield db


def names_in(db: sqlite3.Connection, checkpoint: str | None) -> set[bytes]:
    assert checkpoint
    members = members_of(db, checkpoint)
    assert members is not None
    names = dict(db.execute("SELECT id, name FROM blob").fetchall())
    return {names[blob_id] for blob_id in members}


@settings(max_examples=30)
@given(st.lists(st.tuples(SETS, SETS), min_size=1, max_size=8), st.booleans())
def test_checkpoints_are_sets(
    steps: list[tuple[frozenset[bytes], frozenset[bytes]]], chained: bool
) -> None:
    with TemporaryDirectory() as folder, rows_in(Path(folder)) as db:
        base, expected = "", frozenset[bytes]()
        ids: dict[frozenset[bytes], str] = {}
        for added, deleted in steps:
            made = make(db, base, added, deleted, 1)
            assert made
            now = (expected | added) - deleted
            assert names_in(db, made) == now
            assert ids.setdefault(now, made) == made
            if chained:
                base, expected = made, now
        assert len(set(ids.values())) == len(ids)
        assert {names: frozenset(names_in(db, i)) for names, i in ids.items()} == {
            names: names for names in ids
        }


@pytest.mark.case("B92")
def test_checkpoint_change_with_unknown_and_contradictory_names(
    db: sqlite3.Connection,
) -> None:
    base = make(db, "", NAMES[:3], [], 1)
    for _ in range(2):
        made = make(db, base or "", [NAMES[3], NAMES[4]], [NAMES[3], b"?" * 32], 1)
        assert names_in(db, made) == {*NAMES[:3], NAMES[4]}
        assert make(db, made or "", [NAMES[4]], [NAMES[3]], 1) == made
    assert find_known(db, [b"?" * 32]) == {}


def test_a_foreign_name_uploaded_later_is_in_the_checkpoint(
    db: sqlite3.Connection,
) -> None:
    given = upload("a.py", "x", name=b"\0foreign")
    made = make(db, "", [given.name], [], 1)
    _, fresh = store(db, [given], {}, 1)
    assert members_of(db, made or "") == members_of_all(db) == set(fresh)
    assert names_in(db, make(db, made or "", [], [given.name], 1)) == set()


DAMAGES: list[Callable[[bytes], bytes]] = [lambda p: b"", lambda p: p[:-3] + b"abc"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_unknown_until_it_is_made_again(
    db: sqlite3.Connection, damage: Callable[[bytes], bytes]
) -> None:
    made = make(db, "", NAMES, [], 1) or ""
    (packed,) = db.execute("SELECT members FROM checkpoint").fetchone()
    db.execute("UPDATE checkpoint SET members = ?", (damage(packed),))
    assert members_of(db, made) is None
    assert make(db, made, [], [], 1) is None
    assert members_of_all(db) == set()
    assert make(db, "", NAMES, [], 1) == made
    assert names_in(db, made) == set(NAMES)


def test_checkpoints_nobody_used_since_a_day_go_with_their_names(
    db: sqlite3.Connection,
) -> None:
    old = make(db, "", NAMES[:5], [], 100) or ""
    young = make(db, "", NAMES[4:8], [], 110) or ""
    touch(db, young, 105)  # no step back
    assert make(db, "", NAMES[4:8], [], 90) == young
    drop_unused(db, 110)
    assert members_of(db, old) is None
    assert set(find_known(db, NAMES)) == set(NAMES[4:8])
    touch(db, young, 130)
    drop_unused(db, 120)
    assert members_of(db, young) is not None


# What is stored as bytes comes back as it was


@given(st.lists(st.integers(1, 2**62)))
def test_packing_of_ids_sorts_them_and_drops_duplicates(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == sorted(set(ids))
    assert pack_ids(reversed(ids)) == pack_ids({*ids})


def test_packing_of_neighbouring_ids_takes_no_room() -> None:
    assert len(pack_ids(range(1, 50_000))) < 5_000


# Making room: nothing in use goes, the longest unused goes first


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


def test_eviction_spares_what_was_used_today_or_is_not_indexed_yet(
    opened: Opened,
) -> None:
    ids = fill(opened, TODAY, 1, TODAY)
    waiting = fill(opened, 1, 2, index=False)
    assert (run(opened, 0), run(opened, 0)) == (1, 0)
    assert held(opened) == [ids[0], ids[2], *waiting]


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


def test_what_nobody_used_for_long_is_dropped(
    opened: Opened,
) -> None:
    with opened.database.writing() as db:
        checkpoints.make(db, "", [b"a" * 32], [], TODAY - 31)
        live = checkpoints.make(db, "", [b"b" * 32], [], TODAY - 30)
        drop_unused(db, TODAY - 30)
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
