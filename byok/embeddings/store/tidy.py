"""Removal of what is no longer needed, in small steps.

A vector is kept for two weeks after its last chunk is gone: branches are switched, and
changes taken back. A text that a model refused is tried again after a month.
"""

import sqlite3

from byok.embeddings.store.schema import LEFT, first_id

_KEPT_DAYS = 14
_REFUSED_DAYS = 30
_AT_ONCE = 2000
_PAGES = 2000  # given back to the disk in a step


def tidy(db: sqlite3.Connection, day: int) -> bool:
    """Do one step in one transaction; tell whether there is more to do.

    `day` is counted since 1970.
    """
    if db.execute("SELECT value FROM meta WHERE key = 'noted'").fetchone() != (day,):
        _note_unused(db, day)
        db.execute("INSERT OR REPLACE INTO meta VALUES('noted', ?)", (day,))
        return True
    removed = _remove_left(db)
    if not removed:
        removed = _remove_unused(db, day)
    db.execute("DELETE FROM refused WHERE day < ?", (day - _REFUSED_DAYS,))
    return removed


def give_back(db: sqlite3.Connection) -> bool:
    """Shorten the file by pages that are free; tell whether there are more.

    Outside a transaction only.
    """
    before = _free_pages(db)
    # `execute` would stop after the first page: the pragma is a row for each.
    db.executescript(f"PRAGMA main.incremental_vacuum({_PAGES})")
    return 0 < _free_pages(db) < before


def _free_pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA main.freelist_count").fetchone()[0])


def _note_unused(db: sqlite3.Connection, day: int) -> None:
    """Note which keys belong to no chunk since this day, inside a transaction.

    Compares all keys: a third of a second for 300,000.
    """
    db.execute(
        "UPDATE key SET unused = NULL WHERE unused IS NOT NULL "
        "AND EXISTS(SELECT 1 FROM chunk c WHERE c.key_id = key.id)"
    )
    db.execute(
        "UPDATE key SET unused = ? WHERE unused IS NULL "
        "AND NOT EXISTS(SELECT 1 FROM chunk c WHERE c.key_id = key.id)",
        (day,),
    )


def left_spaces(db: sqlite3.Connection) -> list[int]:
    """Return the ids of spaces that are being removed."""
    return [i for (i,) in db.execute("SELECT id FROM space WHERE state = ?", (LEFT,))]


def _remove_left(db: sqlite3.Connection) -> bool:
    for space_id in left_spaces(db):
        removed = db.execute(
            "DELETE FROM vector WHERE id IN "
            "(SELECT id FROM vector WHERE id >= ? AND id < ? LIMIT ?)",
            (first_id(space_id), first_id(space_id + 1), _AT_ONCE),
        ).rowcount
        if removed == _AT_ONCE:
            return True
        for table in ("refused", "block"):
            db.execute(f"DELETE FROM {table} WHERE space_id = ?", (space_id,))  # noqa: S608
        db.execute("DELETE FROM space WHERE id = ?", (space_id,))
        return True
    return _remove_old_recipes(db)


def _remove_old_recipes(db: sqlite3.Connection) -> bool:
    """Remove listings of recipes that no space has any more."""
    row = db.execute(
        "SELECT recipe, blob_id FROM listing WHERE recipe NOT IN "
        "(SELECT recipe FROM space) LIMIT 1"
    ).fetchone()
    if row is None or not db.execute("SELECT 1 FROM space").fetchone():
        return False
    db.execute(
        "DELETE FROM chunk WHERE (recipe, blob_id, ordinal) IN "
        "(SELECT recipe, blob_id, ordinal FROM chunk WHERE recipe = ? LIMIT ?)",
        (row[0], _AT_ONCE),
    )
    if not db.execute("SELECT 1 FROM chunk WHERE recipe = ?", (row[0],)).fetchone():
        db.execute("DELETE FROM listing WHERE recipe = ?", (row[0],))
    return True


def _remove_unused(db: sqlite3.Connection, day: int) -> bool:
    """Remove keys that had no chunk for long, and their vectors."""
    ids = db.execute(
        "SELECT id FROM key WHERE unused < ? AND NOT EXISTS"
        "(SELECT 1 FROM chunk c WHERE c.key_id = key.id) LIMIT ?",
        (day - _KEPT_DAYS, _AT_ONCE),
    ).fetchall()
    db.executemany(
        "DELETE FROM vector WHERE key_id = ? AND space_id IN (SELECT id FROM space)",
        ids,
    )
    db.executemany("DELETE FROM refused WHERE key_id = ?", ids)
    db.executemany("DELETE FROM key WHERE id = ?", ids)
    return len(ids) == _AT_ONCE
