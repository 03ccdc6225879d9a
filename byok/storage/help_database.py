"""A database that is only a help: no failure of it stops or delays anything else."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from byok.core.errors import CannotStart
from byok.storage.damage import is_damage
from byok.storage.database import Database, begin_anew
from byok.storage.kind import DatabaseKind

T = TypeVar("T")
_log = logging.getLogger(__name__)


class HelpDatabase:
    """The only connection that writes; for one thread.

    The file is opened when it is needed, and again after failures. A failure is a
    warning in the log, once a run. A file that is damaged is set aside, and a new one
    begun; one that was moved or deleted meanwhile is created again.
    """

    def __init__(
        self,
        path: Path,
        kind: DatabaseKind,
        failure: str,
        salvage: Callable[[Path, sqlite3.Connection], None] = lambda aside, db: None,
    ) -> None:
        """Take the file, and the words for the log that say what does not work.

        `salvage` may copy what is whole of a file that was set aside into the new one.
        """
        self._path = path
        self._kind = kind
        self._failure = failure
        self._salvage = salvage
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what is open
        self._has_warned = self._is_off = False

    @property
    def is_open(self) -> bool:
        """Whether the file was needed, and could be opened."""
        return self._database is not None

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` returns, or None if it cannot be done."""
        for may_replace in (True, False):
            if self._is_off:
                break
            try:
                return work(self._open().connection)
            except CannotStart as error:  # a later byok's file
                self._is_off = True
                self._warn(error)
            except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
                self.close()
                if not (may_replace and is_damage(error) and self._replace(error)):
                    self._warn(error)
                    break
            except Exception:  # a bug; the thread has to live for later requests
                _log.exception(self._failure)
                self.close()
                break
        return None

    def close(self) -> None:
        """Close the file; `use` opens it again."""
        if self._database is not None:
            database, self._database = self._database, None
            database.close()

    def _open(self) -> Database:
        if self._database is not None and self._file != _identity(self._path):
            self.close()
        if self._database is None:
            self._database = Database(self._path, self._kind)
            self._file = _identity(self._path)
        return self._database

    def _replace(self, error: Exception) -> bool:
        try:
            begin_anew(self._path, self._kind, error, self._salvage).close()
        except (sqlite3.Error, CannotStart, OSError) as failure:
            self._warn(failure)
            return False
        return True

    def _warn(self, error: Exception) -> None:
        level = logging.DEBUG if self._has_warned else logging.WARNING
        _log.log(level, "%s: %s", self._failure, error)
        self._has_warned = True


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file has this name now, if any."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino
