"""Copies files of workspaces into the store when clients ask about them.

A name counts as known only while its content is held, because a file may change while a
checkpoint still refers to its old version.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from byok.index.files.reading import Folder, Unreadable
from byok.index.store import blobs
from byok.index.store.store import Store
from byok.index.versions import MAX_BYTES, blob_name
from byok.storage.database import select_in

_AT_ONCE = 8 * 2**20


def adopt(
    store: Store,
    roots: Mapping[int, Path],
    blob_ids: Iterable[int],
    *,
    at_once: int = _AT_ONCE,
) -> frozenset[int]:
    """Store the content of blobs whose files are unchanged; return which are held.

    `roots` are the folders of the workspaces by id. Contents are written in parts of
    about `at_once` bytes. Blocks.

    Raises:
        sqlite3.OperationalError: such as a full disk.
    """
    with store.reading() as db:
        places = list(
            select_in(
                db,
                "SELECT b.id, b.name, f.workspace_id, f.path FROM file f "
                "JOIN blob b ON b.id = f.blob_id WHERE f.blob_id IN (?)",
                blob_ids,
            )
        )
    held: set[int] = set()
    some: list[tuple[int, bytes]] = []
    size = 0
    for blob_id, content in _contents(places, roots):
        some.append((blob_id, content))
        size += len(content)
        if size >= at_once:
            held |= _keep_contents(store, some)
            some, size = [], 0
    return frozenset(held | _keep_contents(store, some))


def _keep_contents(store: Store, contents: list[tuple[int, bytes]]) -> set[int]:
    if not contents:
        return set()

    def keep(db: sqlite3.Connection) -> set[int]:
        return {i for i, content in contents if blobs.hold(db, i, content)}

    return store.change(keep).result()


def _contents(
    places: Iterable[tuple[int, bytes, int, str]], roots: Mapping[int, Path]
) -> Iterator[tuple[int, bytes]]:
    """Read what can be read; a walk finds out about the rest."""
    found: set[int] = set()
    with ExitStack() as opened:
        folders: dict[int, Folder] = {}
        for blob_id, name, workspace_id, path in places:
            if workspace_id not in roots or blob_id in found:
                continue
            try:
                if workspace_id not in folders:
                    folder = opened.enter_context(Folder(roots[workspace_id]))
                    folders[workspace_id] = folder
                content, _ = folders[workspace_id].read(path, MAX_BYTES)
            except Unreadable:
                continue
            if blob_name(path, content) == name:
                found.add(blob_id)
                yield blob_id, content
