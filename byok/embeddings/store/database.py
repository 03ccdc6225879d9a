"""Opens the database of vectors: checks it, sets a damaged one aside, begins anew.

Unlike the index's database it holds nothing that cannot be made again, so damage is no
reason to stop. What may be somebody else's is left as it is: a link, a database of
another program, one of a later version.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from byok.embeddings.store.schema import APPLICATION, VERSION, create_tables
from byok.errors import ConfigError, DiskFull, IndexFailed, NotReady
from byok.index.store.database import newer_data
from byok.platform.damage import is_damage, is_plain, remove_set_aside, set_aside
from byok.platform.paths import make_private

_log = logging.getLogger(__name__)
_BUSY_SECONDS = 5.0
_LEAST_BYTES = 2**16
_MOST_ASIDE = 3  # each may have gigabytes
_ENDS = ("", "-wal", "-shm")
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "cache_size = -8000",
    "mmap_size = 0",
)


def open_database(path: Path, index: Path) -> sqlite3.Connection:
    """Open the database of vectors; `index` is that of the code index, as `data`.

    The second is attached for reading only. Blocks, after a crash for a second per
    gigabyte or so.

    Raises:
        CannotStart: `newer_data`, a later version wrote it; it is left as it is.
        ConfigError: it is a link, or of another program; it is left as it is.
        DiskFull, IndexFailed: it cannot be written.
    """
    make_private(path.parent)
    for end in _ENDS:
        check_plain(path.with_name(path.name + end))
    with translate_errors(path):
        _set_aside_unless_whole(path)
        try:
            return _connect(path, index)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            _log.warning("%s was closed well, but cannot be opened: %s", path, error)
        _set_aside_unless_whole(path, trusts_note=False)
        return _connect(path, index)


def _set_aside_unless_whole(path: Path, *, trusts_note: bool = True) -> None:
    if path.exists() and not _is_whole(path, trusts_note=trusts_note):
        set_aside(path, "it is damaged; vectors are made anew", most=_MOST_ASIDE)
    if not path.exists():
        _make(path)


def close_database(db: sqlite3.Connection, *, clean: bool = True) -> None:
    """Close; `clean` notes that it need not be checked at the next start."""
    try:
        if clean:
            db.execute("INSERT OR REPLACE INTO meta VALUES('open', 0)")
            db.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        _log.error("the vectors are checked at the next start: %s", error)
    finally:
        db.close()


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of files into byok's."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        if _is_full(path, error):
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


def _is_full(path: Path, error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_FULL:
            return True
        if is_damage(error) or code & 0xFF != sqlite3.SQLITE_IOERR:
            return False
    return shutil.disk_usage(path.parent).free < _LEAST_BYTES


def _is_whole(path: Path, *, trusts_note: bool) -> bool:
    """Tell whether a database can be used, without any change to it.

    `trusts_note`: what notes that it was closed well is not read to its end.
    """
    log = path.with_name(f"{path.name}-wal")
    plain = "" if log.exists() else "&immutable=1"  # no files beside it are made
    uri = f"{path.absolute().as_uri()}?mode=ro{plain}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as db:
            db.text_factory = bytes  # damaged text is no reason to fail here
            tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            owner = db.execute("PRAGMA application_id").fetchone()[0]
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if owner != APPLICATION:
                return _refuse_foreign(path, tables)
            if version > VERSION:
                raise newer_data(path)
            row = db.execute("SELECT value FROM meta WHERE key = 'open'").fetchone()
            if version != VERSION or not _has_all_columns(db):
                return False
            if trusts_note and row == (0,):
                return True
            checked = db.execute("PRAGMA quick_check(1)").fetchone()
            return bool(checked == (b"ok",))
    except UnicodeDecodeError:  # of a message about damage
        return False
    except sqlite3.DatabaseError as error:
        if is_damage(error) or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            return False  # SQLITE_ERROR: a table is missing
        raise


def _has_all_columns(db: sqlite3.Connection) -> bool:
    """Tell whether no name of a column is damaged, which no check of SQLite finds."""
    columns = (
        "SELECT t.name, c.name FROM main.sqlite_master t, pragma_table_info(t.name) c "
        "WHERE t.type = 'table'"
    )
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.text_factory = bytes
        create_tables(fresh)
        wanted = set(fresh.execute(columns))
    return wanted <= set(db.execute(columns))


def _refuse_foreign(path: Path, tables: int) -> bool:
    if not tables:
        return False
    raise ConfigError(
        f"{path} is a database of another program; byok has left it as it is.",
        hint="Move it away.",
        status=422,
    )


def remove_aside(path: Path) -> None:
    """Remove damaged databases that were set aside; all but plain files are left.

    Raises:
        NotReady: one cannot be removed.
    """
    with translate_errors(path):
        remove_set_aside(path, most=_MOST_ASIDE)
        for end in _ENDS:  # what byok 0.2 set aside
            former = path.with_name(f"{path.name}.corrupt{end}")
            if is_plain(former):
                former.unlink()


def _make(path: Path) -> None:
    """Write an empty database and name it when it is whole."""
    for end in _ENDS[1:]:  # the log of a database that is gone
        path.with_name(path.name + end).unlink(missing_ok=True)
    new = path.with_name(f"{path.name}.new")
    check_plain(new)
    new.unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(new)) as db:
        create_tables(db)
    new.replace(path)


def _connect(path: Path, index: Path) -> sqlite3.Connection:
    """Open both databases, and note that the one of vectors is open."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        uri = f"{index.absolute().as_uri()}?mode=ro"
        db.execute("ATTACH ? AS data", (uri,))
        db.execute("INSERT OR REPLACE INTO meta VALUES('open', 1)")
    except BaseException:
        db.close()
        raise
    return db
