"""Every kind of row has its handler."""

import pytest

from byok.augment.endpoints import ENDPOINTS, Local
from byok.routing import Service
from tests.fakes.daemon import running


async def test_handlers_exist_for_every_kind_of_row() -> None:
    async with running(upstream="demo") as editor:
        chat = await editor.post("/chat", {"message": "Hi"})
        completion = await editor.post("/completion", {"prompt": "x = "})
        forwarded = await editor.post("/v1/embeddings", {"input": "x"})
        local = await editor.post("/find-missing", {})
        constant = await editor.post("/find-nothing", {})
        stream = await editor.post("/remote-agents/list-stream", {})
        refused = await editor.post("/remote-agents/create", {})
    assert chat.json["text"]
    assert "completion_items" in completion.json
    assert "error" in forwarded.json
    assert local.json["unknown_blob_names"] == []
    assert constant.json == {}
    assert len(stream.lines) == 1
    assert refused.json["error"]["code"] == "not_served"


async def test_handlers_search_the_folders_that_chats_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = {"id": 1, "type": 4, "ide_state_node": {"workspace_folders": [FOLDER]}}
    async with running(upstream="demo") as editor:
        body = {"message": "Hi", "nodes": [node]}
        await editor.post("/chat", body, headers=SESSION)
        asked = {"information_request": "lion"}
        reply = await editor.post("/agents/codebase-retrieval", asked, headers=SESSION)
    assert "no code to search yet" in reply.json["formatted_retrieval"]
    assert "Traceback" not in caplog.text


FOLDER = {"folder_root": "/nowhere/zoo"}
SESSION = {"X-Request-Session-Id": "s-1"}


def test_handlers_give_every_daemon_service_a_path() -> None:
    local = {row.answer for row in ENDPOINTS if isinstance(row, Local)}
    assert local == set(Service)
