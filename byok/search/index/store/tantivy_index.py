"""The lexical index, by tantivy: documents, fields, files with checksums.

One index serves every workspace and every client's set of blobs. An index for each
would hold shared files several times, and each checkpoint would need one. Statistics of
words over everything cost no quality (measured: +0.012 nDCG@10, within the noise).

A question is about a view, a set of blobs. There are two exact ways of filtering:
- A view of at least half of all chunks: search everything and drop hits outside. This
  takes 3-4 ms at 400,000 chunks, because most hits remain. If too few do, the second
  way is used.
- A smaller view: a set of ids as part of the query. Building that set takes 6-10 ms for
  50,000 ids, with the interpreter locked, so recent ones are cached by the view's key.
Over-fetching alone took 79 ms at worst, a query of 10,000 terms 47 ms, and a field that
names views would have to be rewritten whenever a view changes.

What experience taught:
- Integer fields must be signed. Deleting by an integer term finds nothing in an
  unsigned field, without an error: old chunks would be found for ever.
- Ids are read from fast fields, in a fifteenth of the time of stored documents.
- A killed commit leaves files with names that the next commit needs, so leftovers are
  removed as soon as the writer's lock is held (`remove_leftovers`).
- tantivy panics on some damage, and its Python binding cannot compare checksums. byok
  does so when the index is opened; a damaged index is set aside, and filled again from
  the database.
- Only files with a name of tantivy's form are removed or moved, so a folder that was
  named or linked by mistake keeps its files.
"""

import contextlib
import logging
import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import orjson
import tantivy
from tantivy import Occur, Query

from byok.core.bounded import BoundedMap
from byok.core.errors import ConfigError, DiskFull, IndexFailed, IndexLacksMemory
from byok.core.platform.paths import write_private
from byok.search.index.store.chunk_index import (
    CANDIDATES,
    ChunkScore,
    View,
    translate_errors,
)
from byok.search.index.types import Prepared

_log = logging.getLogger(__name__)
# Weights of the text fields, measured together with the ranking
# (docs/reference/retrieval.md).
TEXT_FIELDS = (("body", 1.0), ("sym", 0.3), ("path", 0.5))
MARKS = "marks"  # a field since index version 3
_FIRST_FIELDS = ["blob_id", "ordinal", *(name for name, _ in TEXT_FIELDS)]
_MARKS_FIELD = {
    "name": MARKS,
    "type": "bytes",
    "options": {"indexed": True, "fieldnorms": False, "fast": False, "stored": False},
}
_SEGMENT_ENDINGS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_SEGMENT_FILE = re.compile(
    rf"[0-9a-f]{{32}}\.({'|'.join(_SEGMENT_ENDINGS)}|[0-9]+\.del)|\.tmp[0-9A-Za-z]{{6}}"
)
_FIXED = ("meta.json", ".managed.json", ".tantivy-meta.lock", ".tantivy-writer.lock")
_READ_BYTES = 2**20
_TRAILER_BYTES = 8
_WRITER_BYTES = 30_000_000
_LOCK_PAUSES = (0.02, 0.05, 0.1, 0.2)
# A view with at least this share of all chunks is filtered after the search.
_LARGE_SHARE = 0.5
_MAX_HITS = 3200  # of such a search, at the lowest share
_MAX_FILTERS = 8


