"""Uploads as clients see them: known, missing, not yet searchable, refused, full."""

import asyncio
import random
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from byok.core.code_query import BlobNames, Upload
from byok.core.errors import NotReady
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.store.checkpoints import evict
from byok.search.index.store.store import Store
from byok.search.index.types import (
    MAX_BYTES,
    IndexTask,
    ParseJob,
    ParseOutcome,
    Prepared,
    blob_name,
    is_path,
)
from byok.search.index.uploads import Missing
from byok.storage.database import today
from tests.fakes.patience import PATIENCE
from tests.fakes.stores import PlainWorkers, check, of_file, upload, uploading, words

A = upload("src/a.py", "alpha = common\n")
B = upload("src/b.py", "beta = common\n")
UNKNOWN = b"?" * 32
NOTHING_MISSING = Missing([], [])


class Held(PlainWorkers):
    """Prepares nothing until it is let go."""

    go = threading.Event()

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        assert self.go.wait(PATIENCE)
        return super().prepare(jobs)


@pytest.fixture
def go() -> Iterator[threading.Event]:
    Held.go.clear()
    yield Held.go
    Held.go.set()


@pytest.mark.case("B91")
async def test_what_was_uploaded_is_known_and_searchable(tmp_path: Path) -> None:
    """A name that is repeated is answered each time."""
    names = [B.name, A.name, B.name]
    async with uploading(tmp_path) as (uploads, store):
        assert await uploads.find_missing(names) == Missing(names, [])
        assert await uploads.upload([A]) == [A.name]
        missing = await uploads.find_missing(names)
        assert missing == Missing([B.name, B.name], [])
        blobs = await uploads.resolve(BlobNames("", (A.name, B.name)))
        assert (blobs.unknown, blobs.pending) == ([B.name], 0)
        assert len(blobs.view.ids) == 1
        assert store.index.search({"alpha": 1.0}, blobs.view)


async def test_upload_is_unsearchable_only_while_work_goes_on(
    tmp_path: Path, go: threading.Event
) -> None:
    async with uploading(tmp_path, workers=Held, patience=0.05) as (uploads, store):
        await uploads.upload([A, B])
        assert await uploads.find_missing([A.name]) == Missing([], [A.name])
        blobs = await uploads.resolve(BlobNames("", (A.name, B.name)))
        assert (blobs.unknown, blobs.pending) == ([], 2)
        go.set()
        async with asyncio.timeout(PATIENCE):
            while (await uploads.find_missing([A.name, B.name])) != NOTHING_MISSING:
                pass
        assert store.index.chunks == 2


@pytest.mark.case("F25")
async def test_after_a_restart_waiting_uploads_are_indexed(
    tmp_path: Path, go: threading.Event
) -> None:
    async with uploading(tmp_path, workers=Held, patience=0) as (uploads, _):
        await uploads.upload([A, B])
        go.set()  # the batch at hand is finished, or not
    async with uploading(tmp_path) as (uploads, store):
        assert await uploads.find_missing([A.name, B.name]) == NOTHING_MISSING
        assert store.index.chunks == 2
        check(store.database, store.index)


