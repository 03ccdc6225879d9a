"""Bodies become questions for a model, or are answered without one."""

import logging

import pytest

from byok.core.events import Finish, FinishReason
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream

FINISH = Finish(FinishReason.STOP)


async def test_generate_without_a_question_is_an_empty_turn(
    fake: FakeUpstream, client: Editor
) -> None:
    stream = await client.chat("")
    whole = await client.post("/chat", {})
    assert (stream.text, stream.last["stop_reason"]) == ("", 1)
    assert (whole.json["text"], whole.json["stop_reason"]) == ("", 1)
    assert fake.requests == []


async def test_generate_reports_an_unknown_node_type_once(
    caplog: pytest.LogCaptureFixture, client: Editor
) -> None:
    nodes = [{"id": 1, "type": 0, "text_node": {"content": "x"}}, {"id": 2, "type": 99}]
    for _ in range(2):
        assert (await client.chat("", nodes=nodes)).text == "Hi."
    assert caplog.text.count("nodes of type 99") == 1


async def test_generate_refuses_a_model_of_a_removed_upstream(
    fake: FakeUpstream, client: Editor
) -> None:
    gone = "byok:gone:m"
    chat = await client.chat("Hi?", model=gone)
    edit = await client.post(
        "/edit", {"model": gone, "instruction": "x", "selected_text": "y"}
    )
    completion = await client.post("/completion", {"model": gone, "prompt": "x = "})
    openai = await client.post("/v1/chat/completions", {"model": gone, "messages": []})
    assert chat.status == 200
    assert chat.text.startswith("\n[byok] The chosen model belongs to")
    assert "byok models" in chat.text and chat.text.count("[byok]") == 1
    assert chat.last["error"]["code"] == "model_not_found"
    assert edit.status == 422
    check_error(edit.json)
    assert (completion.status, completion.json["completion_items"]) == (200, [])
    assert openai.status == 404
    assert openai.json["error"]["code"] == "model_not_found"
    assert fake.requests == []


async def test_a_substituted_model_is_said_once_and_in_no_conversation(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.upstream.router")
    settings = settings_for(fake.url, models=["qwen3", "claude-sonnet-4-5"])
    async with running(settings) as editor:
        replies = [
            await editor.chat(model=model, conversation_id=conversation)
            for model in ("sonnet4.5", "glm-9")
            for conversation in "ab"
        ]
        told = (await editor.post("/byok/catalog")).json["substitutes"]
    assert [reply.text for reply in replies] == ["Hi."] * 4
    asked = [sent["model"] for sent in fake.requests]
    assert asked == [*["claude-sonnet-4-5"] * 2, *["qwen3"] * 2]
    sonnet, glm = "byok:fake:claude-sonnet-4-5", "byok:fake:qwen3"
    assert told == [
        {"asked": "sonnet4.5", "model": sonnet, "alias": f'"sonnet4.5" = "{sonnet}"'},
        {"asked": "glm-9", "model": glm, "alias": f'"glm-9" = "{glm}"'},
    ]
    assert caplog.text.count("sonnet4.5") == 2  # the name, and the alias to write
