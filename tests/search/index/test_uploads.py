"""Uploads as clients see them: known, missing, not yet searchable, refused, full."""

import asyncio
import random
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from byok.core.code_query import Upload
from byok.core.errors import NotReady
from byok.search.index.store.blobs import content_of, find_known
from byok.search.index.types import (
    MAX_BYTES,
    IndexTask,
    ParseJob,
    ParseOutcome,
    Prepared,
)
from byok.search.index.uploads import Missing, Uploads
from tests.fakes.disk import fill, mounted
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


async def test_what_was_uploaded_is_known_and_searchable(tmp_path: Path) -> None:
    async with uploading(tmp_path) as (uploads, store):
        assert await uploads.find_missing([A.name, B.name]) == Missing(
            [A.name, B.name], []
        )
        assert await uploads.upload([A]) == [A.name]
        assert await uploads.find_missing([A.name, B.name]) == Missing([B.name], [])
        blobs = await uploads.resolve("", [A.name, B.name], [])
        assert (blobs.unknown, blobs.pending) == ([B.name], 0)
        assert len(blobs.view.ids) == 1
        assert store.index.search({"alpha": 1.0}, blobs.view)


async def test_uploads_of_nothing(tmp_path: Path) -> None:
    async with uploading(tmp_path) as (uploads, _):
        assert await uploads.find_missing([]) == NOTHING_MISSING
        assert await uploads.upload([]) == []
        assert (await uploads.resolve("", [], [])).view.ids == frozenset()


async def test_upload_paths_of_excessive_length_are_refused_at_once(
    tmp_path: Path,
) -> None:
    async with uploading(tmp_path) as (uploads, store):
        sent = [upload("_credentials" * 80_000, "x"), upload("a/" * 500_000, "y")]
        async with asyncio.timeout(PATIENCE):
            names = await uploads.upload(sent)
        assert names == [one.name for one in sent]
        assert await uploads.find_missing(names) == NOTHING_MISSING
        rows = store.database.rows("SELECT path, reason FROM blob")
        assert rows == [("", "not-a-file")] * 2


@pytest.mark.case("B91")
async def test_find_missing_answers_a_repeated_name_twice(tmp_path: Path) -> None:
    async with uploading(tmp_path) as (uploads, _):
        await uploads.upload([A])
        missing = await uploads.find_missing([UNKNOWN, A.name, UNKNOWN, A.name])
        assert missing == Missing([UNKNOWN, UNKNOWN], [])


async def test_upload_is_unsearchable_only_while_work_goes_on(
    tmp_path: Path, go: threading.Event
) -> None:
    async with uploading(tmp_path, workers=Held, patience=0.05) as (uploads, store):
        await uploads.upload([A, B])
        assert await uploads.find_missing([A.name]) == Missing([], [A.name])
        blobs = await uploads.resolve("", [A.name, B.name], [])
        assert (blobs.unknown, blobs.pending) == ([], 2)
        go.set()
        async with asyncio.timeout(PATIENCE):
            while (await uploads.find_missing([A.name, B.name])) != NOTHING_MISSING:
                pass
        assert store.index.chunks == 2


async def test_a_question_waits_a_moment_for_the_last_uploads(
    tmp_path: Path, go: threading.Event
) -> None:
    async with uploading(tmp_path, workers=Held, patience=30) as (uploads, _):
        await uploads.upload([A])
        asked = asyncio.ensure_future(uploads.find_missing([A.name]))
        await asyncio.sleep(0.05)
        assert not asked.done()
        go.set()
        assert await asked == NOTHING_MISSING


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


@pytest.mark.case("B64")
async def test_upload_under_a_wrong_name_is_an_alias_of_the_blob(
    tmp_path: Path,
) -> None:
    wrong, foreign = A._replace(name=b"w" * 32), B._replace(name=b"\0my/b.py")
    async with uploading(tmp_path) as (uploads, store):
        assert await uploads.upload([wrong, foreign]) == [A.name, B.name]
        names = [A.name, wrong.name, B.name, foreign.name]
        assert await uploads.find_missing(names) == NOTHING_MISSING
        one = await uploads.resolve("", [wrong.name], [])
        assert one.view.ids == (await uploads.resolve("", [A.name], [])).view.ids
        checkpoint = await uploads.checkpoint("", names, [wrong.name])
        assert checkpoint
        left = await uploads.resolve(checkpoint, [], [])
        assert left.view.ids == (await uploads.resolve("", [B.name], [])).view.ids
        assert store.index.search({"beta": 1.0}, left.view)


