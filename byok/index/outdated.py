"""Files that are indexed again at a start, and until then answer as they are.

They were indexed by an older byok, or without definitions, because a parser crashed
with them. Its cause may have passed, such as a lack of memory, so each start tries some
of these again.
"""

import logging
import sqlite3

from byok.errors import NotReady
from byok.index.indexer import Indexer
from byok.index.store.recovery import find_outdated, note_index_version
from byok.index.store.schema import INDEXED
from byok.index.store.store import Store
from byok.index.types import UploadTask

_log = logging.getLogger(__name__)
_CRASHERS = (
    16  # tried in one start: each may cost seconds, and a hostile folder has many
)


def index_outdated(store: Store, indexer: Indexer) -> None:
    """Queue the blobs that an older byok indexed; until then their old chunks answer.

    Blocks for a moment. Where the disk has no room it is left for another start.
    """
    with store.reading() as db:
        outdated = find_outdated(db)
    if not outdated:
        store.change(note_index_version)
        return
    try:
        store.check_room_to_rebuild()
    except NotReady as error:
        _log.warning("%s", error.sentence)
        return
    _log.info("indexing %d files again because byok was updated", len(outdated))
    indexer.put(UploadTask(blob_id, path) for blob_id, path in outdated)


def retry_crashers(store: Store, indexer: Indexer) -> None:
    """Queue some of the blobs with which a parser crashed in an earlier run.

    Blocks for a moment.
    """
    store.change(_forget_crashers_without_blob)
    with store.reading() as db:
        again = db.execute(
            "SELECT b.id, b.path FROM parser_crasher p JOIN blob b ON b.name = p.name "
            "WHERE b.state = ? ORDER BY random() LIMIT ?",
            (INDEXED, _CRASHERS),
        ).fetchall()
    indexer.put(UploadTask(blob_id, path) for blob_id, path in again)


def _forget_crashers_without_blob(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM parser_crasher WHERE name NOT IN (SELECT name FROM blob)")
