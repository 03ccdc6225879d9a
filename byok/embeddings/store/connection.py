"""The connection to the vector store: one thread at a time, errors as byok's own."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from byok.embeddings.store.database import (
    close_database,
    open_database,
    translate_errors,
)
from byok.platform.damage import is_damage


class Connection:
    """Lends the database to one thread after another."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or make the database; raises as `open_database` does.

        `on_damage` is called, by any thread, when it turns out to be damaged. Opening
        it once more sets it aside.
        """
        self._path = path
        self._lock = threading.RLock()
        self._is_damaged = False
        self._on_damage = on_damage
        self._db = open_database(path, index)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; a thread that has it may ask for it again.

        Raises:
            DiskFull, NotReady, IndexFailed: the database cannot be used.
        """
        with self._lock, translate_errors(self._path):
            try:
                yield self._db
            except sqlite3.DatabaseError as error:
                if is_damage(error) and not self._is_damaged:
                    self._is_damaged = True
                    self._on_damage()
                raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one durable transaction; raises as `reading` does."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it already
                    db.execute("ROLLBACK")
                raise

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` notes that nothing need be checked at the next start."""
        with self._lock:
            close_database(self._db, clean=clean and not self._is_damaged)
