"""The lexical index, by tantivy: documents, fields, files with checksums.

One index serves every workspace and every client's set of blobs. An index for each
would hold shared files several times, and each checkpoint would need one. Statistics of
words over everything cost no quality (measured: +0.012 nDCG@10, within the noise).

A question is about a view, a set of blobs. Two ways of filtering, both exact:
- A view of at least half of all chunks: search everything, drop hits outside. 3-4 ms
  at 400,000 chunks, and fast because most hits survive. If too few do, the second way.
- A smaller view: a set of ids as part of the query. To build that set takes 6-10 ms for
  50,000 ids, with the interpreter locked, so the last ones are kept by the view's key.
Over-fetching alone took 79 ms at worst, a query of 10,000 terms 47 ms, and a field that
names views must be written again whenever a view changes.

What was learned the hard way:
- Integer fields are signed. Deleting by an integer term finds nothing in an unsigned
  field, and no error says so: old chunks would be found for ever.
- Ids are read from fast fields, in a fifteenth of the time of stored documents.
- A commit that is killed leaves files whose names the next commit wants, so leftovers
  are removed as soon as the writer's lock is held (`remove_leftovers`).
- tantivy checks no checksum and panics on some damage. Checksums are compared when the
  index is opened; a damaged one is set aside, and filled again from the database.
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

# The fields of the documents in the index by tantivy, and those that came later.
#
# An index whose fields differ cannot be opened. But a field may be appended to the list
# in `meta.json`: documents without it stay as they are, are found as before, and are
# merged with those that have it (tests hold tantivy to this). So an update of byok
# keeps the index, which answers while its documents are replaced one by one.
#
# Such a field must have no norms, which only text has: a merge would miss them.


# Weights of the text fields, measured together with the ranking
# (docs/reference/retrieval.md).
TEXT_FIELDS = (("body", 1.0), ("sym", 0.3), ("path", 0.5))
MARKS = "marks"  # since index version 3
_FIRST_FIELDS = ["blob_id", "ordinal", *(name for name, _ in TEXT_FIELDS)]
_MARKS_FIELD = {
    "name": MARKS,
    "type": "bytes",
    "options": {"indexed": True, "fieldnorms": False, "fast": False, "stored": False},
}


def make_schema() -> tantivy.Schema:
    """Return the fields that documents have now."""
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
    """Return a query for any of some weighted terms, in every field of text."""
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
    """Tell whether the index in a folder has the first fields only."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [field["name"] for field in meta["schema"]] == _FIRST_FIELDS
    except (OSError, ValueError, KeyError, TypeError):
        return False  # there is none, or opening it says what it is


def append_fields(folder: Path) -> None:
    """Append the missing fields; the caller holds the writer's lock.

    Raises:
        ValueError: the file could not be written, and stays as it was.
    """
    if not lacks_fields(folder):
        return
    place = folder / "meta.json"
    try:
        meta = orjson.loads(place.read_bytes())
        meta["schema"].append(_MARKS_FIELD)
        write_private(place, orjson.dumps(meta).decode())
    except OSError as error:
        raise ValueError(f"meta.json was not written: {error}") from error


# The files of a tantivy index: checksums, and leftovers of broken commits.
#
# Each ends with a checksum. tantivy checks it only on request, which its Python binding
# does not offer; a damaged file would give wrong hits, or a panic, when it is first
# read. Layout: body, a footer in JSON with the CRC-32 of the body, its length, a magic
# number.
#
# Only files with a name of tantivy's form are ever removed or moved, so a folder that
# was named or linked by mistake keeps its files.


_log = logging.getLogger(__name__)
_FILES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_PART = re.compile(
    rf"[0-9a-f]{{32}}\.({'|'.join(_FILES)}|[0-9]+\.del)|\.tmp[0-9A-Za-z]{{6}}"
)
_FIXED = ("meta.json", ".managed.json", ".tantivy-meta.lock", ".tantivy-writer.lock")
_AT_ONCE = 2**20
_TRAILER = 8


def find_damaged(folder: Path) -> str:
    """Return the name of the first damaged file of an index, "" if none."""
    names = _files_of_commit(folder)
    if names is None:
        return "meta.json"
    return next((name for name in names if not _is_whole(folder / name)), "")


