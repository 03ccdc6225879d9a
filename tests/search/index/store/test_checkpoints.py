"""Checkpoints are sets: the same names give the same id, whatever the way there."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.search.index.store.blobs import find_known, store
from byok.search.index.store.checkpoints import (
    drop_names,
    drop_unused,
    make,
    members_of,
    members_of_all,
    touch,
)
from byok.search.index.store.schema import (
    INDEX,
    pack_history,
    pack_ids,
    pack_spans,
    unpack_history,
    unpack_ids,
    unpack_spans,
)
from byok.search.index.types import Commit, CommitHistory, Span
from byok.storage.database import Database
from tests.fakes.stores import upload

NAMES = [bytes([n]) * 32 for n in range(20)]
SETS = st.frozensets(st.sampled_from(NAMES))


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    database = Database(folder / "data.db", INDEX)
    with database.writing() as db:
        yield db
    database.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with opened(tmp_path) as db:
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
    with TemporaryDirectory() as folder, opened(Path(folder)) as db:
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


def test_checkpoint_ids_are_the_same_in_a_new_database(tmp_path: Path) -> None:
    made = []
    for name, order in (("a", NAMES), ("b", NAMES[::-1])):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name) as db:
            make(db, "", order[:3], [], 1)
            made.append(make(db, "", order, NAMES[:2], 1))
    assert made[0] == made[1]
    assert made[0] and made[0].startswith("byok-")


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
    drop_names(db, members_of_all(db), 110)
    assert set(find_known(db, NAMES)) == set(NAMES[4:8])
    touch(db, young, 130)
    drop_unused(db, 120)
    assert members_of(db, young) is not None


# What is stored as bytes comes back as it was


U32 = st.integers(0, 2**32 - 1)


@given(st.lists(st.builds(Span, U32, U32, U32)))
def test_packing_of_spans(spans: list[Span]) -> None:
    packed = pack_spans(spans)
    assert unpack_spans(packed) == spans
    assert len(packed) == 12 * len(spans)  # recovery counts chunks by it


@given(st.lists(st.integers(1, 2**62)))
def test_packing_of_ids_sorts_them_and_drops_duplicates(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == sorted(set(ids))
    assert pack_ids(reversed(ids)) == pack_ids({*ids})


def test_packing_of_neighbouring_ids_takes_no_room() -> None:
    assert len(pack_ids(range(1, 50_000))) < 5_000


def test_packing_of_a_history() -> None:
    first = Commit("ab12", 1_700_000_000, "Say: héllo\n\nbody", ("a.py", "b c.py"), 2)
    for history in (CommitHistory("ab12", (first,)), CommitHistory("", ())):
        assert unpack_history(pack_history(history)) == history
