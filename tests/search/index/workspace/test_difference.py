"""What is on disk and what is known: files, folders, rules and links."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.search.index.files.reading import Unreadable
from byok.search.index.files.roots import rules_of
from byok.search.index.store.store import Store
from byok.search.index.types import MAX_BYTES, IndexOptions
from byok.search.index.workspace.sync import Difference, Disk
from byok.search.index.workspace.watch import Watcher
from byok.search.index.workspace.workspace import TooManyFiles, Workspace
from tests.fakes.engines import written

KNOWN = ("a.py", "src/b.py", "src/deep/c.py", "src-x.py", "src0.py")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path / "p", dict.fromkeys(KNOWN, "x"))


def _remember(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO workspace(id, root) VALUES(1, 'p')")
    sql = "INSERT INTO file VALUES(1, ?, 0, 0, 0, 0, NULL, 'binary')"
    db.executemany(sql, [(path,) for path in KNOWN])


@pytest.fixture
def disk(root: Path, tmp_path: Path) -> Iterator[Disk]:
    store = Store(tmp_path / "data.db", tmp_path / "index")
    store.change(_remember).result()
    space = Workspace(1, root, rules_of(root, IndexOptions()))
    yield Disk(space, store, Watcher(root, lambda path: True))
    store.close()


def told(found: Difference) -> tuple[set[str], set[str], set[str]]:
    return {t.path for t in found.changed}, set(found.gone), set(found.tops)


def test_files_are_read_folders_looked_into_and_the_rest_is_gone(
    disk: Disk, root: Path
) -> None:
    (root / "a.py").unlink()
    written(root, {"new/d.py": "x"})
    found = disk.look_at(["a.py", "src/b.py", "new", "new/d.py", "none"])
    assert told(found) == ({"src/b.py"}, {"a.py"}, {"new"})


def test_a_folder_that_is_gone_takes_all_that_was_below(disk: Disk, root: Path) -> None:
    (root / "src").rename(root.parent / "away")
    assert told(disk.look_at(["src"])) == (set(), {"src/b.py", "src/deep/c.py"}, set())


def test_what_is_behind_a_link_is_not_there(disk: Disk, root: Path) -> None:
    (root / "src").rename(root.parent / "away")
    (root / "src").symlink_to(root.parent / "away")
    assert told(disk.look_at(["src/b.py"])) == (set(), {"src/b.py"}, set())


def test_what_a_walk_leaves_out_is_not_read(disk: Disk, root: Path) -> None:
    written(root, {".gitignore": "*.log\nout/\n", "x.log": "", "out/d.py": ""})
    (root / "big.py").write_bytes(b"x" * (MAX_BYTES + 1))
    (root / "pipe.py").symlink_to("a.py")
    paths = ["x.log", "out", "out/d.py", "big.py", "pipe.py"]
    assert told(disk.look_at(paths)) == (set(), set(), set())


@pytest.mark.parametrize(
    ("path", "tops"), [(".gitignore", {""}), ("src/.gitignore", {"src"})]
)
def test_rules_that_change_are_a_look_at_their_folder(
    disk: Disk, path: str, tops: set[str]
) -> None:
    assert disk.look_at([path, "src/deep/c.py", "src/deep"]).tops == tops


def test_only_what_is_below_some_folders_is_compared(disk: Disk, root: Path) -> None:
    (root / "src" / "b.py").unlink()
    (root / "a.py").unlink()
    found = disk.compare(frozenset({"src"}), limit=9)
    assert told(found) == ({"src/deep/c.py"}, {"src/b.py"}, set())
    with pytest.raises(TooManyFiles):
        disk.compare(frozenset({""}), limit=1)


def test_rules_of_a_folder_are_asked_anew(disk: Disk, root: Path) -> None:
    written(root, {"src/.gitignore": "deep/\n"})
    assert disk.look_at(["src/deep/c.py"]).changed == []
    (root / "src" / ".gitignore").write_text("b.py\n")
    found = disk.compare(frozenset({"src"}), limit=9)
    assert {t.path for t in found.changed} == {"src/.gitignore", "src/deep/c.py"}


def test_a_root_that_is_gone_says_nothing_about_its_files(
    disk: Disk, root: Path
) -> None:
    root.rename(root.with_name("q"))
    with pytest.raises(Unreadable):
        disk.look_at(["a.py"])
