"""Open a database for its only writer: check it, migrate it, and run transactions.

Nothing in a file changes before it is known to be intact and not of a later version. A
refused file stays unchanged; `open_or_begin_anew` sets damaged files aside.
"""

import logging
import os
import re
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from byok.core.errors import CannotStart, NotReady
from byok.core.platform.paths import make_private, sync_folder
from byok.storage.damage import (
    DATABASE_ENDINGS,
    is_damage,
    is_full,
    is_other,
    set_aside,
)
from byok.storage.kind import DatabaseKind, Policy

_log = logging.getLogger(__name__)
_DAY, _WEEK = 86_400, 7 * 86_400
_COPY = "old_copy"  # in `meta`: the file name of the copy before a migration
_BUSY_SECONDS = 5.0
_BATCH_SIZE = 500
_OPEN = "open"
_PRAGMAS = (
    "journal_mode = WAL",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "mmap_size = 0",
)
T = TypeVar("T")


class ForeignDatabase(sqlite3.DatabaseError):
    """A database belongs to another program."""


class Database:
    """The only connection that writes to a file; used by one thread at a time."""

    def __init__(self, path: Path, kind: DatabaseKind) -> None:
        """Open, migrate or create a database.

        Raises:
            CannotStart: `newer_data`, a later version wrote it.
            sqlite3.DatabaseError: it is damaged, if `is_damage` is true; otherwise it
                is locked, on a full disk, or another program's, as the class says.
            OSError: it is no plain file, or cannot be created.
            NotReady: the disk has no space for the copy before a migration.
        """
        self.path = path
        self._kind = kind
        make_private(path.parent)
        if kind.policy is not Policy.DATA:
            _refuse_links(path)
        self.was_clean = _create_if_missing(path, kind) or _check(path, kind)
        if kind.policy is not Policy.DATA:
            path.chmod(0o600)
        self.connection = _connect(path, kind.pragmas)
        try:
            self._was_migrated = migrate(self.connection, path, kind)
            if kind.tracks_clean_close:
                self.set_meta(_OPEN, 1)
        except BaseException:
            self.connection.close()
            raise

    def forget_old_copy(self) -> None:
        """Remove the copy from before a migration, unless this start made it."""
        if not self._was_migrated:
            remove_old_copy(self.connection, self.path)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one durable transaction."""
        with transaction(self.connection):
            yield self.connection

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> object:
        """Return the first value of the first row, or None."""
        row = self.connection.execute(sql, values).fetchone()
        return row[0] if row else None

    def set_meta(self, key: str, value: object) -> None:
        """Set a value of the table `meta`."""
        row = (key, value)
        self.connection.execute("INSERT OR REPLACE INTO main.meta VALUES(?, ?)", row)

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` records that the next start needs no check of all pages."""
        try:
            if clean and self._kind.tracks_clean_close:
                self.set_meta(_OPEN, 0)
                self.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as error:
            _log.error("%s is checked at the next start: %s", self.path, error)
        finally:
            self.connection.close()


def open_or_begin_anew(
    path: Path,
    kind: DatabaseKind,
    salvage: Callable[[Path, sqlite3.Connection], None] = lambda aside, db: None,
) -> Database:
    """Open a database; set a damaged one aside, and create a new one.

    `salvage` may copy intact rows of the damaged file into the new one. Raises the
    errors of `Database`.
    """
    try:
        return Database(path, kind)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise
        return begin_anew(path, kind, error, salvage)


def begin_anew(
    path: Path,
    kind: DatabaseKind,
    error: Exception,
    salvage: Callable[[Path, sqlite3.Connection], None],
) -> Database:
    """Set a damaged database aside, and create a new one with its intact rows.

    Raises:
        OSError: it cannot be set aside. Otherwise the errors of `Database`.
    """
    aside = set_aside(path, str(error), limit=kind.policy.max_aside)
    database = Database(path, kind)
    try:
        if aside is not None:  # None if another process has moved it
            salvage(aside, database.connection)
    except BaseException:
        database.close(clean=False)
        raise
    return database


