"""The store: one writer, readers beside it, and an end whatever happens."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from byok.core.errors import CannotStart, IndexInUse, NotReady
from byok.search.index.store import blobs
from byok.search.index.store.blobs import find_known
from byok.search.index.store.store import Store
from tests.fakes.stores import A1, FullWriter, check, of_upload, open_store, upload

FILE = upload("a.py", "one alpha\nbeta")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    store.change(
        lambda db: db.execute("INSERT INTO workspace(id, root) VALUES(1, 'x')")
    ).result()
    yield store
    store.close()


def keep(store: Store) -> int:
    _, (blob_id,) = store.change(lambda db: blobs.store(db, [FILE], {}, 7)).result()
    return int(blob_id)


def test_a_second_store_is_refused_and_harms_nothing(
    store: Store, tmp_path: Path
) -> None:
    blob_id = keep(store)
    for _ in range(2):
        with pytest.raises(IndexInUse):
            open_store(tmp_path)
    assert store.content(blob_id) == FILE.content
    store.put([of_upload(blob_id, "a.py", A1)])
    store.flush()
    assert not list(tmp_path.glob("*.corrupt"))


def test_of_many_that_make_the_files_at_once_one_has_them(tmp_path: Path) -> None:
    def open_or_refuse(folder: Path) -> Store | None:
        try:
            return open_store(folder)
        except IndexInUse:
            return None

    with ThreadPoolExecutor(4) as threads:
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            made = list(threads.map(open_or_refuse, [folder] * 4))
            [store] = filter(None, made)
            keep(store)
            store.close()
            assert not [*folder.glob("*.corrupt"), *folder.glob("*.damaged*")]


@pytest.mark.case("F36")
def test_a_damaged_database_is_set_aside_as_it_was(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    (tmp_path / "data.db").write_bytes(b"garbage" * 999)
    store = open_store(tmp_path)
    assert "data.db.damaged-1" in store.damage_note
    keep(store)
    store.close()
    assert (tmp_path / "data.db.damaged-1").read_bytes() == b"garbage" * 999
    store = open_store(tmp_path)
    assert not store.damage_note
    store.close()


def damage_file(path: Path, number: int) -> str:
    """Damage a database in the way of a number; the same number, the same way."""
    chance = random.Random(number)
    whole = path.read_bytes()
    page = 4096 * (number % (len(whole) // 4096))
    kind = ("noise", "zeros", "cut", "bytes", "schema")[number // 3 % 5]
    if kind == "noise":
        data = whole[:page] + chance.randbytes(4096) + whole[page + 4096 :]
    elif kind == "zeros":
        data = whole[:page] + bytes(4096) + whole[page + 4096 :]
    elif kind == "cut":
        data = whole[: chance.randrange(len(whole))]
    elif kind == "bytes":
        torn = bytearray(whole)
        for _ in range(40):
            torn[chance.randrange(len(whole))] = chance.randrange(256)
        data = bytes(torn)
    else:
        data = whole
    path.write_bytes(data)
    if kind == "schema":
        tables = ("blob", "content", "checkpoint", "workspace", "file", "meta")
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"ALTER TABLE {chance.choice(tables)} RENAME TO other")
            db.commit()
    return f"{number}: {kind}, page {page // 4096} of {len(whole) // 4096}"


@pytest.mark.case("F36")
def test_whatever_is_damaged_the_store_opens_and_takes_uploads(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    ups = [
        upload(f"{number}.py", random.Random(number).randbytes(9000).hex())
        for number in range(20)
    ]
    store.change(lambda db: blobs.store(db, ups, {}, 7)).result()
    store.close()
    failed = []
    for number in range(15):  # each way of damage
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(tmp_path / "data.db", folder)
        shutil.copytree(tmp_path / "index", folder / "index")
        way = damage_file(folder / "data.db", number)
        try:
            store = open_store(folder)
            try:
                if store.trouble is None:
                    keep(store)
            except sqlite3.DatabaseError as error:  # met while in use
                assert store.trouble is error, error
            finally:
                store.close()
            if trouble := store.trouble:
                store = Store(folder / "data.db", folder / "index", damage=str(trouble))
                keep(store)
                store.close()
        except Exception as error:
            failed.append(f"{way}: {error!r}")
    assert not failed, "\n".join(failed)


@pytest.mark.case("F35")
def test_the_index_of_a_later_byok_is_not_touched_either(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "data.db")) as db:
        db.execute("PRAGMA user_version = 99")
    (tmp_path / "index" / "meta.json").write_text("a form that comes later")
    with pytest.raises(CannotStart) as caught:
        open_store(tmp_path)
    assert caught.value.code == "newer_data"
    assert (tmp_path / "index" / "meta.json").read_text() == "a form that comes later"
    assert not list(tmp_path.glob("*damaged*"))


@pytest.mark.case("F37")
def test_store_requests_damaged_content_again(store: Store) -> None:
    blob_id = keep(store)
    store.put([of_upload(blob_id, "a.py", A1)])
    store.flush()
    store.change(lambda db: db.execute("UPDATE content SET packed = x'00'")).result()
    assert store.content(blob_id) is None
    store.flush()
    with store.reading() as db:
        assert not find_known(db, [FILE.name])[FILE.name].is_held
    check(store.database, store.index)
    assert keep(store) == blob_id
    assert store.content(blob_id) == FILE.content


@pytest.mark.case("F28")
def test_store_close_on_a_full_disk_ends(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    blob_id = keep(store)
    store.put([of_upload(blob_id, "a.py", A1)])
    store.index._writer = FullWriter(False)  # type: ignore[assignment]
    store.close()
    again = open_store(tmp_path)
    assert not again.database.was_clean
    assert again.content(blob_id) == FILE.content
    check(again.database, again.index)
    again.close()


@pytest.mark.case("F30")
def test_store_reports_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "data.db").mkdir()
    for _ in range(2):
        with pytest.raises(NotReady, match="cannot be used"):
            open_store(tmp_path)
    (tmp_path / "data.db").rmdir()
    open_store(tmp_path).close()
