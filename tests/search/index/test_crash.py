"""Killed at any moment, the store loses nothing that was acknowledged.

`python -m tests.search.index.test_crash FOLDER SEED` uploads, indexes, changes and
drops files until it is killed, and writes to FOLDER/said what was acknowledged.
"""

import asyncio
import os
import random
import sys
from itertools import count
from pathlib import Path

import pytest

from byok.core.code_query import BlobNames, Upload
from byok.search.index.parse.prepare import prepare
from byok.search.index.store import checkpoints
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.store import Store
from tests.fakes.kills import heard, kill_one, say
from tests.fakes.stores import check, of_file, open_store, upload, uploading

BATCH = 12
VERSIONS = 15  # files of the workspace, each with ever new versions


def sample(number: int) -> Upload:
    """Return an upload that any process makes from its number."""
    rng = random.Random(number)
    rows = "\n".join(f"word{rng.randrange(99)} = {n}" for n in range(rng.randrange(60)))
    return upload(f"src/f{number}.py", rows)


def samples(first: int | str) -> list[Upload]:
    return [sample(number) for number in range(int(first), int(first) + BATCH)]


async def live(folder: Path, seed: int) -> None:
    """Work until somebody kills this process."""
    rng = random.Random(seed)
    print("opening", flush=True)
    async with uploading(folder, patience=0) as (uploads, store):
        sql = "INSERT OR IGNORE INTO workspace(id, root) VALUES(1, 'x')"
        store.change(lambda db: db.execute(sql)).result()
        for number in count(seed * 1000, BATCH):
            names = await uploads.upload(samples(number))
            say(folder / "said", [f"held {number}"])
            made = await uploads.checkpoint(BlobNames("", tuple(names)))
            say(folder / "said", [f"{made} {number}"])
            await asyncio.to_thread(_work, store, rng)


def _work(store: Store, rng: random.Random) -> None:
    outcomes = []
    for _ in range(rng.randrange(8)):
        path = f"w{rng.randrange(VERSIONS)}.py"
        content = sample(rng.randrange(999)).content
        outcomes.append(of_file(path, prepare(path, content, plain=True)))
    store.put(outcomes)
    if rng.random() < 0.4:
        paths = [f"w{rng.randrange(VERSIONS)}.py" for _ in range(3)]
        store.writing(store.batches.drop_files, 1, paths).result()
        store.writing(store.batches.flush).result()


def look(folder: Path, store: Store) -> list[bytes]:
    """Check that all that was acknowledged is there; returns the names of it."""
    check(store.database, store.index)
    held = list[bytes]()
    with store.reading() as db:
        ids = dict(db.execute("SELECT name, id FROM blob").fetchall())
        for kind, first in map(str.split, heard(folder / "said")):
            made = samples(first)
            if kind == "held":
                known = find_known(db, [data.name for data in made])
                for data in made:
                    assert content_of(db, known[data.name].id) == data.content
                held += known
            else:
                expected = {ids[data.name] for data in made}
                assert checkpoints.members_of(db, kind) == expected
    return held


def look_as_the_next_start(folder: Path) -> None:
    """Open the store, check all, and go without an end."""
    store = open_store(folder)
    try:
        look(folder, store)
    finally:
        store.index.close()
        store.database.close(clean=False)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.slow
@pytest.mark.case("F25")
async def test_crash_recovery_survives_eight_kills(tmp_path: Path) -> None:
    rng = random.Random(os.getpid())
    for _ in range(8):
        await asyncio.to_thread(
            kill_one, "tests.search.index.test_crash", tmp_path, rng, 0.5
        )
        if rng.random() < 0.4:
            await asyncio.to_thread(look_as_the_next_start, tmp_path)
    async with uploading(tmp_path, patience=30) as (uploads, store):
        names = look(tmp_path, store)
        assert await uploads.find_missing(names) == ([], [])
        store.writing(store.batches.flush).result()
        look(tmp_path, store)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