class HelpDatabase(Struct, eq=False):
    """The only connection that writes to an auxiliary database; for one thread.

    No failure of it stops or delays anything else. The file is opened on first use, and
    again after failures. The first failure is a warning in the log, later ones are
    debug messages. A damaged file is set aside and replaced; one that was moved or
    deleted meanwhile is created again.

    `failure` is the log message, and says what does not work. `salvage` may copy intact
    rows of a damaged file into the new one.
    """

    path: Path
    kind: DatabaseKind
    failure: str
    salvage: Callable[[Path, sqlite3.Connection], None] = lambda aside, db: None
    _database: Database | None = None
    _file: tuple[int, int] | None = None  # device and inode of what is open
    _has_warned: bool = False
    _is_off: bool = False

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of `work`, or None if it fails."""
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
            except Exception:  # a bug must not end the thread, which later calls need
                _log.exception(self.failure)
                self.close()
                break
        return None

    def close(self) -> None:
        """Close the file; `use` opens it again."""
        if self._database is not None:
            database, self._database = self._database, None
            database.close()

    def _open(self) -> Database:
        if self._database is not None and self._file != identity_of(self.path):
            self.close()
        if self._database is None:
            self._database = Database(self.path, self.kind)
            self._file = identity_of(self.path)
        return self._database

    def _replace(self, error: Exception) -> bool:
        try:
            begin_anew(self.path, self.kind, error, self.salvage).close()
        except (sqlite3.Error, CannotStart, OSError) as failure:
            self._warn(failure)
            return False
        return True

    def _warn(self, error: Exception) -> None:
        level = logging.DEBUG if self._has_warned else logging.WARNING
        reason = "the disk is full" if is_full(self.path, error) else error
        _log.log(level, "%s: %s", self.failure, reason)
        self._has_warned = True


def open_unchanged(path: Path) -> sqlite3.Connection:
    """Open a database that another process may use, without any change to it.

    Raises:
        sqlite3.DatabaseError: it cannot be opened.
    """
    # Without a log nobody writes to the database, and SQLite need not create files
    # beside it.
    log = path.with_name(f"{path.name}-wal")
    plain = "" if log.exists() else "&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode=ro{plain}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)


def open_second(path: Path, pragmas: Sequence[str]) -> sqlite3.Connection:
    """Open a second connection that only reads, for one thread of the writer's process.

    Raises:
        sqlite3.DatabaseError: it cannot be opened.
    """
    return _connect(path, (*pragmas, "query_only = ON"))


def refuse_newer(path: Path, kind: DatabaseKind) -> None:
    """Refuse a database of a later byok before any file beside it is changed.

    Other faults of the file are found when it is opened.

    Raises:
        CannotStart: `newer_data`.
    """
    if not path.exists():
        return
    try:
        with closing(open_unchanged(path)) as db:
            version_of(db, path, kind)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        _log.debug("%s cannot be read yet: %s", path, error)


def version_of(db: sqlite3.Connection, path: Path, kind: DatabaseKind) -> int:
    """Return the version of a database, which is at most the version of its kind.

    Raises:
        CannotStart: `newer_data`, a later byok wrote it.
        sqlite3.DatabaseError: it is damaged, or another program's.
    """
    owner, version = read_pragma(db, "application_id"), read_pragma(db, "user_version")
    try:
        table = db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except UnicodeDecodeError as error:  # in SQLite's message, which quotes the file
        raise sqlite3.DatabaseError("malformed database schema") from error
    if kind.application and owner != kind.application:
        if not table:
            raise sqlite3.DatabaseError("it is empty")
        is_cache = kind.policy is Policy.CACHE
        kind_of_error = ForeignDatabase if is_cache else sqlite3.DatabaseError
        raise kind_of_error("it belongs to another program")
    if version > kind.version:
        raise CannotStart(
            f"{path} was written by a later version of byok.",
            code="newer_data",
            status=422,
            hint="Install that version again, or move the file away.",
        )
    if version == 0 < kind.version:
        raise sqlite3.DatabaseError("it has no version")
    return version


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file with this name, None without one."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise


def read_pragma(db: sqlite3.Connection, name: str) -> int:
    """Return the value of a pragma that is a number."""
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def select_in(
    db: sqlite3.Connection,
    sql: str,
    values: Iterable[object],
    leading_values: Sequence[object] = (),
) -> Iterator[tuple[Any, ...]]:
    """Run a query with `IN (?)` over any number of values, in batches.

    `leading_values` are those of the placeholders before it.
    """
    remaining = iter(values)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        marks = f"({','.join('?' * len(batch))})"
        yield from db.execute(sql.replace("(?)", marks), (*leading_values, *batch))


def expired_before(
    db: sqlite3.Connection, table: str, column: str, now: float, days: int
) -> float:
    """Return the time before which rows expire that are kept for so many days.

    Times are in seconds since 1970; those of rows are in the `column`.

    A clock may be wrong, as after an empty battery or in a virtual machine that was
    asleep. So the age of rows is counted from `now` only if the week before has a row
    that is at least a day old. Otherwise it is counted from a week after the newest row
    of that age. If the week before that row has none either, the clock may have jumped
    twice, and the age is counted from two weeks after the next newest row. So only rows
    that were written while the clock was far off are lost once it is right again, and
    after a long pause old rows are removed a day later.
    """
    newest = f"SELECT max({column}) FROM {table} WHERE {column} <= ?"  # noqa: S608 - our own names
    trusted = moment = now
    for weeks in (1, 2):
        (newest_time,) = db.execute(newest, (moment - _DAY,)).fetchone()
        if newest_time is None or moment - float(newest_time) <= _WEEK:
            break
        moment = float(newest_time)
        trusted = moment + weeks * _WEEK
    return trusted - days * _DAY


def today() -> int:
    """Return the number of this day since 1970."""
    return int(time.time()) // _DAY


def _refuse_links(path: Path) -> None:
    """Refuse a path that is not free and no plain file.

    Raises:
        OSError: a link or folder has this name, or the name of a file beside it.
    """
    for end in (*DATABASE_ENDINGS, ".new"):
        beside = path.with_name(path.name + end)
        if is_other(beside):
            raise OSError(f"{beside} is not a plain file")


def _create_if_missing(path: Path, kind: DatabaseKind) -> bool:
    """Create an empty database if there is none; return whether there was none.

    It gets its name once it is complete, so that an empty file counts as damage. The
    log of a database that was moved away would be applied to the new one. It may hold
    data that is nowhere else, so it is set aside.
    """
    if path.exists():
        return False
    with _lock_folder(path.parent):
        if path.exists():  # another process has created it meanwhile
            return False
        if kind.policy is Policy.CACHE:
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        else:
            set_aside(path, "the file beside its log is gone")
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(new)) as db:
            kind.create_tables(db)
            # If several connections change the mode at once, only one succeeds.
            db.execute("PRAGMA journal_mode = WAL")
        new.replace(path)
    return True


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Exclude other processes that create a database in a folder at the same time.

    A daemon and its successor write the same journal; on Windows there is no successor.
    A disk without locks excludes nobody.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check(path: Path, kind: DatabaseKind) -> bool:
    """Check a database without any change to it; return whether it was closed cleanly.

    Raises:
        CannotStart, sqlite3.DatabaseError: for the reasons of `version_of`, or because
            a table, a column or a page is damaged.
    """
    with closing(open_unchanged(path)) as db, _translate_damage():
        db.text_factory = bytes.decode  # sqlite3's own error would not mean damage
        version = version_of(db, path, kind)
        is_old = version < kind.version
        if not (can_migrate(db, kind) if is_old else not kind.missing_columns(db)):
            raise sqlite3.DatabaseError("a table or column is missing")
        if not kind.tracks_clean_close:
            return True
        row = db.execute("SELECT value FROM meta WHERE key = ?", (_OPEN,)).fetchone()
        clean: bool = row == (0,)
        if is_old or not clean:
            (check_result,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if check_result != "ok":
                raise sqlite3.DatabaseError(check_result)
    return clean


@contextmanager
def _translate_damage() -> Iterator[None]:
    """Raise other errors that mean damage as the class that `is_damage` knows."""
    try:
        yield
    except UnicodeDecodeError as error:  # in the schema, or a message that quotes it
        raise sqlite3.DatabaseError("a text of it is no UTF-8") from error
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR:
            # Such as a missing table.
            raise sqlite3.DatabaseError(str(error)) from error
        raise


def _connect(path: Path, pragmas: Sequence[str]) -> sqlite3.Connection:
    db = sqlite3.connect(
        path.absolute().as_uri(),
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in (*_PRAGMAS, *pragmas):
            db.execute(f"PRAGMA {pragma}")
    except BaseException:
        db.close()
        raise
    return db


def migrate(db: sqlite3.Connection, path: Path, kind: DatabaseKind) -> bool:
    """Bring a database to the newest version; return whether it was older.

    All steps run in one transaction with the change of the version number, so that a
    kill at any moment leaves the old version or the new one. A copy of the old version
    stays until the next start that succeeds, for users who want to go back to the byok
    before.

    Raises:
        sqlite3.Error, NotReady: the database is unchanged.
    """
    version = read_pragma(db, "user_version")
    if version >= kind.version:
        return False
    if kind.policy is Policy.DATA:
        copy = _make_copy(db, path, version)
        _log.info("%s is copied to %s until the next start", path, copy.name)
    keys = read_pragma(db, "foreign_keys")
    db.execute("PRAGMA foreign_keys = OFF")  # has no effect inside a transaction
    try:
        with transaction(db):
            dangling_rows = _dangling_rows(db)  # older ones do no harm
            _run_steps(db, kind, version)
            if _dangling_rows(db) > dangling_rows:
                raise sqlite3.IntegrityError("a step left rows that refer to none")
    finally:
        db.execute(f"PRAGMA foreign_keys = {keys}")
    _log.info("%s was migrated from version %d to %d", path, version, kind.version)
    return True


def can_migrate(db: sqlite3.Connection, kind: DatabaseKind) -> bool:
    """Tell whether `migrate` would bring this database to the newest version.

    The steps run on empty tables of the same form in memory, so only the definitions of
    the tables are read. A database that lacks a table is damaged, and is refused before
    anything in it changes.

    Raises:
        sqlite3.DatabaseError: not even the definitions can be read.
    """
    definitions = db.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        try:
            for (definition,) in definitions:
                empty.execute(definition)
            _run_steps(empty, kind, read_pragma(db, "user_version"))
        except sqlite3.OperationalError:  # such as: no such table
            return False
        return not kind.missing_columns(empty)


def remove_old_copy(db: sqlite3.Connection, path: Path) -> None:
    """Remove the copy of an earlier start, if there is one."""
    copy = _recorded_copy(db, path)
    if copy is not None:
        _remove_copy(copy)
        db.execute("DELETE FROM meta WHERE key = ?", (_COPY,))


def _run_steps(db: sqlite3.Connection, kind: DatabaseKind, version: int) -> None:
    for step in kind.steps:
        if step.to > version:
            step.change(db)
    db.execute(f"PRAGMA user_version = {kind.version}")


def _dangling_rows(db: sqlite3.Connection) -> int:
    return len(db.execute("PRAGMA foreign_key_check").fetchall())


def _make_copy(db: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy a database into its folder; return the path of the copy.

    The copy is then complete and durable, and only its owner can read it. Its name has
    a random token, which the database records before the copy is begun: so after a kill
    an unfinished copy is known as byok's own and is replaced, and a file of somebody
    else is never touched.

    Raises:
        sqlite3.OperationalError, NotReady: such as a full disk; no copy is left.
    """
    copy = _recorded_copy(db, path)
    if copy is None or not _remove_copy(copy):
        copy = path.with_name(f"{path.name}.v{version}-{secrets.token_hex(8)}")
        row = (_COPY, copy.name)
        db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", row)
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(copy)) as target:
            target.execute(
                "PRAGMA journal_mode = OFF"
            )  # the whole file is synced below
            db.backup(target)
        with copy.open("rb+") as file:
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError as error:
        _remove_copy(copy)
        raise NotReady(
            f"The database cannot be copied before it is migrated: {error.strerror}."
        ) from error
    except BaseException:
        _remove_copy(copy)
        raise
    return copy


def _recorded_copy(db: sqlite3.Connection, path: Path) -> Path | None:
    """Return the path of the copy, None without a valid record of one."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_COPY,)).fetchone()
    name = str(row[0]) if row else ""
    if re.fullmatch(rf"{re.escape(path.name)}\.v[0-9]+-[0-9a-f]{{16}}", name):
        return path.with_name(name)
    return None


def _remove_copy(copy: Path) -> bool:
    """Remove a copy; return whether its name is free, which a folder's is not."""
    if is_other(copy):
        return False
    copy.unlink(missing_ok=True)
    return True
