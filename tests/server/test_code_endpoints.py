"""Requests about code on the wire: bodies of clients and commands, and replies."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import Json
from byok.core.errors import BadRequest, ConfigError
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.protocols.augment.blobs import decode_retrieval
from byok.search.index.types import IndexOptions
from byok.search.retrieval.code_context import CodeContext
from byok.server.code_endpoints import CodeEndpoints, OpenFolders, open_answers
from byok.settings import Settings
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.engines import project
from tests.fakes.patience import until
from tests.fakes.project import make_project


class Code(CodeEndpoints):
    """The endpoints of a context in a folder of the test."""

    def __init__(self, folder: Path, *roots: Path) -> None:
        options = IndexOptions(roots=roots, workers=1)
        self.context = CodeContext(folder / "data.db", folder / "index", options)
        super().__init__(self.context)

    async def answer(self, service: Service, body: Json) -> Json:
        return await self.handlers[service](body)

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
async def code(tmp_path: Path) -> AsyncIterator[Code]:
    made = Code(tmp_path / "data")
    yield made
    await made.context.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "zoo", lion__py="def feed_lion(): pass\n")


async def test_search_gives_as_many_hits_as_requested(tmp_path: Path) -> None:
    files = {f"lion{n}__py": f"def feed_lion_{n}(): pass\n" for n in range(12)}
    code = Code(tmp_path / "data", project(tmp_path / "zoo", **files))
    await code.context.start()
    await code.indexed()
    lengths: dict[Any, int] = {None: 10, 0: 1, -1: 1, 3: 3, 10**9: 12, "x": 10}
    for length, count in lengths.items():
        body: Json = {"query": "lion", "limit": length}
        found = await code.answer(Service.SEARCH, body)
        assert len(found["hits"]) == count, length
    await code.context.close()


async def test_workspaces_are_added_listed_rebuilt_and_removed(
    code: Code, root: Path
) -> None:
    added = await code.answer(Service.INDEX_ADD, {"root": str(root)})
    assert added["workspace"]["root"] == str(root)
    await code.indexed()
    status = await code.answer(Service.INDEX_STATUS, {})
    [told] = status["workspaces"]
    assert (told["phase"], told["percentage"], told["note"]) == ("complete", 100.0, "")
    assert told["counters"]["accepted"] == 1
    assert status["totals"]["chunks"] == 1
    await code.answer(Service.INDEX_REBUILD, {})
    await code.indexed()
    why = await code.answer(Service.INDEX_WHY, {"path": str(root / "lion.py")})
    assert (why["what"], why["reason"]) == ("indexed", None)
    why = await code.answer(Service.INDEX_WHY, {"path": str(root / ".env")})
    assert why["explanation"]
    removed = await code.answer(Service.INDEX_REMOVE, {"root": str(root)})
    assert removed == {"removed": str(root)}
    with pytest.raises(BadRequest):
        await code.answer(Service.INDEX_REMOVE, {"root": str(root)})


@pytest.mark.parametrize("given", [None, "", "relative", 5, "../x", "/tmp/../etc"])
async def test_workspace_path_must_be_absolute(code: Code, given: Any) -> None:
    with pytest.raises(BadRequest, match="absolute"):
        await code.answer(Service.INDEX_ADD, {"root": given})


@pytest.mark.case("B69")
@pytest.mark.parametrize(
    "given", ["/", "/none/such", "/etc/passwd", "/\0", "/" + "x" * 4000]
)
async def test_workspace_folder_that_cannot_be_indexed_is_refused(
    code: Code, given: str
) -> None:
    with pytest.raises(ConfigError):
        await code.answer(Service.INDEX_ADD, {"root": given})


@pytest.mark.case("B69")
async def test_workspace_folders_are_declared_ones_only(code: Code, root: Path) -> None:
    await code.answer(Service.INDEX_ADD, {"root": str(root)})
    sibling = project(root.with_name("zoo-evil"), a__py="lion")
    for path in (sibling / "a.py", Path("/etc/passwd"), root.parent):
        with pytest.raises(BadRequest):
            await code.answer(Service.INDEX_WHY, {"path": str(path)})


def chat(root: str) -> Json:
    node = {"workspace_folders": [{"folder_root": root}]}
    return {"nodes": [{"type": 4, "ide_state_node": node}]}


def window(name: str) -> dict[str, str]:
    return {"X-Request-Session-Id": name}


def folders(known: OpenFolders, headers: dict[str, str]) -> Any:
    body = known.add_folders(headers, {"information_request": "where"})
    return list(decode_retrieval(body).folders)


def test_open_folders_are_kept_per_window() -> None:
    known = OpenFolders()
    known.remember(window("a"), chat("/a"))
    known.remember(window("b"), chat("/b"))
    known.remember(window("a"), {"nodes": []})
    assert folders(known, window("a")) == ["/a"]
    assert folders(known, window("b")) == ["/b"]
    assert folders(known, window("c")) == []
    known.remember({}, chat("/none"))
    assert folders(known, {}) == []


def test_open_folders_of_the_oldest_windows_are_forgotten() -> None:
    known = OpenFolders(limit=2)
    for name in ("a", "b", "a", "c"):
        known.remember(window(name), chat(f"/{name}"))
    assert folders(known, window("b")) == []
    assert folders(known, window("a")) == ["/a"]
    assert folders(known, window("c")) == ["/c"]


async def test_own_answers_make_no_vectors_and_send_nothing(tmp_path: Path) -> None:
    root = make_project(tmp_path / "bakery")
    async with EmbeddingServer() as server:
        settings = Settings.model_validate(
            {
                "upstreams": {"box": {"base_url": server.url}},
                "embeddings": {"upstream": "box", "model": "tiny-embed"},
            }
        )
        async with open_answers(settings, find_paths(), [root]) as answer:
            added = await answer(Service.INDEX_ADD, {"root": str(root)})
            assert added["workspace"]["root"] == str(root)
            cost = await answer(Service.EMBED_ESTIMATE, {})
            assert (cost["model"], cost["is_local"]) == ("tiny-embed", True)
            body = {"host": cost["host"], "model": cost["model"]}
            for service in (Service.EMBED_ENABLE, Service.EMBED_STATUS):
                told = await answer(service, body)
                assert (told["state"], told["error"]) == ("standby", "")
            await answer(Service.SEARCH, {"query": "oven heat"})
    assert server.asked == 0


async def test_own_answers_without_a_model_say_so() -> None:
    async with open_answers(Settings(), find_paths(), []) as answer:
        assert (await answer(Service.EMBED_STATUS, {}))["state"] == "off"
        with pytest.raises(ConfigError, match="no model for embeddings"):
            await answer(Service.EMBED_ESTIMATE, {})
    assert not find_paths().database.exists()
