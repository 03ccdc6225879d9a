"""Rows and documents stay in step, whatever comes in whatever order."""

from pathlib import Path

import pytest

from byok.core.errors import IndexFailed
from byok.search.index.store.schema import INDEXED, TO_INDEX, TO_REMOVE
from byok.search.index.types import (
    IndexTask,
    ParseOutcome,
    Prepared,
    SkipReason,
    UploadTask,
    WorkspaceTask,
)
from tests.fakes.stores import (
    A1,
    A2,
    B1,
    FACTS,
    FullWriter,
    Opened,
    blob_state,
    of_file,
    put_file,
    put_upload,
    words,
)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    opened = Opened(tmp_path)
    with opened.database.writing() as db:
        db.execute("INSERT INTO workspace(id, root) VALUES(1, 'x'), (2, 'y')")
    return opened


def test_batch_keeps_content_that_comes_again_before_its_removal(
    opened: Opened,
) -> None:
    blob_id = put_file(opened, A1)
    opened.batches.flush()
    opened.batches.drop_files(1, ["a.py"])
    assert blob_state(opened, blob_id) == TO_REMOVE
    assert put_file(opened, A1) == blob_id
    opened.batches.flush()
    assert blob_state(opened, blob_id) == INDEXED
    opened.check()


def failed(task: IndexTask, reason: SkipReason) -> tuple[IndexTask, ParseOutcome]:
    return task, ParseOutcome(1, None, reason)


def test_batch_records_why_a_file_cannot_be_indexed(opened: Opened) -> None:
    binary = Prepared(words("c.bin", "x").name, 9, SkipReason.BINARY)
    blob_id = put_upload(opened, "u.py", "one")
    opened.batches.put(
        [
            of_file("c.bin", binary),
            failed(WorkspaceTask(1, "gone.py"), SkipReason.NOT_ACCESSIBLE),
            failed(UploadTask(blob_id, "u.py"), SkipReason.UNSTABLE),
        ]
    )
    opened.batches.flush()
    assert opened.database.rows("SELECT path, state, reason FROM blob ORDER BY id") == [
        ("u.py", INDEXED, "unstable"),
        ("c.bin", INDEXED, "binary"),
    ]
    assert opened.database.rows(
        "SELECT path, size, reason FROM file ORDER BY path"
    ) == [
        ("c.bin", FACTS.size, None),
        ("gone.py", -1, "not-accessible"),
    ]
    opened.check()


def unchanged(path: str, known: bytes) -> tuple[IndexTask, ParseOutcome]:
    task = WorkspaceTask(1, path, known=known)
    return task, ParseOutcome(1, None, facts=FACTS)


def test_batch_leaves_an_unchanged_file_its_blob(opened: Opened) -> None:
    blob_id = put_file(opened, A1)
    (written,) = opened.batches.put([unchanged("a.py", A1.name)])
    assert written.blob_id == blob_id
    assert opened.database.one("SELECT size FROM file") == FACTS.size


def test_batch_looks_again_at_a_file_that_went_back_to_an_old_version(
    opened: Opened,
) -> None:
    """Two changes were queued: the second undid the first."""
    put_file(opened, A1)
    put_file(opened, A2)
    opened.batches.put([unchanged("a.py", A1.name)])
    assert opened.database.one("SELECT size FROM file") == -1
    opened.batches.drop_files(1, ["a.py"])
    opened.batches.put([unchanged("a.py", A1.name)])
    assert opened.database.one("SELECT size FROM file") == -1


@pytest.mark.case("F28")
@pytest.mark.parametrize("at_once", [False, True])
def test_batch_loses_nothing_when_the_index_fails(
    opened: Opened, at_once: bool
) -> None:
    before = put_file(opened, B1)
    opened.batches.flush()
    again = [of_file("a.py", A1), of_file("b.py", words("b.py", "new"))]
    opened.index._writer = FullWriter(at_once)  # type: ignore[assignment]
    with pytest.raises(IndexFailed):
        opened.batches.put(again)
        opened.batches.flush()
    assert opened.batches.lost
    opened.batches.flush()  # of somebody else
    assert opened.database.rows("SELECT 1 FROM blob WHERE state = ?", TO_INDEX)
    opened.check()
    opened.batches.put(again)
    opened.batches.flush()
    assert blob_state(opened, before) is None
    assert len(opened.index.counts()) == 2
    opened.check()


@pytest.mark.case("F28")
def test_batch_loses_nothing_when_the_database_fails(
    opened: Opened,
) -> None:
    pages = opened.database.one("PRAGMA page_count")
    opened.database.connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [of_file(f"{n}.py", words(f"{n}.py", "x" * 99)) for n in range(200)]
    with pytest.raises(Exception, match="full"):
        opened.batches.put(many)
    assert opened.database.one("SELECT count(*) FROM blob") == 0
    opened.database.connection.execute("PRAGMA max_page_count = 1000000")
    opened.batches.put(many)
    pages = opened.database.one("PRAGMA page_count")
    opened.database.connection.execute(
        "CREATE TEMP TRIGGER full BEFORE UPDATE ON blob BEGIN "
        "SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(Exception, match="full"):
        opened.batches.flush()  # after the documents were committed
    opened.database.connection.execute("DROP TRIGGER full")
    opened.batches.put(many)
    opened.batches.flush()
    assert opened.index.counts().total() == 200
    opened.check()
