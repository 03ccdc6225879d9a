"""A data folder of version 1, as byok 0.1 left it, and starts on it that are killed.

Everything in it is written here by hand, not by the code of today: the tables come from
`version_1.sql`, and the packed columns have the form of that version.

`python -m tests.fakes.version_1 EVERY` migrates it again and again, each time killed
a little later; each start is a fork of that process, which stays without threads.
"""

import os
import pickle
import shutil
import signal
import sqlite3
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType

from byok.search.index.parse.prepare import prepare
from byok.search.index.store.batches import INDEX_VERSION
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.checkpoints import members_of
from byok.search.index.store.store import Store
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.storage import database, kind
from tests.fakes.stores import check, open_store

SQL = Path(__file__).parents[1] / "search" / "index" / "store" / "version_1.sql"
CHECKPOINT = "byok-0123456789"
CRASHER = bytes(range(32))
BARE_NAME = bytes(range(1, 33))
ALIAS = bytes(range(2, 34))
_DAY = 20_000


@dataclass
class Version1:
    """What the folder holds; the first half of the uploads is in the checkpoint."""

    uploads: dict[bytes, bytes] = field(default_factory=dict)
    members: set[bytes] = field(default_factory=set)
    alias_of: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


def write_version_1(folder: Path, count: int = 40, bulk: int = 0) -> Version1:
    """Write database and index; `bulk` bytes of one upload make the database larger.

    The index is of today's version, so that the migration alone is tested.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Version1()
    index = TantivyIndex(folder / "index")
    with closing(sqlite3.connect(folder / "data.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SQL.read_text("utf-8"))
        db.execute("BEGIN")
        db.execute("INSERT INTO workspace(id, root, kept) VALUES(1, '/w', 1)")
        for number in range(count + 10):
            path, content = f"src/f{number}.py", _text(number)
            blob_id, name = _blob(db, path, content)
            index.add(blob_id, prepare(path, content, plain=True))
            if number < count:
                _add_content(db, blob_id, zlib.compress(content, 1))
                made.uploads[name] = content
            else:
                sql = "INSERT INTO file VALUES(1, ?, 5, 6, 7, 8, ?, NULL)"
                db.execute(sql, (path, blob_id))
                made.files[path] = name
        _add_others(db, made)
        if bulk:
            blob_id, _ = _blob(db, "bulk.bin", b"bulk")
            _add_content(db, blob_id, Random(1).randbytes(bulk))
        db.execute("COMMIT")
    index.commit()
    index.close()
    return made


def _text(number: int) -> bytes:
    rng = Random(number)
    lines = [f"word{rng.randrange(99)} = {n}" for n in range(rng.randrange(5, 60))]
    return "\n".join(lines).encode()


def _blob(db: sqlite3.Connection, path: str, content: bytes) -> tuple[int, bytes]:
    name = sha256(path.encode() + content).digest()
    spans = prepare(path, content, plain=True).spans
    packed = array("I", (number for span in spans for number in span)).tobytes()
    cursor = db.execute(
        "INSERT INTO blob(name, path, size, state, spans, used) VALUES(?,?,?,1,?,?)",
        (name, path, len(content), packed, _DAY),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid, name


def _add_others(db: sqlite3.Connection, made: Version1) -> None:
    """Add the rows that are neither uploads nor files."""
    made.members = set(list(made.uploads)[: len(made.uploads) // 2])
    made.alias_of = next(iter(made.uploads))
    ids = dict(db.execute("SELECT name, id FROM blob").fetchall())
    db.execute("INSERT INTO alias VALUES(?, ?)", (ALIAS, ids[made.alias_of]))
    db.execute(
        "INSERT INTO checkpoint VALUES(?, ?, ?)",
        (CHECKPOINT, _pack(ids[name] for name in made.members), _DAY),
    )
    db.execute(
        "INSERT INTO blob(name, path, size, state, used) VALUES(?, '', 0, 3, ?)",
        (BARE_NAME, _DAY),
    )
    db.execute("INSERT INTO killer VALUES(?)", (CRASHER,))
    db.execute("INSERT INTO meta VALUES('open', 0), ('index_version', ?)",
               (INDEX_VERSION,))  # fmt: skip


def _pack(ids: Iterable[int]) -> bytes:
    gaps = array("q", (b - a for a, b in pairwise([0, *sorted(ids)])))
    return zlib.compress(gaps.tobytes(), 1)


def _add_content(db: sqlite3.Connection, blob_id: int, packed: bytes) -> None:
    db.execute("INSERT INTO content VALUES(?, ?, ?)", (blob_id, packed, len(packed)))


_WATCHED = {m.__file__ for m in (database, kind)}


def _start(folder: Path, moment: int = 0) -> None:
    """Open the store as a start does; killed at the so-manieth call or return."""
    count = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if frame.f_code.co_filename in _WATCHED:
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    try:
        store = open_store(folder)
    finally:
        sys.setprofile(None)
    store.close()


def _run_apart(work: Callable[[], object]) -> int:
    """Run something in a fork; returns its exit code, negative for a signal."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _check_migrated(folder: Path, made: Version1) -> None:
    """Open the folder twice: all is there, and the copy only after the first time."""
    was_old = _version(folder) == 1
    store = open_store(folder)
    _check_all(store, made)
    copies = [*folder.glob("data.db.v*")]
    for copy in copies:
        _check_copy(copy, made)
    store.close()
    assert len([*folder.glob("data.db.v*")]) == was_old
    _start(folder)
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["data.db", "data.db.lock", "index"], left


