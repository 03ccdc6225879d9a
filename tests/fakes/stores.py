"""Stores, uploads and outcomes, what must always hold, and indexes that are damaged."""

import asyncio
import random
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path

import tantivy

from byok.core.code_query import Upload
from byok.search.index.contents import Contents
from byok.search.index.files.ignore import Rules
from byok.search.index.indexer import Indexer
from byok.search.index.parse.prepare import prepare
from byok.search.index.store import blobs
from byok.search.index.store.batches import Batches
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.index.store.schema import INDEX, INDEXED, unpack_spans
from byok.search.index.store.store import Store
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.search.index.types import (
    Document,
    FileFacts,
    IndexTask,
    ParseJob,
    ParseOutcome,
    Prepared,
    Span,
    UploadTask,
    WorkspaceTask,
    blob_name,
)
from byok.search.index.uploads import Uploads
from byok.search.index.workspace.workspace import Workspace
from byok.storage.database import Database
from tests.fakes.patience import PATIENCE

FACTS = FileFacts(1, 2, 3, 4)
PLENTY = 2**40


def upload(path: str, content: str, name: bytes | None = None) -> Upload:
    """Return an upload under its right name, or another."""
    data = content.encode()
    return Upload(blob_name(path, data) if name is None else name, path, data)


def words(path: str, *chunks: str) -> Prepared:
    """Return a file version whose chunks have these words, one line each."""
    name = blob_name(path, "\n".join(chunks).encode())
    spans = tuple(Span(n, n, len(chunk)) for n, chunk in enumerate(chunks))
    documents = tuple(Document(chunk, "") for chunk in chunks)
    return Prepared(name, sum(map(len, chunks)), None, spans, documents, path)


def of_file(
    path: str, prepared: Prepared | None, workspace_id: int = 1
) -> tuple[IndexTask, ParseOutcome]:
    """Return a file of a workspace, and what workers say of it."""
    task = WorkspaceTask(workspace_id, path)
    return task, ParseOutcome(0, prepared, facts=FACTS)


def of_upload(
    blob_id: int, path: str, prepared: Prepared | None
) -> tuple[IndexTask, ParseOutcome]:
    """Return an upload, and what workers say of it."""
    return UploadTask(blob_id, path), ParseOutcome(0, prepared)


def view(*ids: int, chunks: int = 0, key: str = "") -> View:
    """Return the view of some blobs."""
    return View(key or str(ids), frozenset(ids), chunks)


def ids_of(hits: list[ChunkScore]) -> list[int]:
    """Return the blobs of hits, in their order."""
    return [hit.blob_id for hit in hits]


class PlainWorkers:
    """Prepares in this process, without a parser."""

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        for job in jobs:
            assert job.content is not None
            yield ParseOutcome(job.key, prepare(job.path, job.content, plain=True))

    def close(self) -> None:
        pass


def open_store(folder: Path) -> Store:
    return Store(folder / "data.db", folder / "index")