async def test_a_foreign_name_in_a_checkpoint_is_found_once_uploaded(
    tmp_path: Path,
) -> None:
    given = A._replace(name=b"\0a")
    async with uploading(tmp_path) as (uploads, store):
        checkpoint = await uploads.checkpoint("", [given.name], [])
        assert checkpoint
        assert (await uploads.resolve(checkpoint, [], [])).unknown == [given.name]
        await uploads.upload([given])
        assert await uploads.find_missing([given.name]) == NOTHING_MISSING
        blobs = await uploads.resolve(checkpoint, [], [])
        assert blobs.unknown == []
        assert store.index.search({"alpha": 1.0}, blobs.view)


@pytest.mark.case("B65")
async def test_upload_of_two_files_with_one_name_serves_the_first(
    tmp_path: Path,
) -> None:
    first, second = upload("src/a", ".py code"), upload("src/a.py", " code")
    async with uploading(tmp_path) as (uploads, store):
        assert await uploads.upload([first]) == await uploads.upload([second])
        assert await uploads.upload([second, first]) == [first.name] * 2
        with store.reading() as db:
            blob_id = find_known(db, [first.name])[first.name].id
        assert store.content(blob_id) == b".py code"


async def test_upload_of_secrets_and_large_files_is_refused_but_known(
    tmp_path: Path,
) -> None:
    secret = upload("conf/.env", "PASSWORD=canary")
    large = upload("large.txt", "x" * (MAX_BYTES + 1))
    fits = upload("fits.txt", "word\n" * (MAX_BYTES // 5))
    async with uploading(tmp_path) as (uploads, store):
        sent = [secret, large, fits]
        assert await uploads.upload(sent) == [data.name for data in sent]
        names = [data.name for data in sent]
        assert await uploads.find_missing(names) == NOTHING_MISSING
        with store.reading() as db:
            found = find_known(db, names)
            reasons = [found[name].reason for name in names]
            held = [content_of(db, found[name].id) is not None for name in names]
        assert (reasons, held) == (["secret", "too-large", None], [False, False, True])
        assert (await uploads.resolve("", names, [])).unknown == []
    assert b"canary" not in (tmp_path / "data.db").read_bytes()


async def test_upload_of_a_file_that_is_no_text_is_known_with_a_reason(
    tmp_path: Path,
) -> None:
    async with uploading(tmp_path) as (uploads, store):
        (name,) = await uploads.upload([upload("a.dat2", "\0\1\2" * 99)])
        assert await uploads.find_missing([name]) == NOTHING_MISSING
        with store.reading() as db:
            assert find_known(db, [name])[name].reason == "binary"


@pytest.mark.case("B66")
@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "..\\..\\x", "C:\\x", "\\\\srv\\s", "a/../../b", "\0"),
        *("x" * 5000, "CON", "dot.", "a/" * 3000, "\ud800", "'; DROP TABLE blob --"),
    ],
)
async def test_upload_path_is_data_and_never_a_place(tmp_path: Path, path: str) -> None:
    data = Upload(b"", path, b"content")
    async with uploading(tmp_path / "store") as (uploads, store):
        (name,) = await uploads.upload(
            [data._replace(path=path.replace("\ud800", "?"))]
        )
        assert await uploads.find_missing([name]) == NOTHING_MISSING
        check(store.database, store.index)
    assert [found.name for found in tmp_path.iterdir()] == ["store"]
    names = {found.name for found in (tmp_path / "store").iterdir()}
    assert names - {"data.db.lock"} == {"data.db", "index"}


async def test_a_set_grows_when_its_names_are_uploaded(tmp_path: Path) -> None:
    """The same question, asked again, must not be answered from an old filter."""
    async with uploading(tmp_path) as (uploads, store):
        await uploads.upload([upload(f"{n}.py", f"filler {n}") for n in range(9)])
        await uploads.upload([A])
        await uploads.find_missing([A.name])
        for expected in (1, 2):
            blobs = await uploads.resolve("", [A.name, B.name], [])
            hits = store.index.search({"common": 1.0}, blobs.view._replace(chunks=0))
            assert len(hits) == expected
            await uploads.upload([B])
            await uploads.find_missing([B.name])


