"""Every kind of row has its handler."""

import pytest

from byok.augment.endpoints import ENDPOINTS, Local
from byok.record import RequestRecord
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


class Seen:
    """Observer that keeps the records."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []

    def request_started(self, record: RequestRecord, /) -> None:
        pass

    def request_finished(self, record: RequestRecord, /) -> None:
        self.records.append(record)


SILENT = {"message": "Hi", "silent": True}


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
    seen = Seen()
    async with running(upstream="demo", observers=[seen]) as editor:
        await editor.post(path, {**body, "model": "m" * 600})
    noted = seen.records[0]
    assert noted.purpose == purpose
    assert noted.model_asked == ("" if path == "/find-missing" else "m" * 512)


FOLDER = {"folder_root": "/nowhere/zoo"}
SESSION = {"X-Request-Session-Id": "s-1"}


def test_handlers_give_every_daemon_service_a_path() -> None:
    local = {row.answer for row in ENDPOINTS if isinstance(row, Local)}
    assert local == set(Service)
