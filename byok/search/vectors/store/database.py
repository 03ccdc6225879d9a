"""The database of vectors: one thread at a time, errors as byok's own.

Unlike the index's database it holds nothing that cannot be made again, so damage is no
reason to stop. What may be somebody else's is left as it is: a link, a database of
another program, one of a later version.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from byok.core.errors import ConfigError, DiskFull, IndexFailed, NotReady
from byok.search.vectors.store.spaces import VECTORS
from byok.storage.damage import (
    DATABASE_ENDINGS,
    is_damage,
    is_full,
    is_plain,
    remove_set_aside,
)
from byok.storage.database import ForeignDatabase, open_or_begin_anew

_log = logging.getLogger(__name__)


class VectorDatabase:
    """Lends the database to one thread after another."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or make the database; `index` is that of the code index, as `data`.

        The second is attached for reading only. Blocks, after a crash for a second per
        gigabyte or so. `on_damage` is called, by any thread, when it turns out to be
        damaged. Opening it once more sets it aside.

        Raises:
            CannotStart: `newer_data`, a later version wrote it; it is left as it is.
            ConfigError: it is a link, or of another program; it is left as it is.
            DiskFull, IndexFailed: it cannot be written.
        """
        self._path = path
        self._lock = threading.RLock()
        self._is_damaged = False
        self._on_damage = on_damage
        for end in (*DATABASE_ENDINGS, ".new"):
            check_plain(path.with_name(path.name + end))
        with translate_errors(path):
            self._database = open_or_begin_anew(path, VECTORS)
            try:
                uri = f"{index.absolute().as_uri()}?mode=ro"
                self._database.connection.execute("ATTACH ? AS data", (uri,))
            except BaseException:
                self._database.close(clean=False)
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; a thread that has it may ask for it again.

        Raises:
            DiskFull, NotReady, IndexFailed: the database cannot be used.
        """
        with self._lock, translate_errors(self._path):
            try:
                yield self._database.connection
            except sqlite3.DatabaseError as error:
                if is_damage(error) and not self._is_damaged:
                    self._is_damaged = True
                    self._on_damage()
                raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one durable transaction; raises as `reading` does."""
        with self.reading(), self._database.writing() as db:
            yield db

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` notes that nothing need be checked at the next start."""
        with self._lock:
            self._database.close(clean=clean and not self._is_damaged)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of files into byok's."""
    try:
        yield
    except ForeignDatabase as error:
        raise ConfigError(
            f"{path} is a database of another program; byok has left it as it is.",
            hint="Move it away.",
            status=422,
        ) from error
    except (sqlite3.DatabaseError, OSError) as error:
        if is_full(path, error):
            raise DiskFull(
                "The disk is full; vectors cannot be stored.",
                hint="Free some disk space.",
            ) from error
        if is_damage(error):
            raise IndexFailed(
                f"{path.name} is damaged: {error}.",
                code="vectors_damaged",
                hint="Restart byok: it is set aside then, and vectors are made anew.",
            ) from error
        raise NotReady(f"{path.name} cannot be used: {error}.") from error
    except (TypeError, ValueError, OverflowError) as error:
        # Rows whose types or lengths are wrong, which no check of SQLite finds.
        _log.error("%s holds what byok never wrote", path.name, exc_info=error)
        raise IndexFailed(
            f"{path.name} is damaged.",
            code="vectors_damaged",
            hint="Stop byok and remove that file; vectors are made anew.",
        ) from error


def check_plain(path: Path) -> None:
    """Refuse a link or anything but a file; one that is missing is accepted.

    Raises:
        ConfigError: it is left as it is.
    """
    if os.path.lexists(path) and not is_plain(path):
        raise ConfigError(
            f"{path} is no plain file; byok keeps vectors there and has left it as it "
            "is.",
            hint="Move it away.",
            status=422,
        )


def remove_aside(path: Path) -> None:
    """Remove damaged databases that were set aside; all but plain files are left.

    Raises:
        NotReady: one cannot be removed.
    """
    with translate_errors(path):
        remove_set_aside(path, most=VECTORS.policy.most_aside)
        for end in DATABASE_ENDINGS:  # what byok 0.2 set aside
            former = path.with_name(f"{path.name}.corrupt{end}")
            if is_plain(former):
                former.unlink()
