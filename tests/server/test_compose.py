"""The server is composed of what runs; every kind of row has its handler."""

import pytest

from byok.core.routing import Service
from byok.protocols.augment.endpoints import ENDPOINTS, Local
from tests.fakes.daemon import Editor, Watcher, running

_NEEDS_A_NAME = {Service.KEY_TEST, Service.STOP}
_NEEDS_A_PATH = {Service.INDEX_ADD, Service.INDEX_REMOVE, Service.INDEX_WHY}

_NEEDS_A_MODEL = {
    Service.EMBED_ESTIMATE,
    Service.EMBED_ENABLE,
    Service.EMBED_PUSH,
    Service.EMBED_PULL,
}


async def test_composed_endpoints_answer_or_say_what_is_missing(editor: Editor) -> None:
    rows = [row for row in ENDPOINTS if isinstance(row, Local)]
    statuses = {row.answer: (await editor.post(row.path)).status for row in rows}
    refused = {service for service, status in statuses.items() if status == 422}
    assert refused == _NEEDS_A_NAME | _NEEDS_A_PATH
    wrong = {service for service, status in statuses.items() if status == 400}
    assert wrong == _NEEDS_A_MODEL
    assert set(statuses.values()) == {200, 400, 422}


async def test_handlers_exist_for_every_kind_of_row(editor: Editor) -> None:
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


SILENT = {"message": "Hi", "silent": True}
OLLAMA = {"model": "m", "messages": [{"role": "user", "content": "Hi?"}]}


async def test_requests_in_other_apis_get_a_404_and_are_no_chats() -> None:
    seen = Watcher()
    async with running(upstream="demo", observers=[seen]) as editor:
        replies = [
            await editor.post("/api/chat", OLLAMA),
            await editor.post("/api/generate", {"model": "m", "prompt": "Hi?"}),
            await editor.post("/v1beta/models/g:generateContent", {"contents": []}),
        ]
        url = f"{editor.daemon.url}/api/tags"
        headers = {"Authorization": f"Bearer {editor.token}"}
        async with editor.http.get(url, headers=headers) as response:
            assert response.status == 404
            assert "/v1" in (await response.json())["error"]["hint"]
        mine = await editor.post("/api/chat", {"message": "Hi?", "messages": []})
    for reply in replies:
        assert (reply.status, reply.json["error"]["code"]) == (404, "not_found")
        assert "/v1" in reply.json["error"]["hint"]
    assert mine.json["text"]
    assert [record.purpose for record in seen.finished] == [*[""] * 4, "chat"]
    assert [record.model for record in seen.finished[:4]] == [""] * 4


@pytest.mark.parametrize(
    ("path", "body", "purpose"),
    [
        ("/chat-stream", {"message": "Hi"}, "chat"),
        ("/chat-stream", SILENT, "summary"),
        ("/chat-stream", {**SILENT, "message": "augment-enhanced-prompt"}, "enhance"),
        ("/completion", {"prompt": "x = "}, "completion"),
        ("/generate-commit-message-stream", {"changed_file_stats": {}}, "commit"),
        ("/v1/chat/completions", {"messages": []}, "chat"),
        ("/v1/embeddings", {"input": "x"}, ""),
        ("/find-missing", {}, ""),
    ],
    ids=str,
)
async def test_handlers_note_what_a_client_asks_for(
    path: str, body: dict[str, object], purpose: str
) -> None:
    seen = Watcher()
    async with running(upstream="demo", observers=[seen]) as editor:
        await editor.post(path, {**body, "model": "m" * 600})
    noted = seen.finished[0]
    assert noted.purpose == purpose
    assert noted.model_asked == ("" if path == "/find-missing" else "m" * 512)


FOLDER = {"folder_root": "/nowhere/zoo"}
SESSION = {"X-Request-Session-Id": "s-1"}


def test_handlers_give_every_daemon_service_a_path() -> None:
    local = {row.answer for row in ENDPOINTS if isinstance(row, Local)}
    assert local == set(Service)
