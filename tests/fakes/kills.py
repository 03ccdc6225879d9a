"""A store that is killed again and again, and what must be left of it each time.

`python -m tests.fakes.kills FOLDER SEED` uploads, indexes, changes and drops
files until it is killed, and writes to FOLDER/said what it acknowledged.
"""

import asyncio
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from byok.core.code_query import Upload
from byok.search.index.parse.prepare import prepare
from byok.search.index.store import checkpoints
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.store import Store
from byok.search.index.uploads import Uploads
from tests.fakes.stores import check, of_file, open_store, upload, uploading

ROOT = Path(__file__).parents[2]
_BATCH = 12
_VERSIONS = 15  # files of the workspace, each with ever new versions


def sample(number: int) -> Upload:
    """Return an upload that any process makes from its number."""
    rng = random.Random(number)
    count = rng.randrange(60)
    lines = "\n".join(f"word{rng.randrange(99)} = {n}" for n in range(count))
    return upload(f"src/f{number}.py", lines)


@dataclass
class Said:
    """What was acknowledged, as numbers of samples; `dropped` may be gone."""

    held: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    sets: dict[str, range] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> "Said":
        said = cls()
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        for kind, *rest in map(str.split, lines):
            if kind == "held":
                said.held.update(range(int(rest[0]), int(rest[1])))
            elif kind == "drop":
                said.dropped.add(int(rest[0]))
            else:
                said.sets[rest[0]] = range(int(rest[1]), int(rest[2]))
        return said

    @property
    def next(self) -> int:
        """The first number that was not acknowledged; it may be stored all the same."""
        return max(self.held, default=-1) + 1


async def live(folder: Path, seed: int) -> None:
    """Work until somebody kills this process."""
    rng = random.Random(seed)
    said = Said.read(folder / "said")
    print("opening", flush=True)
    with (folder / "said").open("a") as file:
        async with uploading(folder, patience=0) as (uploads, store):
            sql = "INSERT OR IGNORE INTO workspace(id, root) VALUES(1, 'x')"
            store.change(lambda db: db.execute(sql)).result()
            number = said.next
            while True:
                await _step(uploads, store, rng, number, file)
                number += _BATCH


async def _step(
    uploads: Uploads, store: Store, rng: random.Random, number: int, file: TextIO
) -> None:
    numbers = range(number, number + _BATCH)
    names = await uploads.upload([sample(n) for n in numbers])
    _say(file, f"held {numbers.start} {numbers.stop}")
    made = await uploads.checkpoint("", names, [])
    _say(file, f"set {made} {numbers.start} {numbers.stop}")
    outcomes = []
    for _ in range(rng.randrange(8)):
        path = f"w{rng.randrange(_VERSIONS)}.py"
        prepared = prepare(path, sample(rng.randrange(999)).content, plain=True)
        outcomes.append(of_file(path, prepared))
    await asyncio.to_thread(store.put, outcomes)
    if rng.random() < 0.4:
        await asyncio.to_thread(_drop, store, rng, number, file)


def _drop(store: Store, rng: random.Random, number: int, file: TextIO) -> None:
    paths = [f"w{rng.randrange(_VERSIONS)}.py" for _ in range(3)]
    store.writing(store.batches.drop_files, 1, paths).result()
    old = rng.randrange(number + 1)
    with store.reading() as db:
        entry = find_known(db, [sample(old).name]).get(sample(old).name)
    if entry and entry.state == 1:
        _say(file, f"drop {old}")
        store.writing(store.batches.drop_blobs, [entry.id]).result()
    store.writing(store.batches.flush).result()


def _say(file: TextIO, line: str) -> None:
    file.write(f"{line}\n")
    file.flush()


def kill_one(module: str, folder: Path, rng: random.Random, longest: float) -> None:
    """Let a module live in the folder, and kill it within some seconds."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, folder, str(rng.randrange(10**9))], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        process.stdout.readline()
        time.sleep(rng.uniform(0, rng.choice([longest / 10, longest])))
    finally:
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    assert b"Traceback" not in errors, errors.decode()


def _look(folder: Path) -> None:
    """Open the store as the next start does, check all, and go without an end."""
    store = open_store(folder)
    try:
        check(store.database, store.index)
        _check_said(store, Said.read(folder / "said"))
    finally:
        store.index.close()
        store.database.close(clean=False)


def _check_said(store: Store, said: Said) -> None:
    with store.reading() as db:
        for number in said.held - said.dropped:
            data = sample(number)
            entry = find_known(db, [data.name])[data.name]
            assert entry.is_held
            assert content_of(db, entry.id) == data.content
        names = dict(db.execute("SELECT id, name FROM blob").fetchall())
        for checkpoint, numbers in said.sets.items():
            members = checkpoints.members_of(db, checkpoint)
            assert members is not None
            expected = {sample(number).name for number in numbers}
            assert {names[blob_id] for blob_id in members} == expected


async def _finish(folder: Path) -> None:
    """Let a start go on to its end."""
    said = Said.read(folder / "said")
    names = [sample(number).name for number in sorted(said.held - said.dropped)]
    async with uploading(folder, patience=30) as (uploads, store):
        assert await uploads.find_missing(names) == ([], [])
        store.writing(store.batches.flush).result()
        check(store.database, store.index)
        _check_said(store, said)


def run(folder: Path, kills: int, seed: int) -> None:
    """Kill so often, some in a row; nothing is damaged and nothing lost."""
    rng = random.Random(seed)
    for _ in range(kills):
        kill_one("tests.fakes.kills", folder, rng, 0.5)
        if rng.random() < 0.4:
            _look(folder)
    asyncio.run(_finish(folder))


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