def check_folder(folder: Path) -> None:
    """Refuse a folder that may not be byok's own; a missing one is accepted.

    Raises:
        ConfigError: it is a link, a mount, not a folder, or holds other files and no
            index.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or folder.is_mount():
        raise _refusal(
            folder, "is a link or a disk of its own", "Put a plain folder in its place"
        )
    if not folder.is_dir():
        raise _refusal(folder, "is no folder", "Move it away")
    foreign = sorted(path.name for path in folder.iterdir() if not _is_own(path))
    if foreign and _files_of_commit(folder) is None:
        raise _refusal(
            folder, f"holds files that are not byok's ({foreign[0]!r})", "Move it away"
        )


def _refusal(folder: Path, why: str, cure: str) -> ConfigError:
    return ConfigError(
        f"{folder} {why}; byok keeps its index there and has left it as it is.",
        hint=f"{cure}, or let BYOK_HOME name a folder of byok's own.",
        status=422,
    )


def _is_own(path: Path) -> bool:
    """Tell whether a file bears a name that tantivy gives."""
    named = path.name in _FIXED or _PART.fullmatch(path.name)
    return bool(named) and path.is_file() and not path.is_symlink()


def own_files(folder: Path) -> Iterator[Path]:
    """Give the files of an index; others may lie beside them."""
    if folder.is_dir():
        yield from [path for path in folder.iterdir() if _is_own(path)]


def size_of(folder: Path) -> int:
    """Return how many bytes the files of an index have; some may go meanwhile."""
    size = 0
    for path in own_files(folder):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def remove_leftovers(folder: Path) -> None:
    """Remove the files of an unfinished commit; the caller holds the writer's lock.

    After a kill tantivy uses the numbers in names of `.del` files again, and cannot
    write a file that exists: every later commit would fail.
    """
    names = _files_of_commit(folder)
    if names is None:
        return
    for path in own_files(folder):
        if path.name not in (*_FIXED, *names):
            try:
                path.unlink()
            except OSError as error:  # Windows, where a search has it open
                _log.info("%s is left over: %s", path, error)


def move_files(folder: Path, to: Path) -> None:
    """Move the files of an index, in place of those that lie there."""
    check_folder(to)
    for path in own_files(to):
        path.unlink()
    to.mkdir(mode=0o700, exist_ok=True)
    for path in own_files(folder):
        path.rename(to / path.name)


def _files_of_commit(folder: Path) -> list[str] | None:
    """Return the files that the last commit names, None if that cannot be read."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [name for segment in meta["segments"] for name in _names(segment)]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _names(segment: dict[str, object]) -> list[str]:
    stem = str(segment["segment_id"]).replace("-", "")
    names = [f"{stem}.{end}" for end in _FILES]
    deletes = segment["deletes"]
    if isinstance(deletes, dict):
        names.append(f"{stem}.{deletes['opstamp']}.del")
    return names


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(-_TRAILER, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(size - length)
            wanted = orjson.loads(file.read(length))["crc"]
            file.seek(0)
            left, crc = size - length, 0
            while left > 0 and (some := file.read(min(left, _AT_ONCE))):
                left -= len(some)
                crc = zlib.crc32(some, crc)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(crc == wanted)


_WRITER_BYTES = 30_000_000
_LOCK_PAUSES = (0.02, 0.05, 0.1, 0.2)
# With this share of all chunks in view, most of so many hits survive a filter.
_LARGE_SHARE = 0.5
_WIDE = 3200
_VIEWS_KEPT = 8


class TantivyIndex:
    """The lexical index; adding and removing belong to one thread, searching to any."""

    def __init__(self, folder: Path) -> None:
        """Open or create the index; a damaged one is moved aside.

        `was_new` says that it starts empty, so everything must be indexed again.

        Raises:
            IndexInUse: another process writes to it.
            ConfigError: the folder is not byok's own.
            DiskFull, IndexLacksMemory: the index stays as it is.
        """
        check_folder(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._schema = make_schema()
        self._filters = BoundedMap[str, Query](_VIEWS_KEPT)
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
        """Open for writing: only the holder of the lock may call an index damaged."""
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
        """How many chunks can be found."""
        return self._searcher.num_docs

    @property
    def is_damaged(self) -> bool:
        """Whether its files are damaged.

        A merge that ends meanwhile removes some, so they are checked twice.
        """
        return all(find_damaged(self._folder) for _ in range(2))

    @property
    def bytes(self) -> int:
        """How much of the disk it takes."""
        return size_of(self._folder)

    def add(self, blob_id: int, prepared: Prepared) -> None:
        """Add the chunks of a blob; they are found after `commit`."""
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
        """Remove the chunks of a blob that were added before."""
        with self._writing() as writer:
            writer.delete_documents_by_term("blob_id", blob_id)

    def commit(self) -> None:
        """Make what was added and removed durable and visible."""
        with self._writing() as writer:
            writer.commit()
        with translate_errors():
            self._index.reload()
            self._searcher = self._index.searcher()

    def clear(self) -> None:
        """Remove everything, also what is not committed; replace a damaged index."""
        try:
            with self._writing() as writer:
                writer.rollback()  # `delete_all_documents` leaves those out
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
        """Return the best chunks of the view, best first; `terms` have weights.

        A view of most chunks is filtered after the search, a small one within it: both
        return the exact best ones, in 3-6 ms at 400,000 chunks.
        """
        if not terms or not view.ids:
            return []
        with translate_errors():
            return self._search(words_query(self._schema, terms), view, limit)

    def share_of(self, term: str) -> float:
        """Return which share of all chunks has a term, removed ones included."""
        with translate_errors():
            count: int = self._searcher.doc_freq(TEXT_FIELDS[0][0], term)
        return count / max(1, self.chunks)

    def find_marked(
        self, marks: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return chunks of the view that bear one of the marks, best first.

        The score of a chunk is the highest weight among its marks.
        """
        if not marks or not view.ids:
            return []
        with translate_errors():
            return self._search(marks_query(self._schema, marks), view, limit)

    def _search(self, query: Query, view: View, limit: int) -> list[ChunkScore]:
        share = view.chunks / max(1, self.chunks)
        if share >= _LARGE_SHARE:
            # The whole index needs hardly more than the limit, half of it much more.
            count = limit + int((_WIDE - limit) * (1 - share) / (1 - _LARGE_SHARE))
            kept, whole = self._run(query, max(count, 2 * limit), view.ids, limit)
            if whole or len(kept) == limit:
                return kept
        both = [(Occur.Must, query), (Occur.Must, self._filter(view))]
        return self._run(Query.boolean_query(both), limit, view.ids, limit)[0]

    def _run(
        self, query: Query, count: int, ids: frozenset[int], limit: int
    ) -> tuple[list[ChunkScore], bool]:
        """Return up to `limit` hits in view of the best `count`.

        And whether nothing more can be had: there were fewer than `count`.
        """
        searcher = self._searcher
        hits = searcher.search(query, count, count=False).hits
        where = [address for _, address in hits]
        if not where:
            return [], True
        blobs = searcher.fast_field_values("blob_id", where)
        in_view = (place for place, blob in enumerate(blobs) if blob in ids)
        kept = list(islice(in_view, limit))
        ordinals = searcher.fast_field_values("ordinal", [where[i] for i in kept])
        found = [
            ChunkScore(int(blobs[place] or 0), int(ordinal or 0), float(hits[place][0]))
            for place, ordinal in zip(kept, ordinals, strict=True)
        ]
        return found, len(hits) < count

    def _filter(self, view: View) -> Query:
        """Building this costs milliseconds for large views, so the last are kept."""
        found = self._filters.get(view.key)
        if found is None:
            members = Query.term_set_query(self._schema, "blob_id", list(view.ids))
            found = self._filters[view.key] = Query.const_score_query(members, 0.0)
        return found

    def counts(self) -> Counter[int]:
        """Return how many chunks each blob has in the index."""
        searcher = self._searcher
        everything = max(1, searcher.num_docs)
        with translate_errors():
            hits = searcher.search(Query.all_query(), everything, count=False).hits
            where = [address for _, address in hits]
            found = searcher.fast_field_values("blob_id", where) if where else ()
        return Counter(int(blob or 0) for blob in found)

    def close(self) -> None:
        """Release the writer and its lock; what was not committed is lost."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            with translate_errors():
                writer.wait_merging_threads()
        except IndexFailed as error:  # so it had failed before
            _log.warning("%s", error)


def _set_aside(folder: Path, error: Exception) -> None:
    """Move a damaged index aside, in place of an older one."""
    move_files(folder, folder.with_name(f"{folder.name}.corrupt"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _log.error("the index could not be opened, so it is rebuilt: %s", error)
