"""Files of workspaces are held when a client asks for them, if unchanged."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.search.index.store.blobs import find_known
from byok.search.index.store.store import Store
from byok.search.index.types import Prepared
from byok.search.index.workspace.workspace import adopt
from tests.fakes.stores import of_file, open_store, upload, words


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "src").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def store(tmp_path: Path, root: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    sql = "INSERT INTO workspace(id, root) VALUES(1, 'x'), (2, 'y')"
    store.change(lambda db: db.execute(sql)).result()
    yield store
    store.close()


def follow(store: Store, root: Path, path: str, content: str) -> int:
    """Write a file and index it as one of workspace 1."""
    (root / path).write_bytes(content.encode())
    chunk = words(path, "word")
    prepared = Prepared(
        upload(path, content).name, 1, None, chunk.spans, chunk.documents, path
    )
    store.put([of_file(path, prepared)])
    store.flush()
    with store.reading() as db:
        return find_known(db, [prepared.name])[prepared.name].id


def test_adopted_file_is_held_if_it_did_not_change(store: Store, root: Path) -> None:
    same = follow(store, root, "src/a.py", "content")
    changed = follow(store, root, "src/b.py", "content")
    gone = follow(store, root, "src/c.py", "content")
    link = follow(store, root, "src/d.py", "content")
    (root / "src/b.py").write_text("another")
    (root / "src/c.py").unlink()
    (root / "src/d.py").unlink()
    (root / "src/d.py").symlink_to(root / "src/a.py")
    assert adopt(store, {1: root}, [same, changed, gone, link, 99]) == {same}
    assert store.content(same) == b"content"
    assert store.content(changed) is None


def test_adopted_files_are_held_a_few_at_a_time(store: Store, root: Path) -> None:
    ids = {follow(store, root, f"{n}.py", f"content {n}") for n in range(5)}
    assert adopt(store, {1: root}, ids, at_once=20) == ids
    assert {store.content(blob_id) for blob_id in ids} == {
        f"content {n}".encode() for n in range(5)
    }


def test_adopted_files_come_from_declared_workspaces_only(
    store: Store, root: Path
) -> None:
    blob_id = follow(store, root, "a.py", "content")
    assert adopt(store, {}, [blob_id]) == adopt(store, {2: root}, [blob_id]) == set()


def test_adopted_files_of_a_missing_root_are_none(store: Store, root: Path) -> None:
    blob_id = follow(store, root, "a.py", "content")
    assert adopt(store, {1: root / "gone"}, [blob_id]) == set()


def test_adopted_blob_that_went_meanwhile_is_not_held(store: Store, root: Path) -> None:
    class Dropping(Store):
        """The file is dropped after it was looked for, before it is kept."""

        def __init__(self) -> None:
            self.__dict__ = store.__dict__

        def change(self, work):  # type: ignore[no-untyped-def]
            self.writing(self.batches.drop_files, 1, ["a.py"])
            return super().change(work)

    blob_id = follow(store, root, "a.py", "content")
    assert adopt(Dropping(), {1: root}, [blob_id]) == set()
    store.flush()
    with store.reading() as db:
        assert db.execute("SELECT count(*) FROM content").fetchone() == (0,)


@pytest.mark.case("F28")
def test_adopted_files_on_a_full_disk_are_reported(store: Store, root: Path) -> None:
    blob_id = follow(store, root, "a.py", "content " * 9)
    (root / "a.py").write_bytes(b"content " * 9)
    full = (
        "CREATE TEMP TRIGGER full BEFORE INSERT ON content "
        "BEGIN SELECT RAISE(FAIL, 'full'); END"
    )
    store.change(lambda db: db.execute(full)).result()
    with pytest.raises(sqlite3.Error):
        adopt(store, {1: root}, [blob_id])
