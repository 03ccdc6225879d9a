"""What filling would send, estimated from the rows of the index: no file is read."""

from byok.search.index.store.schema import INDEXED
from byok.search.index.store.store import Store
from byok.search.vectors.recipe import is_embedded

_SPAN_BYTES = 12
# Of the text of a chunk, measured over eight repositories, with a model's prefix; a
# token is about three characters of code.
_USUAL_TOKENS = 150


def count_chunks(store: Store) -> int:
    """Return about how many chunks of the index are to have vectors; blocks.

    Equal texts are counted each, and embedded once.
    """
    with store.reading() as db:
        rows = db.execute(
            "SELECT path, length(spans) / ? FROM blob "
            "WHERE state = ? AND reason IS NULL AND length(spans) > 0",
            (_SPAN_BYTES, INDEXED),
        )
        return sum(count for path, count in rows if is_embedded(path))


def tokens_of(chunks: int) -> int:
    """Return how many tokens the texts of so many chunks have, about."""
    return chunks * _USUAL_TOKENS
