"""After any break rows and documents agree again, and nothing that is held is lost."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from byok.search.index.parse.prepare import prepare
from byok.search.index.store import blobs, checkpoints
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.schema import INDEXED, NAMED, TO_INDEX, TO_REMOVE
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.search.index.types import blob_name
from tests.fakes.stores import (
    A1,
    A2,
    B1,
    Opened,
    blob_state,
    check,
    of_file,
    of_upload,
    put_file,
    put_upload,
    upload,
    words,
)


def start(folder: Path) -> Opened:
    opened = Opened(folder)
    with opened.database.writing() as db:
        db.execute("INSERT OR IGNORE INTO workspace(id, root) VALUES(1, 'x'), (2, 'y')")
    return opened


def unread(opened: Opened) -> list[object]:
    return [
        path for (path,) in opened.database.rows("SELECT path FROM file WHERE size < 0")
    ]


@pytest.mark.case("F25")
@pytest.mark.parametrize("committed", [False, True])
def test_recovery_repeats_what_was_written_but_not_noted(
    tmp_path: Path, committed: bool
) -> None:
    opened = start(tmp_path)
    file, held = put_file(opened, A1), put_upload(opened, "u.py", "one")
    if committed:
        opened.index.commit()
    opened.abandon()
    opened = start(tmp_path)
    assert blob_state(opened, file) is None
    assert unread(opened) == ["a.py"]
    assert blob_state(opened, held) == TO_INDEX
    assert opened.index.chunks == 0
    opened.check()


Harm = Callable[[Opened, int], None]


def _document_gone(opened: Opened, blob_id: int) -> None:
    opened.index.remove(blob_id)
    opened.index.commit()


def _document_twice(opened: Opened, blob_id: int) -> None:
    opened.index.add(blob_id, A2)
    opened.index.commit()


def _row_gone(opened: Opened, blob_id: int) -> None:
    with opened.database.writing() as db:
        db.execute("DELETE FROM blob WHERE id = ?", (blob_id,))


def _left_over(opened: Opened, blob_id: int) -> None:
    opened.index.add(4711, A2)
    opened.index.commit()


HARMS: list[Harm] = [_document_gone, _document_twice, _row_gone, _left_over]


@pytest.mark.case("F25")
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_recovery_mends_rows_and_documents_that_differ(
    tmp_path: Path, harm: Harm, clean: bool, held: bool
) -> None:
    """Also after an end that looked clean: a restored copy of one of the two."""
    opened = start(tmp_path)
    blob_id = put_upload(opened, "a.py", "x") if held else put_file(opened, A1)
    put_file(opened, B1)
    opened.batches.flush()
    harm(opened, blob_id)
    if clean:
        opened.close()
    else:
        opened.abandon()
    opened = start(tmp_path)
    opened.check()
    assert opened.index.counts().total() >= len(B1.spans)
    assert len(opened.database.rows("SELECT 1 FROM content")) == (
        held and harm is not _row_gone
    )


@pytest.mark.case("F35")
@pytest.mark.parametrize("again", [False, True])
def test_recovery_fills_a_new_index(tmp_path: Path, again: bool) -> None:
    opened = start(tmp_path)
    held = put_upload(opened, "u.py", "one")
    put_file(opened, A1)
    opened.close()
    (tmp_path / "index" / "meta.json").write_bytes(b"{}")
    if again:  # killed after the index was made anew, before the database was opened
        TantivyIndex(tmp_path / "index").close()
    opened = start(tmp_path)
    assert opened.index.chunks == 0
    assert blob_state(opened, held) == TO_INDEX
    assert unread(opened) == ["a.py"]
    opened.check()


PATHS = st.sampled_from(["a.py", "b.py", "c.py"])
TEXTS = st.sampled_from(["one", "two\nlines", "and\nthree\nlines", ""])
SPACES = st.sampled_from([1, 2])


class Life(RuleBasedStateMachine):
    """A store that is used, closed, killed and opened again.

    `held` are the blobs that were acknowledged, `sets` the checkpoints.
    """

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.opened = start(Path(self.folder.name))
        self.held: dict[bytes, bytes] = {}
        self.sets: dict[str, set[bytes]] = {}

    @rule(path=PATHS, text=TEXTS)
    def upload(self, path: str, text: str) -> None:
        data = upload(path, text)
        with self.opened.database.writing() as db:
            blobs.store(db, [data], {}, 7)
        self.held[data.name] = data.content

    @rule(path=PATHS, text=TEXTS, space=SPACES)
    def put_file(self, path: str, text: str, space: int) -> None:
        prepared = words(path, *text.splitlines())
        prepared = prepared.__class__(
            blob_name(path, text.encode()), len(text), None,
            prepared.spans, prepared.documents, path,
        )  # fmt: skip
        self.opened.batches.put([of_file(path, prepared, space)])

    @rule()
    def put_waiting_uploads(self) -> None:
        rows = self.opened.database.rows(
            "SELECT b.id, b.path FROM blob b JOIN content ON blob_id = b.id "
            "WHERE b.state = ?", TO_INDEX,
        )  # fmt: skip
        batch = []
        for blob_id, path in rows:
            content = content_of(self.opened.database.connection, blob_id)
            assert content is not None
            prepared = words(path, *content.decode().splitlines())
            batch.append(of_upload(blob_id, path, prepared))
        self.opened.batches.put(batch)

    @rule(path=PATHS, space=SPACES)
    def drop_file(self, path: str, space: int) -> None:
        self.opened.batches.drop_files(space, [path])

    @rule(number=st.integers(1, 12))
    def drop_blob(self, number: int) -> None:
        name = self.opened.database.one(
            "SELECT b.name FROM blob b JOIN content c ON c.blob_id = b.id "
            "WHERE b.id = ? AND b.state = ?", number, INDEXED,
        )  # fmt: skip
        if name is not None:  # as eviction does
            self.opened.batches.drop_blobs([number])
            assert isinstance(name, bytes)
            self.held.pop(name, None)

    @rule()
    def make_checkpoint(self) -> None:
        names = [n for (n,) in self.opened.database.rows("SELECT name FROM blob")]
        with self.opened.database.writing() as db:
            made = checkpoints.make(db, "", names, [], 7)
        assert made
        self.sets[made] = set(names)

    @rule()
    def flush(self) -> None:
        self.opened.batches.flush()
        self.opened.check()

    @rule(commit=st.booleans())
    def kill(self, commit: bool) -> None:
        if commit:
            self.opened.index.commit()
        self.opened.abandon()
        self.opened = start(Path(self.folder.name))
        self.opened.check()

    @rule()
    def close(self) -> None:
        self.opened.close()
        self.opened = start(Path(self.folder.name))
        self.opened.check()

    @rule()
    def forget_index(self) -> None:
        self.opened.batches.flush()
        self.opened.batches.forget_index()

    @rule(some=st.integers(0, 3))
    def index_again(self, some: int) -> None:
        """Begin to index everything anew, and get through a part of it."""
        for blob_id, path in self.opened.batches.check()[:some]:
            with self.opened.database.writing() as db:
                content = blobs.content_of(db, blob_id)
            if content is not None:
                prepared = prepare(path, content, plain=True)
                self.opened.batches.put([of_upload(blob_id, path, prepared)])

    @rule()
    def settle(self) -> None:
        """When all is done nothing is left to do."""
        self.put_waiting_uploads()
        self.opened.batches.flush()
        self.opened.check()
        states = self.opened.database.rows(
            "SELECT state FROM blob b WHERE state NOT IN (?, ?) "
            "AND NOT EXISTS(SELECT 1 FROM file f WHERE f.blob_id = b.id)",
            INDEXED, NAMED,
        )  # fmt: skip
        assert states == []

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "opened"):
            return
        db = self.opened.database.connection
        entries = find_known(db, self.held)
        for name, content in self.held.items():
            assert entries[name].is_held
            assert entries[name].state in (TO_INDEX, INDEXED)
            assert content_of(db, entries[name].id) == content
        all_names = dict(self.opened.database.rows("SELECT id, name FROM blob"))
        for checkpoint, names in self.sets.items():
            members = checkpoints.members_of(db, checkpoint)
            assert {all_names[blob_id] for blob_id in members or ()} == names
        orphans = self.opened.database.rows(
            "SELECT 1 FROM file f JOIN blob b ON b.id = f.blob_id WHERE b.state = ?",
            TO_REMOVE,
        )
        assert orphans == []

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.opened.close()
            check_folder(Path(self.folder.name))
            self.folder.cleanup()


def check_folder(folder: Path) -> None:
    opened = Opened(folder)
    check(opened.database, opened.index)
    opened.abandon()


TestLife = pytest.mark.slow(Life.TestCase)
TestLife.settings = settings(
    max_examples=12,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.case("F25")
def test_recovery_after_a_crash_compares_each_document(tmp_path: Path) -> None:
    """As many documents as rows say, but of another blob."""
    opened = start(tmp_path)
    blob_id = put_upload(opened, "u.py", "one")
    opened.batches.flush()
    opened.index.remove(blob_id)
    opened.index.add(4711, A2)
    opened.index.commit()
    opened.abandon()
    opened = start(tmp_path)
    assert (opened.index.chunks, blob_state(opened, blob_id)) == (0, TO_INDEX)
