"""What blobs contain: chunks and paths for ranking, lines for answers.

The content of a workspace's file is read from disk until a client first asks about it.
From then on it is stored, too: the file may change while a checkpoint still means the
earlier version.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from byok.core.bounded import split_into_batches
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.files.secret_names import is_secret
from byok.search.index.files.text import lines_in
from byok.search.index.store import blobs
from byok.search.index.store.blobs import Known, find_known, names_of
from byok.search.index.store.schema import unpack_spans
from byok.search.index.store.store import Store
from byok.search.index.types import MAX_BYTES, SkipReason, Span, blob_name
from byok.search.index.workspace.workspace import Workspace
from byok.storage.database import select_in

_BATCH_BYTES = 8 * 2**20  # of contents that are stored in one transaction


class Entry(Struct):
    """A blob for ranking and answers; its chunks are unpacked on first use."""

    blob_id: int
    path: str
    packed: bytes
    _spans: list[Span] | None = None

    @property
    def spans(self) -> list[Span]:
        """The chunks, in order."""
        if self._spans is None:
            self._spans = unpack_spans(self.packed)
        return self._spans


class _Unchanged(NamedTuple):
    """A blob that is the present version of a file of a workspace."""

    blob_id: int
    content: bytes
    workspace: Workspace


class Contents(Struct, eq=False):
    """Reads blobs from the store, else from unchanged files of workspaces."""

    store: Store
    workspaces: Mapping[int, Workspace]
    allow_secret: tuple[str, ...] = ()

    def entries(self, blob_ids: Iterable[int]) -> dict[int, Entry]:
        """Return the paths and chunks of blobs; blocks for a millisecond or so."""
        with self.store.reading() as db:
            rows = select_in(
                db, "SELECT id, path, spans FROM blob WHERE id IN (?)", blob_ids
            )
            return {
                blob_id: Entry(blob_id, path, spans) for blob_id, path, spans in rows
            }

    def find_entries(self, names: Iterable[bytes]) -> dict[bytes, Known]:
        """Look up blob names, also those that clients computed differently."""
        with self.store.reading() as db:
            return find_known(db, names)

    def names_of(
        self, blob_ids: Iterable[int], requested: Iterable[bytes]
    ) -> dict[int, bytes]:
        """Return each blob's name as the client knows it.

        That is its name among those `requested` by the client. For a blob that came by
        a checkpoint it is the name of its upload, if that differs from byok's.
        """
        with self.store.reading() as db:
            names_by_id = names_of(db, blob_ids)
        all_names = {name for names in names_by_id.values() for name in names}
        used = all_names.intersection(requested)
        return {
            blob_id: next((name for name in names if name in used), names[-1])
            for blob_id, names in names_by_id.items()
        }

    def is_private(self, entry: Entry) -> bool:
        """Tell whether a blob's path is that of a secret file, which is never shown."""
        return is_secret(entry.path, self.allow_secret)

    def content_of(self, entry: Entry) -> bytes | None:
        """Return the content of a blob, or None if it is no longer available."""
        if self.is_private(entry):
            return None
        content = self.store.content(entry.blob_id)
        if content is None:
            unchanged = self._read_unchanged([entry.blob_id])
            content = next((blob.content for blob in unchanged), None)
        return content

    def current_of(self, entry: Entry, root: Path) -> tuple[bytes, bool]:
        """Return the present content of a blob's file, and whether it is unchanged.

        Raises:
            Unreadable: the file is gone, or may not be read.
        """
        if self.is_private(entry):
            raise Unreadable(SkipReason.SECRET)
        with self.store.reading() as db:
            row = db.execute(
                "SELECT name FROM blob WHERE id = ?", (entry.blob_id,)
            ).fetchone()
        with Folder(root) as folder:
            content, _ = folder.read(entry.path, MAX_BYTES)
        return content, row == (blob_name(entry.path, content),)

    def content_by_id(self, blob_id: int) -> bytes | None:
        """Return the content of a blob by its id, or None."""
        entry = self.entries([blob_id]).get(blob_id)
        return None if entry is None else self.content_of(entry)

    def lines_of(self, entry: Entry) -> list[str] | None:
        """Return the lines of a blob, or None if its text is no longer available."""
        content = self.content_of(entry)
        lines = None if content is None else lines_in(content, entry.path)
        return None if isinstance(lines, SkipReason) else lines

    def text_of(self, name: bytes) -> str | None:
        """Return the text of a blob by its name, lines ended by LF, or None."""
        known = self.find_entries([name]).get(name)
        if known is None:
            return None
        entry = self.entries([known.id]).get(known.id)
        lines = None if entry is None else self.lines_of(entry)
        return None if lines is None else "\n".join(lines) + "\n"

    def store_unchanged(self, blob_ids: Iterable[int]) -> frozenset[int]:
        """Store the contents of blobs whose files are unchanged; return their ids.

        Contents are written in batches of some MiB. Blocks.

        Raises:
            sqlite3.OperationalError: such as a full disk.
        """

        def write(
            db: sqlite3.Connection, batch: Sequence[_Unchanged]
        ) -> list[_Unchanged]:
            return [b for b in batch if blobs.store_content(db, b.blob_id, b.content)]

        ids: set[int] = set()
        for batch in split_into_batches(
            self._read_unchanged(blob_ids),
            lambda blob: len(blob.content),
            max_size=_BATCH_BYTES,
        ):
            for blob in self.store.change(partial(write, batch=batch)).result():
                blob.workspace.counters.blobs_uploaded += 1
                ids.add(blob.blob_id)
        return frozenset(ids)

    def _read_unchanged(self, blob_ids: Iterable[int]) -> Iterator[_Unchanged]:
        """Yield each blob that is the present version of a file, once."""
        with self.store.reading() as db:
            files = list(
                select_in(
                    db,
                    "SELECT b.id, b.name, f.workspace_id, f.path FROM file f "
                    "JOIN blob b ON b.id = f.blob_id WHERE f.blob_id IN (?)",
                    blob_ids,
                )
            )
        done: set[int] = set()
        with ExitStack() as opened:
            folders: dict[int, Folder] = {}
            for blob_id, name, workspace_id, path in files:
                workspace = self.workspaces.get(workspace_id)
                if workspace is None or blob_id in done:
                    continue
                if is_secret(path, self.allow_secret):
                    continue
                try:
                    if workspace_id not in folders:
                        folder = opened.enter_context(Folder(workspace.root))
                        folders[workspace_id] = folder
                    content, _ = folders[workspace_id].read(path, MAX_BYTES)
                except Unreadable:
                    continue  # the next walk notices it
                if blob_name(path, content) == name:
                    done.add(blob_id)
                    yield _Unchanged(blob_id, content, workspace)
