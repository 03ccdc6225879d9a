"""What leaves the journal: old requests, and the oldest where it grows too large.

One step is small, so that whatever is written meanwhile hardly waits.
"""

import sqlite3

STEP = 500  # requests, or pages of the file
_SPARE = 256  # free pages that stay, as they are soon used again
_OLD = """DELETE FROM request WHERE id IN (
    SELECT id FROM request WHERE started < ? ORDER BY started LIMIT ?)"""
_OLDEST = "DELETE FROM request WHERE id IN (SELECT id FROM request ORDER BY id LIMIT ?)"


def tidy(db: sqlite3.Connection, *, before: float, most_bytes: int) -> bool:
    """Do one step; return whether more is left to do.

    Requests that started `before`, in seconds since 1970, go; then the oldest while
    the content is larger than `most_bytes`. The file becomes smaller.
    """
    gone = db.execute(_OLD, (before, STEP)).rowcount
    if gone < STEP and _content_bytes(db) > most_bytes:
        gone = db.execute(_OLDEST, (STEP,)).rowcount
    free = _pragma(db, "freelist_count")
    if free > _SPARE:
        # `execute` would free a single page.
        db.executescript(f"PRAGMA incremental_vacuum({STEP})")
    return gone == STEP or free > _SPARE + STEP


def _content_bytes(db: sqlite3.Connection) -> int:
    pages = _pragma(db, "page_count") - _pragma(db, "freelist_count")
    return pages * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
