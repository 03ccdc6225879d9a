"""After an update of byok, files that an older version indexed are indexed again."""

import logging

from byok.errors import NotReady
from byok.index.indexer import Indexer
from byok.index.store.recovery import find_outdated, note_index_version
from byok.index.store.store import Store
from byok.index.types import UploadTask

_log = logging.getLogger(__name__)


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
