"""Pages of keys, and the workspaces that have their texts."""

from pathlib import Path

import pytest

from byok.core.errors import NotReady
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.transfer import ListedKeys
from tests.fakes.vectors import SPACE, Rows, keys, probe, vectors

TEXTS = ["a", "b", "c", "d", "e"]


def test_pages_of_keys(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "data.db")
    ids = rows.add(*(f"{text}.py" for text in TEXTS))
    rows.run("INSERT INTO workspace(root) VALUES('/one'), ('/two')")
    for workspace, path, blob_id in ((1, "x", 0), (2, "x", 0), (2, "y", 2)):
        sql = "INSERT INTO file VALUES(?, ?, 1, 1, 1, 1, ?, NULL)"
        rows.run(sql, workspace, path, ids[blob_id])
    store = VectorStore(tmp_path / "vectors.db", rows.path)
    store.look(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    named = {i: [(0, key)] for i, key in zip(ids, keys(*TEXTS), strict=True)}
    store.list_chunks(space, named)
    store.put(space, keys(*TEXTS[:3]), vectors(TEXTS[:3]))
    listed = ListedKeys(store.path, rows.path)
    assert listed.roots() == {1: Path("/one"), 2: Path("/two")}
    page = listed.with_vector(space, 0, 2)
    assert [found.key for found in page] == keys("a", "b")
    assert [found.workspaces for found in page] == [(1, 2), ()]
    rest = listed.with_vector(space, page[-1].number, 2)
    assert [(found.key, found.workspaces) for found in rest] == [(*keys("c"), (2,))]
    assert [found.key for found in listed.without_vector(space, 0, 9)] == keys("d", "e")
    store.close()


def test_a_store_that_is_gone(tmp_path: Path) -> None:
    listed = ListedKeys(tmp_path / "none.db", tmp_path / "data.db")
    with pytest.raises(NotReady):
        listed.roots()
    assert not (tmp_path / "none.db").exists()
