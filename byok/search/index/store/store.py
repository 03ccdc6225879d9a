"""Composes database and lexical index, and assigns threads to them.

One thread writes; reads use a second connection, which never waits for the writer
(SQLite's WAL).
"""

import asyncio
import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from filelock import FileLock, Timeout

from byok.core.errors import DataDamaged, IndexFailed, NotReady
from byok.core.platform.paths import make_private
from byok.search.index.store import blobs
from byok.search.index.store.batches import Batches, Written
from byok.search.index.store.chunk_index import index_in_use
from byok.search.index.store.schema import INDEX
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.search.index.types import IndexTask, ParseOutcome
from byok.storage.damage import is_damage, is_full, set_aside
from byok.storage.database import Database, open_second, refuse_newer

_log = logging.getLogger(__name__)
_MIN_FREE_BYTES = 512 * 2**20
_LOCK_SECONDS = 0.5  # a process just forked may hold the lock for a moment
T = TypeVar("T")
P = ParamSpec("P")


class Store:
    """Database and lexical index, opened and recovered.

    `on_written` is called in the writer thread for each file of a workspace that was
    written.
    """

    def __init__(
        self,
        database: Path,
        index: Path,
        *,
        spare: int = _MIN_FREE_BYTES,
        damage: str = "",
    ) -> None:
        """Open or create the files; blocks for up to a few seconds after a crash.

        `spare` bytes of the disk are left free. A damaged database is set aside and a
        new one created; `damage` describes damage that was found while it was in use.

        Raises:
            CannotStart: `newer_data`, a later byok wrote the database, which stays
                unchanged.
            DataDamaged: the database is damaged and cannot be set aside.
            IndexInUse: another process has the files open.
            ConfigError: the folder of the index may be another program's.
            IndexFailed, NotReady: the disk is full, or may not be written.
        """
        make_private(database.parent)
        self.damage_note = ""  # for users, about a database that was set aside
        self.trouble: sqlite3.Error | None = None  # that only reopening can solve
        with _translating_sqlite(database), ExitStack() as opened:
            self._lock = _acquire_lock(database)
            opened.callback(self._lock.release)
            refuse_newer(database, INDEX)
            self.index = TantivyIndex(index)
            opened.callback(self.index.close)
            if damage:
                self._set_aside(database, damage)
            try:
                self._open_database(database)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                # For text that is not UTF-8 Python raises an error without a code.
                if hasattr(error, "sqlite_errorcode") and not is_damage(error):
                    raise
                self._set_aside(database, str(error))
                self._open_database(database)
            opened.pop_all()
        self.spare = spare
        self.on_written: Callable[[Written], None] = lambda written: None
        self._reading = threading.Lock()
        self._writer = ThreadPoolExecutor(1, "context-writer")

    def _open_database(self, path: Path) -> None:
        with ExitStack() as opened:
            try:
                self.database = Database(path, INDEX)
            except FileExistsError as error:  # only a log, and no free name for it
                raise _set_aside_error(path, error) from error
            opened.callback(self.database.close, clean=False)
            self.batches = Batches(self.database, self.index)
            self.batches.recover()
            self.database.forget_old_copy()
            self._reader = open_second(path, INDEX.pragmas)
            opened.pop_all()

    def _set_aside(self, path: Path, reason: str) -> None:
        """Give a damaged database another name.

        Raises:
            DataDamaged: it cannot be renamed.
        """
        try:
            aside = set_aside(path, reason)
        except OSError as error:
            raise _set_aside_error(path, error) from error
        if aside is not None:
            self.damage_note = (
                f"The code index was damaged, set aside as {aside.name}, and is being "
                "built anew."
            )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lock and yield the connection for reading, for a short time only.

        Raises:
            NotReady: the database cannot be read.
        """
        with self._reading, self._translating_errors(), self._recording_trouble():
            yield self._reader

    @contextmanager
    def _recording_trouble(self) -> Iterator[None]:
        """Record errors that only reopening the database can solve."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if self.trouble is None and (
                is_damage(error) or code == sqlite3.SQLITE_IOERR
            ):
                self.trouble = error
            raise

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Translate errors of SQLite to NotReady, even those of a closed database."""
        try:
            with _translating_sqlite(self.database.path):
                yield
        except (sqlite3.Error, RuntimeError) as error:  # of an executor that ended
            if self.trouble is None:
                raise
            raise _damaged_error() from error

    def writing(
        self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Queue work for the writer thread."""

        def watched() -> T:
            with self._recording_trouble():
                return work(*args, **kwargs)

        return self._writer.submit(watched)

    def change(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Queue work for the writer thread as one durable transaction; do not wait."""

        def transaction() -> T:
            with self._recording_trouble(), self.database.writing() as db:
                return work(db)

        return self._writer.submit(transaction)

    async def wait_for_change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work in the writer thread as one durable transaction, and wait for it.

        Raises:
            NotReady: the database cannot be written; status 507 if the disk is full.
        """
        with self._translating_errors():
            return await asyncio.wrap_future(self.change(work))

    async def run_in_writer(self, work: Callable[[], T]) -> T:
        """Run work in the writer thread and wait; raises as `wait_for_change` does."""
        with self._translating_errors():
            return await asyncio.wrap_future(self.writing(work))

    def put(self, outcomes: Sequence[tuple[IndexTask, ParseOutcome]]) -> None:
        """Write one batch of prepared files, and wait until it is written.

        If this or `flush` fails, repeat all batches since the last flush.
        """

        def work() -> None:
            for written in self.batches.put(outcomes):
                self.on_written(written)

        self._step(work)

    def flush(self) -> None:
        """Make all written files searchable, and wait."""
        self._step(self.batches.flush)

    def _step(self, work: Callable[[], None]) -> None:
        """Run a step of indexing; fail if documents since the commit were lost."""

        def step() -> None:
            try:
                if self.batches.lost:
                    raise IndexFailed("The index could not be written.")
                with self._recording_trouble():
                    work()
            finally:
                self.batches.lost = False

        self._writer.submit(step).result()

    def check_space_to_rebuild(self) -> None:
        """Check that the disk has space for a second index beside this one.

        Raises:
            NotReady: status 507, it has too little.
        """
        needed = self.index.bytes
        if shutil.disk_usage(self.database.path.parent).free < needed + self.spare:
            raise NotReady(
                f"Rebuilding the index needs {needed / 1e6:,.0f} MB more disk space.",
                code="storage_full",
                status=507,
                hint="Free some disk space; the current index stays in use.",
            )

    def content(self, blob_id: int) -> bytes | None:
        """Return the content of a blob; None if it is not stored, or damaged.

        Damaged content is deleted, so that clients are asked to upload it again.
        """
        with self.reading() as db:
            stored = blobs.content_of(db, blob_id)
            damaged = (
                stored is None
                and db.execute(
                    "SELECT 1 FROM content WHERE blob_id = ?", (blob_id,)
                ).fetchone()
            )
        if damaged:
            self.writing(self.batches.drop_blobs, [blob_id])
        return stored

    def parser_crashers(self) -> frozenset[bytes]:
        """Return the names of file versions that crashed the parser in this run."""
        return frozenset(self.batches.parser_crashers)

    def close(self) -> None:
        """Finish writing, and close; after a failure the next start recovers."""
        clean = False
        try:
            self._writer.submit(self.batches.flush).result()
            self._writer.shutdown()
            self.index.close()
            clean = self.trouble is None
        except (IndexFailed, sqlite3.Error) as error:
            _log.error("the last files were not indexed: %s", error)
        self._writer.shutdown()
        with self._reading:
            self._reader.close()
        self.database.close(clean=clean)
        self._lock.release()


def _acquire_lock(database: Path) -> FileLock:
    """Acquire the lock for creating, opening, repairing and replacing the files.

    SQLite and tantivy have locks too, but acquire them only when a file exists and is
    open: if two processes create the files at the same time, one would take the other's
    for damaged.

    Raises:
        IndexInUse: another process has the lock.
        NotReady: it cannot be acquired, such as in a read-only folder.
    """
    path = database.with_name(f"{database.name}.lock")
    lock = FileLock(path, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise index_in_use() from error
    except OSError as error:
        raise NotReady(f"{path} cannot be used: {error.strerror}.") from error
    return lock


def _damaged_error() -> NotReady:
    return NotReady(
        "The code index was found damaged and is being opened again.",
        code="corrupt_data",
        hint="Try again; clients upload their files once more.",
    )


def _set_aside_error(path: Path, error: OSError) -> DataDamaged:
    return DataDamaged(
        f"The database {path} is damaged, and cannot be set aside: {error}.",
        hint=f"Move {path.name} and what was set aside before away.",
    )


@contextmanager
def _translating_sqlite(database: Path) -> Iterator[None]:
    """Translate errors of SQLite to NotReady; status 507 if the disk is full."""
    try:
        yield
    except sqlite3.OperationalError as error:
        _log.error("%s cannot be used: %s", database, error)
        if is_full(database, error):
            raise NotReady(
                "The disk is full; byok cannot store the index.",
                code="storage_full",
                status=507,
                hint="Free some disk space.",
            ) from error
        raise NotReady(f"{database} cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        _log.error("%s is damaged: %s", database, error)
        raise _damaged_error() from error
