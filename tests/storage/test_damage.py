import logging
import os
from pathlib import Path

import pytest

from byok.storage.damage import is_plain, remove_set_aside, set_aside


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "a.db"


def fill(path: Path, *endings: str) -> None:
    path.parent.mkdir(exist_ok=True)
    for end in endings:
        path.with_name(path.name + end).write_text(f"content{end}")


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def test_all_files_of_a_database_get_the_same_new_name(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path, "", "-wal", "-shm", ".bak")
    set_aside(path, "it is malformed")
    assert names(path) == [
        "a.db.bak",
        "a.db.damaged-1",
        "a.db.damaged-1-shm",
        "a.db.damaged-1-wal",
    ]
    assert (path.parent / "a.db.damaged-1-wal").read_text() == "content-wal"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "it is malformed" in record.message
    assert "a.db.damaged-1" in record.message


def test_nothing_that_was_set_aside_before_is_replaced(path: Path) -> None:
    fill(path, "", ".damaged-1-wal")  # of it only the log is left
    set_aside(path, "it is malformed", limit=2)
    assert names(path) == ["a.db.damaged-1-wal", "a.db.damaged-2"]
    fill(path, "")
    with pytest.raises(FileExistsError, match="2 damaged ones"):
        set_aside(path, "it is malformed", limit=2)
    assert path.read_text() == "content"
    assert len(names(path)) == 3


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["link", "hanging link", "folder"])
def test_what_is_no_file_is_left_as_it_is(path: Path, end: str, kind: str) -> None:
    fill(path, *({"", "-wal", "-shm"} - {end}))
    target = path.parent.parent / "target"
    odd = path.with_name(path.name + end)
    if kind == "folder":
        odd.mkdir()
    else:
        odd.symlink_to(target)
    if kind == "link":
        target.write_text("mine")
    before = names(path)
    with pytest.raises(OSError, match="not a plain file"):
        set_aside(path, "it is malformed")
    assert names(path) == before
    assert not is_plain(odd)
    assert target.exists() == (kind == "link")


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_only_what_was_set_aside_is_removed(path: Path) -> None:
    target = path.parent.parent / "target"
    target.write_text("mine")
    kept = ["", "-wal", ".damaged-1.bak", ".damaged-10", ".damaged", ".damaged-3"]
    fill(path, *kept, ".damaged-1", ".damaged-1-wal", ".damaged-2-shm")
    path.with_name("a.db.damaged-2").symlink_to(target)
    path.with_name("a.db.damaged-2-wal").mkdir()
    remove_set_aside(path, limit=2)
    assert names(path) == sorted(
        [*(f"a.db{end}" for end in kept), "a.db.damaged-2", "a.db.damaged-2-wal"]
    )
    assert target.read_text() == "mine"
