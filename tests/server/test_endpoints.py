"""From row to answer: models, unknown paths, what is not served."""

import asyncio
import logging
from typing import Any

import pytest

from byok.core.routing import Service
from byok.protocols.augment.endpoints import ENDPOINTS, Local
from tests.fakes.daemon import Editor, Watcher, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import DONE, FakeUpstream, event


async def test_get_models_answers_at_once_although_the_upstream_is_slow(
    fake: FakeUpstream,
) -> None:
    fake.models_delay = 60
    settings = settings_for(fake.url, models=["by-hand", "also-by-hand"])
    async with running(settings) as editor:
        reply = await asyncio.wait_for(editor.post("/get-models"), PATIENCE)
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:also-by-hand"]
    assert reply.json["default_model"] == "byok:fake:by-hand"


async def test_get_models_lists_configured_models_before_discovered_ones(
    fake: FakeUpstream,
) -> None:
    fake.models = ["found", "by-hand"]
    async with running(settings_for(fake.url, models=["by-hand"])) as editor:
        await editor.services.catalog.settle(PATIENCE)
        reply = await editor.post("/get-models")
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:found"]


async def test_unknown_endpoint_is_logged_once_without_its_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "byok.server.endpoints")
    async with running(upstream="demo") as editor:
        for _ in range(3):
            assert (await editor.post("/brand/new?q=MARK", {})).json == {}
        await editor.post("/other/new", {})
    told = [r.getMessage() for r in caplog.records if r.name == "byok.server.endpoints"]
    assert told == [
        "unknown path '/brand/new': replying with nothing",
        "unknown path '/other/new': replying with nothing",
    ]


async def test_endpoint_settings_switch_automatic_requests() -> None:
    completion = {"chat_input": True, "next_edit": True}
    async with running({"completion": completion}, upstream="demo") as editor:
        flags = (await editor.post("/get-models")).json["feature_flags"]
    assert flags["enable_chat_input_inline_completion"] is True
    assert flags["vscode_next_edit_min_version"] == "0.0.0"


@pytest.mark.parametrize(
    ("listed", "settings", "on"),
    [
        ("qwen3:8b", {}, False),
        ("qwen3:8b zeta-2.gguf", {}, True),
        ("qwen3:8b zeta-2.gguf", {"completion": {"next_edit": False}}, False),
        ("zeta-2", {"routing": {"models": {"edit": "byok:fake:qwen3"}}}, False),
        ("qwen3:8b", {"routing": {"models": {"next_edit": "byok:fake:q"}}}, True),
    ],
)
async def test_next_edits_are_on_where_a_model_on_this_machine_is_made_for_them(
    fake: FakeUpstream, listed: str, settings: dict[str, Any], on: bool
) -> None:
    fake.models = listed.split()
    given = settings_for(fake.url, type="llamacpp") | settings
    async with running(given) as editor:
        await editor.services.catalog.settle(PATIENCE)
        flags = (await editor.post("/get-models")).json["feature_flags"]
    assert flags["vscode_next_edit_min_version"] == ("0.0.0" if on else "")


async def test_a_next_edit_comes_from_the_model_made_for_it(
    fake: FakeUpstream,
) -> None:
    fake.models = ["qwen3:8b", "zeta-2.gguf"]
    choice = {"text": "total = 1\nprint(total)\n", "finish_reason": "stop"}
    fake.play([event({"choices": [choice]}), DONE])
    body = {"prefix": "total = 1\r\n", "suffix": "print(x)\r\n", "path": "a.py"}
    async with running(settings_for(fake.url, type="llamacpp")) as editor:
        await editor.services.catalog.settle(PATIENCE)
        reply = await editor.post("/next-edit-stream", body)
    assert fake.paths == ["completions"]
    assert fake.requests[0]["model"] == "zeta-2.gguf"
    [line] = reply.lines
    assert line["next_edit"]["existing_code"] == "print(x)\r\n"
    assert line["next_edit"]["suggested_code"] == "print(total)\r\n"
    assert line["next_edit"]["char_start"] == len("total = 1\r\n")


async def test_a_next_edit_sends_no_secret_file_unasked(fake: FakeUpstream) -> None:
    body = {"prefix": "KEY=", "suffix": "abc\n", "path": "app/.env"}
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/next-edit-stream", body)
        assert (reply.status, reply.raw, fake.requests) == (200, b"", [])
        await editor.post("/next-edit-stream", {**body, "instruction": "Rename it."})
        assert len(fake.requests) == 1
    allowed = {**settings_for(fake.url), "context": {"allow_secret": [".env"]}}
    async with running(allowed) as editor:
        await editor.post("/next-edit-stream", body)
        assert len(fake.requests) == 2


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
    statuses = {row.service: (await editor.post(row.path)).status for row in rows}
    refused = {service for service, status in statuses.items() if status == 422}
    assert refused == _NEEDS_A_NAME | _NEEDS_A_PATH
    wrong = {service for service, status in statuses.items() if status == 400}
    assert wrong == _NEEDS_A_MODEL
    assert set(statuses.values()) == {200, 400, 422}


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
