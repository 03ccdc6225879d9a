"""The writer's connection: opens the file when it is needed, and again after failures.

A failure is a warning in the log, once a run: the journal is only a help. A file that
is damaged is set aside, and a new one is created with what is whole of it; one that was
moved or deleted meanwhile is created again.
"""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from byok.errors import CannotStart
from byok.journal.file import begin_anew, open_journal
from byok.platform.damage import is_damage

T = TypeVar("T")
_log = logging.getLogger(__name__)


class JournalConnection:
    """The only connection that writes; for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # device and inode of what is open
        self._told = self._off = False

    @property
    def is_open(self) -> bool:
        """Whether the file was needed, and could be opened."""
        return self._db is not None

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` returns, or None if it cannot be done."""
        for may_replace in (True, False):
            if self._off:
                break
            try:
                return work(self._open())
            except CannotStart as error:  # a later byok's file
                self._off = True
                self._warn(error)
            except (sqlite3.OperationalError, OSError) as error:  # full, locked, gone
                self._warn(error)
                self.close()
                break
            except sqlite3.Error as error:
                self.close()
                if not (may_replace and self._set_aside(error)):
                    self._warn(error)
                    break
            except Exception:  # a bug; the thread has to live for later requests
                _log.exception("requests are not written to the journal")
                self.close()
                break
        return None

    def close(self) -> None:
        """Close the file; `use` opens it again."""
        if self._db is not None:
            db, self._db = self._db, None
            db.close()

    def _open(self) -> sqlite3.Connection:
        if self._db is not None and self._file != _identity(self._path):
            self.close()
        if self._db is None:
            self._db = open_journal(self._path)
            self._file = _identity(self._path)
        return self._db

    def _set_aside(self, error: sqlite3.Error) -> bool:
        if not is_damage(error):
            return False
        try:
            begin_anew(self._path, error).close()
        except (sqlite3.Error, CannotStart, OSError) as failure:
            self._warn(failure)
            return False
        return True

    def _warn(self, error: Exception) -> None:
        level = logging.DEBUG if self._told else logging.WARNING
        _log.log(level, "requests are not written to the journal: %s", error)
        self._told = True


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file has this name now, if any."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_dev, facts.st_ino
