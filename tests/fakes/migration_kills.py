"""A start that migrates a version 1 database, killed again and again.

`python -m tests.fakes.migration_kills moments [EVERY]` kills it before and after every
call that the migrating modules make (or every EVERY-th), once each.
`python -m tests.fakes.migration_kills random KILLS [MEGABYTES]` kills it at random
moments, some in a row, with a database of that size.

Each start is a fork of this process, which stays without threads for that.
"""

import os
import pickle
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.checkpoints import members_of
from byok.search.index.store.store import Store
from byok.storage import database, kind, migration
from tests.fakes.stores import check, open_store
from tests.fakes.version_1 import (
    ALIAS,
    BARE_NAME,
    CHECKPOINT,
    CRASHER,
    Version1,
    search,
    write_version_1,
)

_WATCHED = {m.__file__ for m in (database, kind, migration)}


class Killer:
    """Kills this process at the so-manieth event of the migrating modules."""

    def __init__(self, moment: int) -> None:
        self.count = 0
        self._moment = moment

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Count calls and returns, of Python and of C functions."""
        if frame.f_code.co_filename in _WATCHED:
            self.count += 1
            if self.count == self._moment:
                os.kill(os.getpid(), signal.SIGKILL)


def start(folder: Path, moment: int = 0) -> int:
    """Open the store as a start does; returns how many moments that has."""
    killer = Killer(moment)
    sys.setprofile(killer)
    try:
        store = open_store(folder)
    finally:
        sys.setprofile(None)
    store.close()
    return killer.count


def fork(work: Callable[[], object]) -> int:
    """Run something in a process of its own; returns its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def wait(pid: int) -> int:
    """Return the exit code of a process, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_migrated(folder: Path, made: Version1) -> None:
    """Open the folder twice: all is there, and the copy only after the first time."""
    was_old = _version(folder) == 1
    store = open_store(folder)
    _check_all(store, made)
    for copy in copies(folder):
        _check_copy(copy, made)
    store.close()
    assert len(copies(folder)) == was_old
    start(folder)
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["data.db", "data.db.lock", "index"], left


def copies(folder: Path) -> list[Path]:
    """Return the copies of old databases."""
    return list(folder.glob("data.db.v*"))


def _check_copy(copy: Path, made: Version1) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
        assert db.execute("SELECT name FROM killer").fetchall() == [(CRASHER,)]
        for name, (_, content) in made.uploads.items():
            assert content_of(db, find_known(db, [name])[name].id) == content


def _check_all(store: Store, made: Version1) -> None:
    check(store.database, store.index)
    with store.reading() as db:
        assert {q: search(db, store.index, q) for q in made.found} == made.found
        found = find_known(db, [*made.uploads, ALIAS, BARE_NAME])
        for name, (_, content) in made.uploads.items():
            assert found[name].is_held
            assert content_of(db, found[name].id) == content
        assert found[ALIAS] == found[made.alias_of]
        assert not found[BARE_NAME].is_held
        names = dict(db.execute("SELECT id, name FROM blob").fetchall())
        members = members_of(db, CHECKPOINT) or set()
        assert {names[blob_id] for blob_id in members} == made.members
        files = db.execute("SELECT path, blob_id, size FROM file").fetchall()
        assert {path: names[blob_id] for path, blob_id, _ in files} == made.files
        assert {size for _, _, size in files} <= {5}
        assert db.execute("SELECT root FROM workspace").fetchall() == [("/w",)]
        assert db.execute("SELECT name FROM parser_crasher").fetchall() == [(CRASHER,)]


def _write_old(folder: Path, count: int, bulk: int = 0) -> Version1:
    """Write the old folder in a process of its own, as that starts threads."""
    made = folder / "made"

    def write() -> None:
        made.write_bytes(pickle.dumps(write_version_1(folder / "old", count, bulk)))

    assert wait(fork(write)) == 0
    found: Version1 = pickle.loads(made.read_bytes())
    return found


def at_each_moment(folder: Path, every: int = 1) -> str:
    """Kill a start at its first moment, the next one and so on."""
    made = _write_old(folder, 12)
    kills, moment = 0, 1
    while True:
        place = folder / "new"
        shutil.copytree(folder / "old", place)
        code = wait(fork(partial(start, place, moment)))
        assert code in (0, -signal.SIGKILL), code
        assert wait(fork(partial(check_migrated, place, made))) == 0, moment
        shutil.rmtree(place)
        if code == 0:
            return f"{kills} kills, one at each moment: nothing lost"
        kills += 1
        moment += every


def at_random(folder: Path, kills: int, megabytes: int = 0, seed: int = 1) -> str:
    """Kill starts at random moments of their first seconds, some in a row."""
    made = _write_old(folder, 40, megabytes * 2**20)
    rng = random.Random(seed)
    shutil.copytree(folder / "old", folder / "new")
    began = time.monotonic()
    assert wait(fork(lambda: start(folder / "new"))) == 0
    whole = time.monotonic() - began
    done = before = copied = 0
    while done < kills:
        shutil.rmtree(folder / "new")
        shutil.copytree(folder / "old", folder / "new")
        while done < kills:
            pid = fork(lambda: start(folder / "new"))
            time.sleep(rng.uniform(0, 1.1 * whole))
            os.kill(pid, signal.SIGKILL)
            done += wait(pid) == -signal.SIGKILL
            before += _version(folder / "new") == 1
            copied += bool(copies(folder / "new"))
            if rng.random() < 0.6:
                break
        assert wait(fork(lambda: check_migrated(folder / "new", made))) == 0
    return (
        f"{done} kills ({before} times the old version was left, {copied} times a copy "
        f"whole or half; a start takes {whole:.3f} s): nothing lost"
    )


def _version(folder: Path) -> int:
    uri = f"file:{folder / 'data.db'}?mode=ro"  # so that it changes nothing
    with closing(sqlite3.connect(uri, uri=True)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def main(arguments: list[str]) -> None:
    """Kill, and print the figures."""
    kind, *numbers = arguments
    work: Callable[..., str] = at_each_moment if kind == "moments" else at_random
    with TemporaryDirectory() as folder:
        print(work(Path(folder), *map(int, numbers)))


if __name__ == "__main__":
    main(sys.argv[1:])
