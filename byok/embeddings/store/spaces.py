"""Spaces: what vectors of different models are kept apart by, as rows."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from byok.embeddings.numeric import np
from byok.embeddings.store.quantise import cosine
from byok.embeddings.store.schema import FILLING, LEFT, READY, first_id
from byok.embeddings.types import SpaceName
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

SAME = 0.999
"""The cosine of two vectors of the probe text from which a model counts as the same."""

_COLUMNS = "id, model, dimensions, recipe, document_prefix, query_prefix, probe, state"


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors that may be compared: those of one model under one name and recipe.

    `probe` is the vector of the probe text, a row. A space `is_ready` from when it has
    95 % of all vectors.
    """

    id: int
    name: SpaceName
    probe: "Vectors" = field(compare=False)
    is_ready: bool

    def answers(self, other: "Space") -> bool:
        """Tell whether questions made by another space's model can be compared too.

        The recipe and the prefix of texts may differ: a change of those is no reason
        to do without the old vectors meanwhile. A prefix also changes the probe's
        vector; without it the model must still give the same.
        """
        mine, its = self.name, other.name
        if (mine.model, mine.dimensions, mine.query_prefix) != (
            *(its.model, its.dimensions, its.query_prefix),
        ):
            return False
        if mine.document_prefix != its.document_prefix:
            return True
        return cosine(self.probe, other.probe) >= SAME


def all_spaces(db: sqlite3.Connection) -> list[Space]:
    """Return the spaces, the newest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM space WHERE state <> ? ORDER BY id DESC",  # noqa: S608
        (LEFT,),
    )
    return [
        Space(row[0], SpaceName(*row[1:6]), _vector(row[6]), row[7] == READY)
        for row in rows
    ]


def find_space(
    db: sqlite3.Connection, name: SpaceName, probe: "Vectors"
) -> Space | None:
    """Return the space of a model that still gives the same vector for the probe."""
    for space in all_spaces(db):
        if space.name == name and cosine(space.probe, probe) >= SAME:
            return space
    return None


def make_space(db: sqlite3.Connection, name: SpaceName, probe: "Vectors") -> Space:
    """Make a space, inside a transaction."""
    row = np.asarray(probe, dtype=np.float32).reshape(1, -1)
    cursor = db.execute(
        "INSERT INTO space(model, dimensions, recipe, document_prefix, query_prefix, "
        "probe, state) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            *(name.model, name.dimensions, name.recipe),
            *(name.document_prefix, name.query_prefix, row.tobytes(), FILLING),
        ),
    )
    return Space(int(cursor.lastrowid or 0), name, row, is_ready=False)


def leave(db: sqlite3.Connection, spaces: Iterable[Space]) -> None:
    """Have spaces removed, inside a transaction; `tidy` does it step by step."""
    rows = [(LEFT, space.id) for space in spaces]
    db.executemany("UPDATE space SET state = ? WHERE id = ?", rows)


def set_ready(db: sqlite3.Connection, space: Space) -> None:
    """Let a space answer alone from now on, inside a transaction."""
    db.execute("UPDATE space SET state = ? WHERE id = ?", (READY, space.id))


def note_good_probe(db: sqlite3.Connection, space: Space) -> None:
    """Take all vectors of a space as those of its model, inside a transaction."""
    db.execute("UPDATE space SET checked = turn WHERE id = ?", (space.id,))


def refuse(db: sqlite3.Connection, space: Space, key_ids: Iterable[int]) -> None:
    """Note that a model does not take these texts, inside a transaction."""
    rows = [(space.id, key_id, today()) for key_id in key_ids]
    db.executemany("INSERT OR REPLACE INTO refused VALUES(?, ?, ?)", rows)


def drop_unchecked(db: sqlite3.Connection, space: Space) -> int:
    """Delete the vectors made since the last good probe; return how many they were.

    Some of them may be of another model. Inside a transaction.
    """
    return db.execute(
        "DELETE FROM vector WHERE id >= ? AND id < ? "
        "AND turn > (SELECT checked FROM space WHERE id = ?)",
        (first_id(space.id), first_id(space.id + 1), space.id),
    ).rowcount


def _vector(packed: bytes) -> "Vectors":
    return np.frombuffer(packed, dtype=np.float32).reshape(1, -1)
