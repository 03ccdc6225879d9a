"""The lexical index, by tantivy: one index over the chunks of all blobs.

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
  are removed as soon as the writer's lock is held (`segments.py`).
- tantivy checks no checksum and panics on some damage. Checksums are compared when the
  index is opened; a damaged one is set aside, and filled again from the database.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from byok.bounded import BoundedMap
from byok.errors import DiskFull, IndexFailed, IndexLacksMemory
from byok.index.store import segments
from byok.index.store.chunk_index import CANDIDATES, ChunkScore, View
from byok.index.store.index_errors import translate_errors
from byok.index.store.index_fields import (
    MARKS,
    append_fields,
    lacks_fields,
    make_schema,
    marks_query,
    words_query,
)
from byok.index.types import Prepared

_log = logging.getLogger(__name__)
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
        segments.check_folder(folder)
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
                if name := segments.find_damaged(self._folder):
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
        segments.remove_leftovers(self._folder)
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
        return all(segments.find_damaged(self._folder) for _ in range(2))

    @property
    def bytes(self) -> int:
        """How much of the disk it takes."""
        return segments.size_of(self._folder)

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
    segments.move_files(folder, folder.with_name(f"{folder.name}.corrupt"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _log.error("the index could not be opened, so it is rebuilt: %s", error)
