"""Whatever a client sends, an upstream that enforces OpenAI's rules accepts it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings

from tests.fakes.conversations import Conversation, conversations
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.patience import PATIENCE
from tests.fakes.strict import StrictUpstream


@pytest.mark.slow
@pytest.mark.case("B89")
async def test_strict_upstream_refuses_no_conversation_and_none_loses_a_word() -> None:
    loop = asyncio.get_running_loop()
    limit = settings().max_examples
    async with StrictUpstream() as strict:
        section = {
            "type": "openai",
            "dialect": "openai_chat",
            "base_url": strict.url,
            "timeout": PATIENCE,
        }
        async with running(
            {"upstreams": {"fake": section}}, environ={"BYOK_KEY_FAKE": "k"}
        ) as editor:

            @settings(max_examples=5 * limit, print_blob=True)
            @given(conversations())
            def ask_and_check(conversation: Conversation) -> None:
                asking = _ask(editor, strict, conversation.body)
                answer = asyncio.run_coroutine_threadsafe(asking, loop).result(PATIENCE)
                _check(answer, strict, conversation)

            await asyncio.to_thread(ask_and_check)


async def _ask(editor: Editor, strict: StrictUpstream, body: dict[str, Any]) -> Answer:
    strict.requests.clear()
    strict.refusals.clear()
    return await editor.post("/chat-stream", body)


def _check(answer: Answer, strict: StrictUpstream, sent: Conversation) -> None:
    assert strict.refusals == []
    assert answer.status == 200
    stops = [line["stop_reason"] for line in answer.lines]
    assert stops[-1] is not None
    assert stops[:-1] == [None] * (len(stops) - 1)
    assert "error" not in answer.last
    assert len(strict.requests) <= 1
    if not strict.requests:
        assert not sent.must_ask
        return
    request = strict.requests[0]
    offered = {tool["function"]["name"] for tool in request.get("tools", [])}
    assert len(answer.tool_uses) == bool(offered)
    _check_words(request["messages"], sent)


def _check_words(messages: list[dict[str, Any]], sent: Conversation) -> None:
    everything = json.dumps(messages)
    assert [words for words in sent.kept if words not in everything] == []
    assert [words for words in sent.hidden if words in everything] == []
    if sent.newest:
        assert messages[-1]["role"] == "user"
        assert sent.newest in json.dumps(messages[-1])
    results = [m for m in messages if m["role"] == "tool"]
    for words, call_id in sent.paired.items():
        [result] = [m for m in results if words in m["content"]]
        plain = len(call_id) <= 40 and call_id.isascii() and call_id.isprintable()
        assert result["tool_call_id"] == call_id or not plain