@pytest.mark.case("B92")
async def test_blob_set_is_made_of_checkpoint_and_changes(tmp_path: Path) -> None:
    async with uploading(tmp_path) as (uploads, _):
        await uploads.upload([A, B])
        base = await uploads.checkpoint("", [A.name], [UNKNOWN])
        assert base
        assert await uploads.checkpoint("", [A.name, B.name], [B.name]) == base
        both = await uploads.checkpoint(base, [B.name], [])
        assert both
        for checkpoint, added, deleted, size in (
            (base, [], [], 1),
            (base, [B.name], [], 2),
            (both, [B.name], [B.name], 1),
            (both, [], [A.name, B.name, UNKNOWN], 0),
        ):
            blobs = await uploads.resolve(checkpoint, added, deleted)
            assert blobs.checkpoint_found
            assert len(blobs.view.ids) == size
        assert await uploads.checkpoint("byok-none", [], []) is None
        none = await uploads.resolve("byok-none", [A.name], [])
        assert (none.checkpoint_found, len(none.view.ids)) == (False, 1)


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
        checkpoint = await uploads.checkpoint("", [A.name, B.name], [])
        assert checkpoint
        store.writing(store.batches.drop_files, 1, [A.path, B.path]).result()
        store.flush()
        blobs = await uploads.resolve(checkpoint, [], [])
        assert (len(blobs.view.ids), blobs.unknown) == (2, [B.name])
        await uploads.upload([B])
        assert (await uploads.resolve(checkpoint, [], [])).unknown == []
        check(store.database, store.index)


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
            await uploads.checkpoint("", [UNKNOWN], [])
        assert (caught.value.status, caught.value.code) == (507, "storage_full")
        with store.reading() as db:
            assert db.execute("SELECT count(*) FROM blob").fetchone() == (0,)


@pytest.mark.case("B113")
async def test_a_flood_of_unknown_names_stays_small_and_keeps_no_upload_out(
    tmp_path: Path,
) -> None:
    limit = 400_000
    async with uploading(tmp_path, store_bytes=limit) as (uploads, store):
        made: str | None = ""
        for number in range(100):
            names = [sha256(b"%d %d" % (number, n)).digest() for n in range(200)]
            made = await uploads.checkpoint(made or "", names, [])
        assert store.database.path.stat().st_size < 3 * limit
        assert len(await uploads.upload([Upload(b"", "a.py", b"x = 1")])) == 1
        assert await uploads.checkpoint("", [UNKNOWN], [])


async def searchable(uploads: Uploads, names: list[bytes]) -> None:
    """Wait until all are found; the indexer may be in a pause after a failure."""
    async with asyncio.timeout(PATIENCE):
        while (missing := await uploads.find_missing(names)).nonindexed:
            await asyncio.sleep(0.02)
    assert missing == NOTHING_MISSING


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "4m") as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.case("F28")
async def test_a_full_disk_refuses_uploads_and_recovers_without_a_restart(
    small_disk: Path,
) -> None:
    kept: list[bytes] = []
    filler = small_disk / "filler"
    filler.write_bytes(bytes(2_000_000))
    async with uploading(small_disk, patience=0, first_pause=0.01) as (uploads, store):
        refused = None
        for number in range(200):
            data = noise(number)
            try:
                kept += await uploads.upload([data])
            except NotReady as error:
                assert (error.status, error.code) == (507, "storage_full")
                refused = data
                break
        assert refused
        assert kept
        assert (await uploads.find_missing(kept)).unknown == []
        with pytest.raises(NotReady):
            await uploads.upload([noise(998, 200_000)])
        with pytest.raises(NotReady):
            await uploads.checkpoint("", [bytes([n]) * 32 for n in range(250)] * 9, [])
        filler.unlink()
        kept += await uploads.upload([refused])
        await searchable(uploads, kept)
        check(store.database, store.index)


@pytest.mark.case("F28")
async def test_upload_on_a_full_disk_is_indexed_when_there_is_room_again(
    small_disk: Path,
) -> None:
    async with uploading(small_disk, patience=0, first_pause=0.01) as (uploads, store):
        filler = small_disk / "filler"
        await uploads.upload([A])
        fill(filler)
        with filler.open("r+b", buffering=0) as file:
            file.truncate(filler.stat().st_size - 120_000)
        names: list[bytes] = [A.name]
        for number in range(50):
            try:
                names += await uploads.upload([noise(number, 8_000)])
            except NotReady:
                break
        await asyncio.sleep(0.1)  # some attempts fail
        filler.unlink()
        await searchable(uploads, names)
        check(store.database, store.index)
