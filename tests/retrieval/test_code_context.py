"""The door to what byok knows of code: shut until somebody needs it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from byok.augment.reply_job import Facts
from byok.chat import Json
from byok.code_query import BlobNames, Wanted, to_bytes
from byok.errors import BadRequest, ByokError, ConfigError
from byok.index.options import Options
from byok.index.versions import blob_name
from byok.retrieval.code_context import CodeContext
from byok.routing import Service
from tests.fakes.engines import project, until


class Door(CodeContext):
    """A context in a folder of the test."""

    def __init__(self, folder: Path, *roots: Path) -> None:
        self.database = folder / "data.db"
        options = Options(roots=roots, workers=1)
        super().__init__(self.database, folder / "index", options)

    async def upload(self, **files: str) -> list[str]:
        blobs = [
            {"path": name.replace("__", "."), "content": text}
            for name, text in files.items()
        ]
        names = (await self.answer(Service.BATCH_UPLOAD, {"blobs": blobs}))[
            "blob_names"
        ]
        return [str(name) for name in names]

    async def indexed(self) -> None:
        async def is_indexed() -> bool:
            status = await self.answer(Service.INDEX_STATUS, {})
            return bool(status["state"] == "indexed")

        await until(is_indexed)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    made = Door(tmp_path / "data")
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "zoo", lion__py="def feed_lion(): pass\n")


async def test_who_only_chats_gets_no_files(door: Door) -> None:
    assert await door.facts(BlobNames()) == Facts()
    status = await door.answer(Service.INDEX_STATUS, {})
    assert (status["state"], status["workspaces"]) == ("standby", [])
    assert not door.database.parent.exists()


async def test_an_upload_is_known_and_found(door: Door) -> None:
    [name] = await door.upload(a__py="lion")
    assert name == blob_name("a.py", b"lion").hex()
    asked = {"blob_names": [name, "0" * 64]}
    missing = await door.answer(Service.FIND_MISSING, asked)
    assert missing["unknown_blob_names"] == ["0" * 64]
    await door.indexed()
    reply = await door.answer(
        Service.RETRIEVAL, {"query": "lion", "blobs": {"added_blobs": [name]}}
    )
    assert "Path: a.py" in reply["formatted_retrieval"]


async def test_the_clients_own_name_stands_for_its_blob(door: Door) -> None:
    blob = {"blob_name": "mine", "path": "a.py", "content": "lion"}
    sent = await door.answer(Service.BATCH_UPLOAD, {"blobs": [blob]})
    assert sent["blob_names"] == ["mine"]
    await door.indexed()
    asked = {"mem_object_names": ["mine", "theirs"]}
    missing = await door.answer(Service.FIND_MISSING, asked)
    assert missing["unknown_memory_names"] == ["theirs"]


async def test_facts_name_what_is_unknown(door: Door) -> None:
    [name] = await door.upload(a__py="lion")
    names = BlobNames("lost", (to_bytes(name), to_bytes("0" * 64), to_bytes("x")))
    assert await door.facts(names) == Facts("", ("0" * 64, "x"), False)


async def test_a_checkpoint_stands_for_its_names(door: Door) -> None:
    [name] = await door.upload(a__py="lion")
    made = await door.answer(Service.CHECKPOINT, {"blobs": {"added_blobs": [name]}})
    await door.indexed()
    blobs = {"checkpoint_id": made["new_checkpoint_id"]}
    reply = await door.answer(Service.RETRIEVAL, {"query": "lion", "blobs": blobs})
    assert "Path: a.py" in reply["formatted_retrieval"]
    with pytest.raises(BadRequest):
        await door.answer(Service.CHECKPOINT, {"blobs": {"checkpoint_id": "lost"}})


@pytest.mark.parametrize(
    ("length", "count"), [(None, 10), (0, 1), (-1, 1), (3, 3), (10**9, 12), ("x", 10)]
)
async def test_a_search_gives_as_many_hits_as_asked(
    tmp_path: Path, length: Any, count: int
) -> None:
    files = {f"lion{n}__py": f"def feed_lion_{n}(): pass\n" for n in range(12)}
    door = Door(tmp_path / "data", project(tmp_path / "zoo", **files))
    await door.start()
    await door.indexed()
    body: Json = {"query": "lion", "limit": length}
    found = await door.answer(Service.SEARCH, body)
    await door.close()
    assert len(found["hits"]) == count


async def test_workspaces_are_added_told_rebuilt_and_removed(
    door: Door, root: Path
) -> None:
    added = await door.answer(Service.INDEX_ADD, {"root": str(root)})
    assert added["workspace"]["root"] == str(root)
    await door.indexed()
    status = await door.answer(Service.INDEX_STATUS, {})
    [told] = status["workspaces"]
    assert (told["phase"], told["percentage"], told["note"]) == ("complete", 100.0, "")
    assert told["counters"]["accepted"] == 1
    assert status["totals"]["chunks"] == 1
    await door.answer(Service.INDEX_REBUILD, {})
    await door.indexed()
    why = await door.answer(Service.INDEX_WHY, {"path": str(root / "lion.py")})
    assert (why["what"], why["reason"]) == ("indexed", None)
    why = await door.answer(Service.INDEX_WHY, {"path": str(root / ".env")})
    assert why["explanation"]
    removed = await door.answer(Service.INDEX_REMOVE, {"root": str(root)})
    assert removed == {"removed": str(root)}
    with pytest.raises(BadRequest):
        await door.answer(Service.INDEX_REMOVE, {"root": str(root)})


@pytest.mark.parametrize("given", [None, "", "relative", 5, "../x", "/tmp/../etc"])
async def test_a_folder_must_be_named_whole(door: Door, given: Any) -> None:
    with pytest.raises(BadRequest, match="absolute"):
        await door.answer(Service.INDEX_ADD, {"root": given})


@pytest.mark.case("B69")
@pytest.mark.parametrize(
    "given", ["/", "/none/such", "/etc/passwd", "/\0", "/" + "x" * 4000]
)
async def test_a_folder_that_cannot_be_a_workspace_is_refused(
    door: Door, given: str
) -> None:
    with pytest.raises(ConfigError):
        await door.answer(Service.INDEX_ADD, {"root": given})


@pytest.mark.case("B69")
async def test_only_declared_folders_are_known(door: Door, root: Path) -> None:
    await door.answer(Service.INDEX_ADD, {"root": str(root)})
    sibling = project(root.with_name("zoo-evil"), a__py="lion")
    for path in (sibling / "a.py", Path("/etc/passwd"), root.parent):
        with pytest.raises(BadRequest):
            await door.answer(Service.INDEX_WHY, {"path": str(path)})


async def test_a_second_door_to_the_same_files_is_shut(
    tmp_path: Path, root: Path
) -> None:
    one, two = Door(tmp_path / "data", root), Door(tmp_path / "data", root)
    await one.start()
    await two.start()  # chats are served all the same
    assert await two.facts(BlobNames("lost", (bytes(32),))) == Facts()
    with pytest.raises(ByokError, match="Another byok process"):
        await two.answer(Service.RETRIEVAL, {"query": "lion"})
    await one.close()
    await two.indexed()
    await two.close()


async def test_it_opens_at_the_start_where_there_is_something(tmp_path: Path) -> None:
    one = Door(tmp_path / "data")
    await one.upload(a__py="lion")
    await one.close()
    two = Door(tmp_path / "data")
    await two.start()
    await two.indexed()
    await two.close()


async def test_a_chat_gets_code_by_the_same_door(door: Door) -> None:
    [name] = await door.upload(lion__py="def feed_lion(): pass")
    await door.indexed()
    wanted = Wanted("lion?", BlobNames("", (to_bytes(name),)), (to_bytes("odd"),))
    found = await door.passages(wanted, 1000)
    assert "Path: lion.py\n     1\tdef feed_lion(): pass\n" in found.text
    assert found.chunks == ((name, 0, 21),)
    assert found.unknown == ("odd",)