class TantivyIndex:
    """The lexical index; adding and removing belong to one thread, searching to any."""

    def __init__(self, folder: Path) -> None:
        """Open or create the index; a damaged one is set aside.

        With `was_new` it is empty, so everything must be indexed again.

        Raises:
            IndexInUse: another process writes to it.
            ConfigError: the folder is not byok's own.
            DiskFull, IndexLacksMemory: the index stays unchanged.
        """
        check_folder(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._schema = make_schema()
        self._filters = BoundedMap[str, Query](_MAX_FILTERS)
        self._writer: tantivy.IndexWriter | None = None
        self.was_new = not (folder / "meta.json").exists()
        try:
            self._open()
        except (DiskFull, IndexLacksMemory):
            raise
        except IndexFailed as error:
            _set_aside(folder, error)
            self.was_new = True
            self._open()

    def _open(self) -> None:
        """Open for writing; only the holder of the lock may call an index damaged."""
        with translate_errors():
            if lacks_fields(self._folder):
                self._index = tantivy.Index.open(str(self._folder))
                self._writer = self._new_writer()  # holds the lock
                try:
                    append_fields(self._folder)
                finally:
                    self.close()
            self._index = tantivy.Index(self._schema, path=str(self._folder))
            self._writer = self._new_writer()
            try:
                if name := find_damaged(self._folder):
                    raise IndexFailed(f"{name} is damaged")
                self._searcher = self._index.searcher()
            except BaseException:
                self.close()
                raise

    def _new_writer(self) -> tantivy.IndexWriter:
        """Open a writer; a process just forked may still hold the lock for a moment."""
        for pause in (*_LOCK_PAUSES, None):
            try:
                writer = self._index.writer(_WRITER_BYTES, 1)
                break
            except ValueError as error:
                if "LockBusy" not in str(error) or pause is None:
                    raise
            time.sleep(pause)
        remove_leftovers(self._folder)
        return writer

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """Lend the writer; after an error it is closed, and its work is lost."""
        with translate_errors():
            try:
                if self._writer is None:
                    self._writer = self._new_writer()
                yield self._writer
            except BaseException:
                self.close()
                raise

    @property
    def chunks(self) -> int:
        """The number of searchable chunks."""
        return self._searcher.num_docs

    @property
    def is_damaged(self) -> bool:
        """Whether its files are damaged.

        A merge that ends meanwhile removes some files, so they are checked twice.
        """
        return all(find_damaged(self._folder) for _ in range(2))

    @property
    def bytes(self) -> int:
        """The size of the index on disk."""
        size = 0
        for path in own_files(self._folder):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                size += path.stat().st_size
        return size

    def add(self, blob_id: int, prepared: Prepared) -> None:
        """Add the chunks of a blob; they are searchable after `commit`."""
        with self._writing() as writer:
            for ordinal, document in enumerate(prepared.documents):
                row = tantivy.Document()
                row.add_integer("blob_id", blob_id)
                row.add_integer("ordinal", ordinal)
                row.add_text("body", document.body)
                row.add_text("sym", document.symbols)
                row.add_text("path", prepared.path_terms)
                for mark in document.marks.split():
                    row.add_bytes(MARKS, mark.encode())
                writer.add_document(row)

    def remove(self, blob_id: int) -> None:
        """Remove the chunks of a blob."""
        with self._writing() as writer:
            writer.delete_documents_by_term("blob_id", blob_id)

    def commit(self) -> None:
        """Make all changes durable and visible to searches."""
        with self._writing() as writer:
            writer.commit()
        with translate_errors():
            self._index.reload()
            self._searcher = self._index.searcher()

    def clear(self) -> None:
        """Remove all documents, even uncommitted ones; replace a damaged index."""
        try:
            with self._writing() as writer:
                # `delete_all_documents` does not delete uncommitted ones.
                writer.rollback()
                writer.delete_all_documents()
            self.commit()
        except (DiskFull, IndexLacksMemory):
            raise
        except IndexFailed as error:
            self.close()
            _set_aside(self._folder, error)
            self._open()

    def search(
        self, terms: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the best chunks of a view, best first; `terms` have weights.

        The result is exact, and takes 3-6 ms at 400,000 chunks.
        """
        if not terms or not view.ids:
            return []
        with translate_errors():
            return self._search(words_query(self._schema, terms), view, limit)

    def share_of(self, term: str) -> float:
        """Return the share of all chunks that have a term; counts removed chunks."""
        with translate_errors():
            count: int = self._searcher.doc_freq(TEXT_FIELDS[0][0], term)
        return count / max(1, self.chunks)

    def find_marked(
        self, marks: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the chunks of a view that have one of the marks, best first.

        The score of a chunk is the highest weight among its marks.
        """
        if not marks or not view.ids:
            return []
        with translate_errors():
            return self._search(marks_query(self._schema, marks), view, limit)

    def _search(self, query: Query, view: View, limit: int) -> list[ChunkScore]:
        share = view.chunks / max(1, self.chunks)
        if share >= _LARGE_SHARE:
            # For the whole index hardly more than `limit` hits are needed, for a share
            # of one half much more.
            count = limit + int((_MAX_HITS - limit) * (1 - share) / (1 - _LARGE_SHARE))
            hits, is_complete = self._run(query, max(count, 2 * limit), view.ids, limit)
            if is_complete or len(hits) == limit:
                return hits
        members = self._filters.get(view.key)
        if members is None:  # it is slow to build
            ids = Query.term_set_query(self._schema, "blob_id", list(view.ids))
            members = self._filters[view.key] = Query.const_score_query(ids, 0.0)
        both = [(Occur.Must, query), (Occur.Must, members)]
        return self._run(Query.boolean_query(both), limit, view.ids, limit)[0]

    def _run(
        self, query: Query, count: int, ids: frozenset[int], limit: int
    ) -> tuple[list[ChunkScore], bool]:
        """Return up to `limit` hits of the view among the best `count`.

        Also return whether there are no more hits than these `count`.
        """
        searcher = self._searcher
        hits = searcher.search(query, count, count=False).hits
        addresses = [address for _, address in hits]
        if not addresses:
            return [], True
        blobs = searcher.fast_field_values("blob_id", addresses)
        in_view = (i for i, blob in enumerate(blobs) if blob in ids)
        positions = list(islice(in_view, limit))
        kept = [addresses[i] for i in positions]
        ordinals = searcher.fast_field_values("ordinal", kept)
        scores = [
            ChunkScore(int(blobs[i] or 0), int(ordinal or 0), float(hits[i][0]))
            for i, ordinal in zip(positions, ordinals, strict=True)
        ]
        return scores, len(hits) < count

    def counts(self) -> Counter[int]:
        """Count the chunks of each blob in the index."""
        searcher = self._searcher
        everything = max(1, searcher.num_docs)
        with translate_errors():
            hits = searcher.search(Query.all_query(), everything, count=False).hits
            addresses = [address for _, address in hits]
            ids = searcher.fast_field_values("blob_id", addresses) if addresses else ()
        return Counter(int(blob_id or 0) for blob_id in ids)

    def close(self) -> None:
        """Release the writer and its lock; uncommitted changes are lost."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            with translate_errors():
                writer.wait_merging_threads()
        except IndexFailed as error:  # which had failed before
            _log.warning("%s", error)


def _set_aside(folder: Path, error: Exception) -> None:
    """Set a damaged index aside, in place of an older one."""
    aside = folder.with_name(f"{folder.name}.corrupt")
    check_folder(aside)
    for path in own_files(aside):
        path.unlink()
    aside.mkdir(mode=0o700, exist_ok=True)
    for path in own_files(folder):
        path.rename(aside / path.name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _log.error("the index could not be opened, so it is rebuilt: %s", error)


def make_schema() -> tantivy.Schema:
    """Return the fields that new documents have."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("blob_id", indexed=True, fast=True)
    builder.add_integer_field("ordinal", fast=True)
    for name, _ in TEXT_FIELDS:
        builder.add_text_field(
            name, stored=False, tokenizer_name="whitespace", index_option="freq"
        )
    builder.add_bytes_field(MARKS, stored=False, indexed=True, fast=False)
    return builder.build()


def words_query(schema: tantivy.Schema, terms: Mapping[str, float]) -> Query:
    """Return a query for any of some weighted terms, in every text field."""
    return Query.boolean_query(
        [
            (
                Occur.Should,
                Query.boost_query(
                    Query.term_query(schema, field, term), weight * boost
                ),
            )
            for term, weight in terms.items()
            for field, boost in TEXT_FIELDS
        ]
    )


def marks_query(schema: tantivy.Schema, marks: Mapping[str, float]) -> Query:
    """Return a query for any of some marks; the highest weight is the score."""
    return Query.disjunction_max_query(
        [
            Query.const_score_query(
                Query.term_query(schema, MARKS, mark.encode()), weight
            )
            for mark, weight in marks.items()
        ]
    )


def lacks_fields(folder: Path) -> bool:
    """Tell whether the index in a folder has only the fields of the first version."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [field["name"] for field in meta["schema"]] == _FIRST_FIELDS
    except (OSError, ValueError, KeyError, TypeError):
        return False  # opening the index reports what is wrong


def append_fields(folder: Path) -> None:
    """Append the missing fields to `meta.json`; the caller holds the writer's lock.

    An index whose fields differ cannot be opened. But with an appended field, documents
    without it are found as before, and merged with those that have it (tests hold
    tantivy to this). So an update of byok keeps the index, which answers while its
    documents are replaced one by one. Such a field must not have norms, as text fields
    do: a merge would miss them.

    Raises:
        ValueError: the file could not be written, and stays unchanged.
    """
    if not lacks_fields(folder):
        return
    path = folder / "meta.json"
    try:
        meta = orjson.loads(path.read_bytes())
        meta["schema"].append(_MARKS_FIELD)
        write_private(path, orjson.dumps(meta).decode())
    except OSError as error:
        raise ValueError(f"meta.json was not written: {error}") from error


def find_damaged(folder: Path) -> str:
    """Return the name of the first damaged file of an index, "" if none."""
    names = _files_of_commit(folder)
    if names is None:
        return "meta.json"
    return next((name for name in names if not _is_whole(folder / name)), "")


def check_folder(folder: Path) -> None:
    """Check that a folder is missing or byok's own.

    Raises:
        ConfigError: it is a link, a mount, not a folder, or has other files and no
            index.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or folder.is_mount():
        raise _folder_error(
            folder, "is a link or a disk of its own", "Put a plain folder in its place"
        )
    if not folder.is_dir():
        raise _folder_error(folder, "is no folder", "Move it away")
    foreign = sorted(path.name for path in folder.iterdir() if not _is_index_file(path))
    if foreign and _files_of_commit(folder) is None:
        raise _folder_error(
            folder, f"holds files that are not byok's ({foreign[0]!r})", "Move it away"
        )


def _folder_error(folder: Path, problem: str, cure: str) -> ConfigError:
    return ConfigError(
        f"{folder} {problem}; byok keeps its index there and has left it as it is.",
        hint=f"{cure}, or let BYOK_HOME name a folder of byok's own.",
        status=422,
    )


def _is_index_file(path: Path) -> bool:
    """Tell whether a path is a file with a name of tantivy's form."""
    has_name = path.name in _FIXED or _SEGMENT_FILE.fullmatch(path.name)
    return bool(has_name) and path.is_file() and not path.is_symlink()


def own_files(folder: Path) -> Iterator[Path]:
    """Yield the files of an index, without other files in its folder."""
    if folder.is_dir():
        yield from [path for path in folder.iterdir() if _is_index_file(path)]


def remove_leftovers(folder: Path) -> None:
    """Remove the files of an unfinished commit; the caller holds the writer's lock.

    After a kill tantivy uses the numbers in names of `.del` files again, but cannot
    overwrite a file, so every later commit would fail.
    """
    names = _files_of_commit(folder)
    if names is None:
        return
    for path in own_files(folder):
        if path.name not in (*_FIXED, *names):
            try:
                path.unlink()
            except OSError as error:  # Windows, while a search has it open
                _log.info("%s is left over: %s", path, error)


def _files_of_commit(folder: Path) -> list[str] | None:
    """Return the files of the last commit, or None if it cannot be read."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [
            name for segment in meta["segments"] for name in _segment_files(segment)
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _segment_files(segment: dict[str, object]) -> list[str]:
    stem = str(segment["segment_id"]).replace("-", "")
    names = [f"{stem}.{end}" for end in _SEGMENT_ENDINGS]
    deletes = segment["deletes"]
    if isinstance(deletes, dict):
        names.append(f"{stem}.{deletes['opstamp']}.del")
    return names


def _is_whole(path: Path) -> bool:
    """Compare the checksum of a file.

    Its layout is: body, a footer in JSON with the CRC-32 of the body, the length of the
    footer, a magic number.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(-_TRAILER_BYTES, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(size - length)
            expected = orjson.loads(file.read(length))["crc"]
            file.seek(0)
            remaining, crc = size - length, 0
            while remaining > 0 and (part := file.read(min(remaining, _READ_BYTES))):
                remaining -= len(part)
                crc = zlib.crc32(part, crc)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(crc == expected)
