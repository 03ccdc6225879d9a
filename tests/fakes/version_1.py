"""A data folder of version 1, as byok 0.1 left it on users' disks.

Everything in it is written here by hand, not by the code of today: the tables come from
`version_1.sql`, and the packed columns have the form of that version.
"""

import sqlite3
import zlib
from array import array
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random

from byok.search.index.parse.prepare import prepare
from byok.search.index.store.batches import INDEX_VERSION
from byok.search.index.store.chunk_index import LexicalIndex, View
from byok.search.index.store.tantivy_index import TantivyIndex

SQL = Path(__file__).parents[1] / "search" / "index" / "store" / "version_1.sql"
QUESTIONS = ("word1", "word2", "word3", "word40 word41", "word7 word50 word93")
CHECKPOINT = "byok-0123456789"
CRASHER = bytes(range(32))
BARE_NAME = bytes(range(1, 33))
ALIAS = bytes(range(2, 34))
_DAY = 20_000


@dataclass
class Version1:
    """What the folder holds; the first half of the uploads is in the checkpoint."""

    uploads: dict[bytes, tuple[str, bytes]] = field(default_factory=dict)
    members: set[bytes] = field(default_factory=set)
    alias_of: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)


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
        for number in range(count):
            _add_upload(db, index, made, f"src/f{number}.py", _text(number))
        for number in range(count, count + 10):
            _add_file(db, index, made, f"w{number}.py", _text(number))
        _add_others(db, made)
        if bulk:
            _add_content(db, _blob(db, "bulk.bin", b"bulk")[0], Random(1), bulk)
        db.execute("COMMIT")
    index.commit()
    made.found = {q: _search(folder, index, q) for q in QUESTIONS}
    index.close()
    return made


def _search(folder: Path, index: LexicalIndex, question: str) -> list[str]:
    with closing(sqlite3.connect(folder / "data.db")) as db:
        return search(db, index, question)


def search(db: sqlite3.Connection, index: LexicalIndex, question: str) -> list[str]:
    """Return the paths that match some words, best first."""
    paths = dict(db.execute("SELECT id, path FROM blob").fetchall())
    view = View("all", frozenset(paths), index.chunks)
    hits = index.search(dict.fromkeys(question.split(), 1.0), view)
    ranked = sorted(hits, key=lambda hit: (-hit.score, hit.blob_id, hit.ordinal))
    return [f"{paths[hit.blob_id]}:{hit.ordinal}" for hit in ranked]


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


def _add_upload(
    db: sqlite3.Connection,
    index: LexicalIndex,
    made: Version1,
    path: str,
    content: bytes,
) -> None:
    blob_id, name = _blob(db, path, content)
    packed = zlib.compress(content, 1)
    db.execute("INSERT INTO content VALUES(?, ?, ?)", (blob_id, packed, len(packed)))
    index.add(blob_id, prepare(path, content, plain=True))
    made.uploads[name] = path, content


def _add_file(
    db: sqlite3.Connection,
    index: LexicalIndex,
    made: Version1,
    path: str,
    content: bytes,
) -> None:
    blob_id, name = _blob(db, path, content)
    db.execute("INSERT OR IGNORE INTO workspace(id, root, kept) VALUES(1, '/w', 1)")
    db.execute("INSERT INTO file VALUES(1, ?, 5, 6, 7, 8, ?, NULL)", (path, blob_id))
    index.add(blob_id, prepare(path, content, plain=True))
    made.files[path] = name


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


def _add_content(db: sqlite3.Connection, blob_id: int, rng: Random, size: int) -> None:
    db.execute(
        "INSERT INTO content VALUES(?, ?, ?)", (blob_id, rng.randbytes(size), size)
    )
