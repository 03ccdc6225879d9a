"""After an update of byok: the old index answers until everything is indexed again."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from byok.core.code_query import Upload
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import View
from byok.search.index.store.recovery import INDEX_VERSION
from byok.search.index.store.store import Store
from tests.fakes.engines import InlineWorkers, complete, engine, project
from tests.fakes.old_index import write_old_index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "root", a__py="def lion(): pass\n")


def age(folder: Path) -> None:
    """Make it look as if an older byok had indexed everything."""
    with closing(sqlite3.connect(folder / "data.db")) as db, db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'index_version'")
        db.execute("UPDATE blob SET index_version = 0")


def versions(store: Store) -> set[int]:
    with store.reading() as db:
        return {v for (v,) in db.execute("SELECT index_version FROM blob")}


def finds(made: ContextEngine, word: str) -> int:
    view = View(word, frozenset(range(99)), 0)
    return len(made.store.index.search({word: 1}, view))


async def test_outdated_index_answers_until_all_is_indexed_again(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        [name] = await made.uploads.upload([Upload(b"", "up.py", b"tiger = 1\n")])
        await complete(made)
    age(tmp_path / "e")
    workers = InlineWorkers()
    workers.gate.clear()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)
        assert await made.uploads.find_missing([name]) == ([], [])
        assert versions(made.store) == {0}
        workers.gate.set()
        await complete(made)
        assert sorted(workers.prepared) == ["a.py", "up.py"]
        assert 0 not in versions(made.store)
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)


async def test_outdated_index_without_marks_answers_until_it_has_them(
    tmp_path: Path, root: Path
) -> None:
    """Its documents lack a field; nothing is thrown away, no upload is lost."""
    async with engine(tmp_path / "e", root) as made:
        [name] = await made.uploads.upload([Upload(b"", "up.py", b"class Tiger: 1\n")])
        await complete(made)
        with made.store.reading() as db:
            ids = dict(db.execute("SELECT path, id FROM blob"))
    shutil.rmtree(tmp_path / "e" / "index")
    texts = {ids["a.py"]: ["def lion pass"], ids["up.py"]: ["class tiger"]}
    write_old_index(tmp_path / "e" / "index", texts)
    age(tmp_path / "e")
    workers = InlineWorkers()
    workers.gate.clear()
    everything = View("", frozenset(range(99)), 0)
    async with engine(tmp_path / "e", root, workers=workers) as made:
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)
        assert await made.uploads.find_missing([name]) == ([], [])
        assert made.store.index.find_marked({":t:Tiger": 1}, everything) == []
        workers.gate.set()
        await complete(made)
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)
        [hit] = made.store.index.find_marked({":t:Tiger": 1}, everything)
        assert hit.blob_id == ids["up.py"]
    assert not (tmp_path / "e" / "index.corrupt").exists()


async def test_outdated_index_is_continued_by_the_next_start(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await made.uploads.upload([Upload(b"", "up.py", b"tiger = 1\n")])
        await complete(made)
    age(tmp_path / "e")
    with closing(sqlite3.connect(tmp_path / "e" / "data.db")) as db, db:
        db.execute(
            f"UPDATE blob SET index_version = {INDEX_VERSION} WHERE path = 'up.py'"
        )
    for expected in (["a.py"], [], []):
        workers = InlineWorkers()
        async with engine(tmp_path / "e", root, workers=workers) as made:
            await complete(made)
            assert workers.prepared == expected
    with closing(sqlite3.connect(tmp_path / "e" / "data.db")) as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'index_version'")
        assert row.fetchone() == (INDEX_VERSION,)


async def test_outdated_index_stays_without_room_for_a_new_one(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
    age(tmp_path / "e")
    defaults = Store.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "spare", 2**60)
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        assert workers.prepared == []
        assert finds(made, "lion") == 1
