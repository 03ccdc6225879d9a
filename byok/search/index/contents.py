"""What blobs contain: chunks and paths for ranking, lines for answers.

The content of a file stays where it is, on disk, until a client first asks about it.
Then it is stored, too: the file may change while a checkpoint still means its version.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

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

_AT_ONCE = 8 * 2**20  # bytes that are stored together


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
    """Reads from the store, else from files of workspaces that are unchanged."""

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
        """Look blob names up; names that clients computed differently are included."""
        with self.store.reading() as db:
            return find_known(db, names)

    def names_of(
        self, blob_ids: Iterable[int], said: Iterable[bytes]
    ) -> dict[int, bytes]:
        """Return each blob's name as the client knows it.

        That is the name `said` in its request. For a blob that came by a checkpoint it
        is the name of its upload, if that differs from ours.
        """
        with self.store.reading() as db:
            found = names_of(db, blob_ids)
        every = {name for names in found.values() for name in names}
        mentioned = every.intersection(said)
        return {
            blob_id: next((name for name in names if name in mentioned), names[-1])
            for blob_id, names in found.items()
        }

    def is_private(self, entry: Entry) -> bool:
        """Whether a blob is a secret file by its path, whose content is never shown."""
        return is_secret(entry.path, self.allow_secret)

    def content_of(self, entry: Entry) -> bytes | None:
        """Return the content of a blob, or None if it is no longer available."""
        if self.is_private(entry):
            return None
        content = self.store.content(entry.blob_id)
        if content is None:
            found = self._read_unchanged([entry.blob_id])
            content = next((one.content for one in found), None)
        return content

    def current_of(self, entry: Entry, root: Path) -> tuple[bytes, bool]:
        """Return what a blob's file below a root holds now.

        And whether that still is the blob.

        Raises:
            Unreadable: it is gone, or may not be read.
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
        found = self.find_entries([name]).get(name)
        if found is None:
            return None
        entry = self.entries([found.id]).get(found.id)
        lines = None if entry is None else self.lines_of(entry)
        return None if lines is None else "\n".join(lines) + "\n"

    def hold(self, blob_ids: Iterable[int]) -> frozenset[int]:
        """Store the content of blobs whose files are unchanged; return which are held.

        Contents are written in parts of some MiB. Blocks.

        Raises:
            sqlite3.OperationalError: such as a full disk.
        """
        held: set[int] = set()
        some: list[_Unchanged] = []
        size = 0
        for one in self._read_unchanged(blob_ids):
            some.append(one)
            size += len(one.content)
            if size >= _AT_ONCE:
                held |= self._hold(some)
                some, size = [], 0
        return frozenset(held | self._hold(some))

    def _hold(self, some: Sequence[_Unchanged]) -> set[int]:
        def keep(db: sqlite3.Connection) -> list[_Unchanged]:
            return [one for one in some if blobs.hold(db, one.blob_id, one.content)]

        held = self.store.change(keep).result() if some else []
        for one in held:
            one.workspace.counters.blobs_uploaded += 1
        return {one.blob_id for one in held}

    def _read_unchanged(self, blob_ids: Iterable[int]) -> Iterator[_Unchanged]:
        """Give each blob that is the present version of a file, once."""
        with self.store.reading() as db:
            places = list(
                select_in(
                    db,
                    "SELECT b.id, b.name, f.workspace_id, f.path FROM file f "
                    "JOIN blob b ON b.id = f.blob_id WHERE f.blob_id IN (?)",
                    blob_ids,
                )
            )
        found: set[int] = set()
        with ExitStack() as opened:
            folders: dict[int, Folder] = {}
            for blob_id, name, workspace_id, path in places:
                workspace = self.workspaces.get(workspace_id)
                if workspace is None or blob_id in found:
                    continue
                if is_secret(path, self.allow_secret):
                    continue
                try:
                    if workspace_id not in folders:
                        folder = opened.enter_context(Folder(workspace.root))
                        folders[workspace_id] = folder
                    content, _ = folders[workspace_id].read(path, MAX_BYTES)
                except Unreadable:
                    continue  # a walk finds out about it
                if blob_name(path, content) == name:
                    found.add(blob_id)
                    yield _Unchanged(blob_id, content, workspace)