class Opened:
    """Database, index and batches of a folder, without threads."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.index = TantivyIndex(folder / "index")
        self.database = Database(folder / "data.db", INDEX)
        self.batches = Batches(self.database, self.index)
        self.batches.recover()

    def abandon(self) -> None:
        """Let go as a killed process does: nothing is finished."""
        self.index.close()
        self.database.connection.close()

    def close(self) -> None:
        self.batches.flush()
        self.index.close()
        self.database.close()

    def check(self) -> None:
        check(self.database, self.index)


def check(database: Database, index: TantivyIndex) -> None:
    """Each chunk of each indexed blob is in the index once, and nothing else is."""
    rows = database.rows("SELECT id, spans FROM blob WHERE state = ?", INDEXED)
    due = Counter({blob_id: len(unpack_spans(spans)) for blob_id, spans in rows})
    assert index.counts() == +due
    assert database.one("PRAGMA quick_check") == "ok"


@asynccontextmanager
async def uploading(
    folder: Path,
    *,
    roots: dict[int, Path] | None = None,
    store_bytes: int = PLENTY,
    free_bytes: int = 0,
    workers: type = PlainWorkers,
    patience: float = PATIENCE,
) -> AsyncIterator[tuple[Uploads, Store]]:
    """Run uploads with everything below them; what is waiting is indexed at the end."""
    store = open_store(folder)
    loop = asyncio.get_running_loop()
    uploads: Uploads

    def flushed() -> None:
        loop.call_soon_threadsafe(uploads.wake_waiting)

    rules = Rules(lambda path: None)
    spaces = {i: Workspace(i, root, rules) for i, root in (roots or {}).items()}
    contents = Contents(store, spaces)
    indexer = Indexer(
        lambda size: workers(),
        store,
        contents.content_by_id,
        first_pause=0.05,
        on_flush=flushed,
    )
    uploads = Uploads(
        store,
        indexer,
        contents,
        store_bytes=store_bytes,
        free_bytes=free_bytes,
        patience=patience,
    )
    uploads.restart()
    try:
        yield uploads, store
    finally:
        await asyncio.to_thread(indexer.close)
        await asyncio.to_thread(store.close)


A1, A2 = words("a.py", "one alpha", "beta"), words("a.py", "two alpha")

B1 = words("b.py", "one alpha", "gamma")


def put_file(opened: Opened, prepared: Prepared, workspace: int = 1) -> int:
    """Put one file version and return the id of its blob."""
    (written,) = opened.batches.put([of_file(prepared.path_terms, prepared, workspace)])
    assert written.blob_id is not None
    return written.blob_id


def put_upload(opened: Opened, path: str, content: str) -> int:
    """Store an upload and put its outcome; its chunks are its lines."""
    with opened.database.writing() as db:
        _, fresh = blobs.store(db, [upload(path, content)], {}, 7)
    (blob_id,) = fresh
    prepared = words(path, *content.splitlines())
    opened.batches.put([of_upload(blob_id, path, prepared)])
    return blob_id


def blob_state(opened: Opened, blob_id: int) -> object:
    return opened.database.one("SELECT state FROM blob WHERE id = ?", blob_id)


class FullWriter:
    """A writer of tantivy on a full disk; it fails at `commit` or at once."""

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once

    def add_document(self, row: object) -> None:
        if self.at_once:
            self.commit()

    def delete_documents_by_term(self, field: str, value: int) -> None:
        pass

    def wait_merging_threads(self) -> None:
        pass

    def commit(self) -> None:
        raise ValueError("An IO error occurred: 'No space left on device'")


def write_old_index(folder: Path, texts: Mapping[int, Sequence[str]]) -> None:
    """Write the chunks of blobs: several segments, some of them with deletions."""
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("blob_id", indexed=True, fast=True)
    builder.add_integer_field("ordinal", fast=True)
    for name in ("body", "sym", "path"):
        builder.add_text_field(
            name, stored=False, tokenizer_name="whitespace", index_option="freq"
        )
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(30_000_000, 1)
    for count, (blob_id, chunks) in enumerate(texts.items(), 1):
        for ordinal, text in enumerate(chunks):
            row = tantivy.Document()
            row.add_integer("blob_id", blob_id)
            row.add_integer("ordinal", ordinal)
            row.add_text("body", text)
            row.add_text("sym", f"s{blob_id}")
            row.add_text("path", "a")
            writer.add_document(row)
        if count % 20 == 0:
            writer.commit()
    writer.commit()
    writer.delete_documents_by_term("blob_id", 10**6)
    writer.commit()
    writer.wait_merging_threads()


def make_index(folder: Path) -> Path:
    """Make an index of two segments, one with deletions."""
    index = TantivyIndex(folder)
    for blob_id in range(1, 60):
        chunks = [f"alpha w{blob_id} v{n}" for n in range(4)]
        index.add(blob_id, words(f"f{blob_id}.py", *chunks))
        if blob_id == 40:
            index.commit()
    index.remove(7)
    index.commit()
    index.close()
    return folder


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return (
        content[:at] + bytes([content[at] ^ rng.randrange(1, 256)]) + content[at + 1 :]
    )


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    _flip,
    lambda content, rng: b"",
    lambda content, rng: content[: rng.randrange(len(content))],
    lambda content, rng: rng.randbytes(len(content)),
]


def harm(folder: Path, seed: int) -> Path:
    """Damage a file of an index, or remove it; returns which."""
    rng = random.Random(seed)
    files = sorted(f for f in folder.iterdir() if not f.name.startswith("."))
    file = rng.choice(files)
    kind = rng.randrange(len(DAMAGES) + 1)
    if kind == len(DAMAGES):
        file.unlink()
    else:
        replace(file, DAMAGES[kind](file.read_bytes(), rng))
    return file


def replace(file: Path, content: bytes) -> None:
    """Put other content into the file's place, as a new file.

    A thread of an index that was closed may still have the old one mapped: to shorten
    what is mapped ends the process.
    """
    beside = file.with_name(".new")
    beside.write_bytes(content)
    beside.replace(file)