async def test_upload_of_secrets_and_large_files_is_refused_but_known(
    tmp_path: Path,
) -> None:
    secret = upload("conf/.env", "PASSWORD=canary")
    large = upload("large.txt", "x" * (MAX_BYTES + 1))
    long = upload("x" * 256, "no file can have this name")
    fits = upload("fits.txt", "word\n" * (MAX_BYTES // 5))
    async with uploading(tmp_path) as (uploads, store):
        sent = [secret, large, long, fits]
        assert await uploads.upload(sent) == [data.name for data in sent]
        names = [data.name for data in sent]
        assert await uploads.find_missing(names) == NOTHING_MISSING
        with store.reading() as db:
            found = find_known(db, names)
            reasons = [found[name].reason for name in names]
            held = [content_of(db, found[name].id) is not None for name in names]
        assert reasons == ["secret", "too-large", "not-a-file", None]
        assert held == [False, False, False, True]
        assert (await uploads.resolve(BlobNames("", tuple(names)))).unknown == []
    assert b"canary" not in (tmp_path / "data.db").read_bytes()


async def test_a_set_grows_when_its_names_are_uploaded(tmp_path: Path) -> None:
    """The same question, asked again, must not be answered from an old filter."""
    async with uploading(tmp_path) as (uploads, store):
        await uploads.upload([upload(f"{n}.py", f"filler {n}") for n in range(9)])
        await uploads.upload([A])
        await uploads.find_missing([A.name])
        for expected in (1, 2):
            blobs = await uploads.resolve(BlobNames("", (A.name, B.name)))
            hits = store.index.search({"common": 1.0}, blobs.view._replace(chunks=0))
            assert len(hits) == expected
            await uploads.upload([B])
            await uploads.find_missing([B.name])


def write(root: Path, data: Upload) -> None:
    (root / data.path).parent.mkdir(parents=True, exist_ok=True)
    (root / data.path).write_bytes(data.content)


def indexed(data: Upload) -> tuple[IndexTask, ParseOutcome]:
    chunk = words(data.path, "common")
    prepared = Prepared(data.name, 1, None, chunk.spans, chunk.documents, data.path)
    return of_file(data.path, prepared)


async def test_workspace_files_are_held_when_asked_for_and_unchanged(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    write(root, A)
    write(root, B)
    async with uploading(tmp_path / "store", roots={1: root}) as (uploads, store):
        sql = "INSERT INTO workspace(id, root) VALUES(1, 'x')"
        store.change(lambda db: db.execute(sql)).result()
        store.put([indexed(A), indexed(B)])
        store.flush()
        with store.reading() as db:
            assert db.execute("SELECT count(*) FROM content").fetchone() == (0,)
        (root / B.path).write_text("changed")
        assert await uploads.find_missing([A.name, B.name]) == Missing([B.name], [])
        write(root, A._replace(content=b"changed too"))
        checkpoint = await uploads.checkpoint(BlobNames("", (A.name, B.name)))
        assert checkpoint
        store.writing(store.batches.drop_files, 1, [A.path, B.path]).result()
        store.flush()
        blobs = await uploads.resolve(BlobNames(checkpoint))
        assert (len(blobs.view.ids), blobs.unknown) == (2, [B.name])
        await uploads.upload([B])
        assert (await uploads.resolve(BlobNames(checkpoint))).unknown == []
        check(store.database, store.index)


async def test_a_file_that_goes_before_it_is_held_is_not(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, A)
    async with uploading(tmp_path / "store", roots={1: root}) as (uploads, store):

        class Dropping(Store):
            """The file is dropped after it was looked for, before it is kept."""

            def __init__(self) -> None:
                self.__dict__ = store.__dict__

            def change(self, work):  # type: ignore[no-untyped-def]
                self.writing(self.batches.drop_files, 1, [A.path])
                return super().change(work)

        sql = "INSERT INTO workspace(id, root) VALUES(1, 'x')"
        store.change(lambda db: db.execute(sql)).result()
        store.put([indexed(A)])
        store.flush()
        uploads.contents.store = Dropping()
        assert await uploads.find_missing([A.name]) == Missing([A.name], [])
        with store.reading() as db:
            assert db.execute("SELECT count(*) FROM content").fetchone() == (0,)


@pytest.mark.case("B113")
async def test_a_checkpoint_that_was_evicted_is_unknown_at_once(tmp_path: Path) -> None:
    async with uploading(tmp_path) as (uploads, store):
        await uploads.upload([A])
        made = await uploads.checkpoint(BlobNames("", (A.name, UNKNOWN)))
        assert made
        assert (await uploads.resolve(BlobNames(made))).checkpoint_found
        evicting = store.writing(evict, store.database, store.batches, 1, today())
        await asyncio.wrap_future(evicting)  # as a flood of names makes it
        assert not (await uploads.resolve(BlobNames(made))).checkpoint_found


def noise(number: int, size: int = 40_000) -> Upload:
    """Return an upload that cannot be packed."""
    text = random.Random(number).randbytes(size // 2).hex()
    lines = "\n".join(text[i : i + 60] for i in range(0, len(text), 60))
    return upload(f"noise{number}.txt", lines)


@pytest.mark.case("F28")
async def test_a_disk_with_too_little_room_takes_no_uploads(tmp_path: Path) -> None:
    async with uploading(tmp_path, free_bytes=2**62) as (uploads, _):
        with pytest.raises(NotReady) as caught:
            await uploads.upload([A])
        assert (caught.value.status, caught.value.code) == (507, "storage_full")
        assert await uploads.find_missing([A.name]) == Missing([A.name], [])


@pytest.mark.case("F28")
async def test_upload_into_a_full_store_evicts_where_possible(tmp_path: Path) -> None:
    async with uploading(tmp_path, store_bytes=60_000) as (uploads, store):
        old = [noise(n) for n in range(4)]
        await uploads.upload(old)
        assert await uploads.find_missing([old[0].name]) == NOTHING_MISSING
        with pytest.raises(NotReady) as caught:  # all were used today
            await uploads.upload([A])
        assert caught.value.status == 507
        assert (await uploads.find_missing([one.name for one in old])).unknown == []
        store.change(lambda db: db.execute("UPDATE blob SET used = 1")).result()
        await uploads.upload([A])
        assert await uploads.find_missing([A.name]) == NOTHING_MISSING
        missing = await uploads.find_missing([one.name for one in old])
        assert len(missing.unknown) >= 1
        check(store.database, store.index)


@pytest.mark.case("B113")
async def test_upload_on_a_full_disk_keeps_no_checkpoint_and_no_copies(
    tmp_path: Path,
) -> None:
    async with uploading(tmp_path, free_bytes=2**62) as (uploads, store):
        with pytest.raises(NotReady) as caught:
            await uploads.checkpoint(BlobNames("", (UNKNOWN,)))
        assert (caught.value.status, caught.value.code) == (507, "storage_full")
        with store.reading() as db:
            assert db.execute("SELECT count(*) FROM blob").fetchone() == (0,)


@pytest.mark.case("B113")
async def test_a_flood_of_unknown_names_stays_small_and_keeps_no_upload_out(
    tmp_path: Path,
) -> None:
    limit = 150_000
    async with uploading(tmp_path, store_bytes=limit) as (uploads, store):
        made: str | None = ""
        for number in range(40):
            names = [sha256(b"%d %d" % (number, n)).digest() for n in range(200)]
            made = await uploads.checkpoint(BlobNames(made or "", tuple(names)))
        assert store.database.path.stat().st_size < 3 * limit
        assert len(await uploads.upload([Upload(b"", "a.py", b"x = 1")])) == 1
        assert await uploads.checkpoint(BlobNames("", (UNKNOWN,)))


# Names of file versions


def test_blob_name_is_the_hash_that_clients_compute() -> None:
    assert blob_name("a/ü.py", b"x") == sha256("a/ü.py".encode() + b"x").digest()
    assert blob_name("\udcff.py", b"") == sha256(b"\xff.py").digest()


@pytest.mark.parametrize(
    ("path", "can_be"),
    [
        ("", True),
        ("a/b.py", True),
        ("a/" + "x" * 255, True),
        ("a/" + "x" * 256, False),
        ("x/" * 2047 + "ab", True),
        ("x/" * 2047 + "abc", False),
        ("/" * 10_000_000, False),
    ],
)
def test_blob_name_path_length_is_limited(path: str, can_be: bool) -> None:
    assert is_path(path) is can_be