def _check_copy(copy: Path, made: Version1) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
        assert db.execute("SELECT name FROM killer").fetchall() == [(CRASHER,)]
        for name, content in made.uploads.items():
            assert content_of(db, find_known(db, [name])[name].id) == content


def _check_all(store: Store, made: Version1) -> None:
    check(store.database, store.index)
    with store.reading() as db:
        found = find_known(db, [*made.uploads, ALIAS, BARE_NAME])
        for name, content in made.uploads.items():
            assert found[name].is_held
            assert content_of(db, found[name].id) == content
        assert found[ALIAS] == found[made.alias_of]
        assert not found[BARE_NAME].is_held
        names = dict(db.execute("SELECT id, name FROM blob").fetchall())
        members = members_of(db, CHECKPOINT) or set()
        assert {names[blob_id] for blob_id in members} == made.members
        files = db.execute("SELECT path, blob_id, size FROM file").fetchall()
        assert {path: names[blob_id] for path, blob_id, _ in files} == made.files
        assert {size for _, _, size in files} <= {5}
        assert db.execute("SELECT root FROM workspace").fetchall() == [("/w",)]
        assert db.execute("SELECT name FROM parser_crasher").fetchall() == [(CRASHER,)]


def _write_old(folder: Path, count: int) -> Version1:
    """Write the old folder in a process of its own, as that starts threads."""
    made = folder / "made"

    def write() -> None:
        made.write_bytes(pickle.dumps(write_version_1(folder / "old", count)))

    assert _run_apart(write) == 0
    found: Version1 = pickle.loads(made.read_bytes())
    return found


def _kill_at_each_moment(folder: Path, every: int) -> None:
    """Kill a start at its first moment, then at each EVERY-th one until none is left.

    Moments are before and after each call that the migrating modules make.
    """
    made = _write_old(folder, 12)
    moment = 1
    while True:
        place = folder / "new"
        shutil.copytree(folder / "old", place)
        code = _run_apart(partial(_start, place, moment))
        assert code in (0, -signal.SIGKILL), code
        assert _run_apart(partial(_check_migrated, place, made)) == 0, moment
        shutil.rmtree(place)
        if code == 0:
            assert moment > 1
            return
        moment += every


def _version(folder: Path) -> int:
    uri = f"file:{folder / 'data.db'}?mode=ro"  # so that it changes nothing
    with closing(sqlite3.connect(uri, uri=True)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


if __name__ == "__main__":
    with TemporaryDirectory() as own:
        _kill_at_each_moment(Path(own), int(sys.argv[1]))
