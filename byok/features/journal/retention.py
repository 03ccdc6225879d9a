"""What the journal deletes: expired requests, and the oldest if it is too large.

One step is small, so that whatever is written meanwhile hardly waits.

A clock may be wrong, as after an empty battery or in a virtual machine that was asleep.
So age is counted from now, but at most from a week after the newest request that is at
least a day old: a clock that is ahead for less than a day costs a week of the journal,
and not all of it. After a long pause the old requests go a day later.
"""

import sqlite3

STEP = 500  # requests, or pages of the file
_DAY = 86_400
_TRUSTED_PAUSE = 7 * _DAY
_SPARE = 256  # free pages that stay, as they are soon used again
_OLD = """DELETE FROM request WHERE id IN (
    SELECT id FROM request WHERE started < ? ORDER BY started LIMIT ?)"""
_OLDEST = "DELETE FROM request WHERE id IN (SELECT id FROM request ORDER BY id LIMIT ?)"


def tidy(
    db: sqlite3.Connection, *, now: float, keep_days: int, most_bytes: int
) -> bool:
    """Do one step; return whether more is left to do.

    Requests that are older than `keep_days` go, as the clock says `now`, in seconds
    since 1970; then the oldest while the content is larger than `most_bytes`. The file
    becomes smaller.
    """
    before = _believable(db, now) - keep_days * _DAY
    gone = db.execute(_OLD, (before, STEP)).rowcount
    if gone < STEP and _content_bytes(db) > most_bytes:
        gone = db.execute(_OLDEST, (STEP,)).rowcount
    free = _pragma(db, "freelist_count")
    if free > _SPARE:
        # `execute` would free a single page.
        db.executescript(f"PRAGMA incremental_vacuum({STEP})")
    return gone == STEP or free > _SPARE + STEP


def _believable(db: sqlite3.Connection, now: float) -> float:
    """Return the time from which age is counted."""
    newest = "SELECT max(started) FROM request WHERE started <= ?"
    (seen,) = db.execute(newest, (now - _DAY,)).fetchone()
    return now if seen is None else min(now, float(seen) + _TRUSTED_PAUSE)


def _content_bytes(db: sqlite3.Connection) -> int:
    pages = _pragma(db, "page_count") - _pragma(db, "freelist_count")
    return pages * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
