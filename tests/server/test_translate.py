"""Any client, any upstream: what is translated, what is passed on, what is logged."""

import asyncio
import json
import logging
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
)
from byok.core.errors import ContextLengthExceeded, UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from byok.protocols.v1.messages import decode_message
from byok.server.http.deadlines import Timing
from byok.server.translate import estimate_tokens
from byok.upstream.base import Plan
from tests.fakes.daemon import Answer, Editor, daemon_with
from tests.fakes.scripted import Scripted

HI = [{"role": "user", "content": "Hi?"}]
ASKS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "m", "messages": HI},
    "/v1/responses": {"model": "m", "input": "Hi?"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": HI},
}
PATHS = [*ASKS]
STOP = Finish(FinishReason.STOP)


def events(answer: Answer) -> list[dict[str, Any]]:
    """Return the objects of a stream of events, without comments and the last mark."""
    lines = answer.raw.decode().split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


async def ask(
    editor: Editor, path: str, *, stream: bool = False, **fields: Any
) -> Answer:
    return await editor.post(path, {**ASKS[path], "stream": stream, **fields})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_translated_refusal_before_the_answer_is_a_status(
    path: str, stream: bool
) -> None:
    def refuse(chat: ChatRequest) -> list[list[StreamEvent]]:
        raise ContextLengthExceeded("It is too long.", upstream_status=400)

    async with daemon_with(Scripted(refuse)) as editor:
        answer = await ask(editor, path, stream=stream)
    assert answer.status == 400
    assert "It is too long." in answer.json["error"]["message"]
    assert ("request_id" in answer.json) is (path == "/v1/messages")


class Breaking(Scripted):
    """Says something, and breaks."""

    async def send(self, plan: Plan) -> Any:
        yield [TextDelta("Half")]
        raise UpstreamGarbled("It broke.")


@pytest.mark.parametrize("path", PATHS)
async def test_translated_failure_in_the_middle_is_an_event(path: str) -> None:
    async with daemon_with(Breaking()) as editor:
        answer = await ask(editor, path, stream=True)
        whole = await ask(editor, path)
    last = events(answer)[-1]
    error = last["response"]["error"] if "response" in last else last["error"]
    assert error["message"] == "It broke."
    assert "Half" in answer.raw.decode()
    assert (whole.status, "Half" in whole.raw.decode()) == (422, False)


async def test_translated_notices_are_logged_and_not_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "byok.server")
    model = Scripted(lambda chat: [[Notice("Left out."), TextDelta("Hi."), STOP]])
    async with daemon_with(model) as editor:
        for _ in range(2):
            tools = [{"type": "web_search"}]
            answer = await ask(editor, "/v1/responses", tools=tools)
    assert "Left out." not in answer.raw.decode()
    assert "Left out." in caplog.text
    assert caplog.text.count("not passed on to models: the tool 'web_search'") == 1


class Waiting(Scripted):
    """Says nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_speak = asyncio.Event()

    async def send(self, plan: Plan) -> Any:
        await self.may_speak.wait()
        yield [TextDelta("Hi."), STOP]


@pytest.mark.parametrize("path", PATHS)
async def test_translated_silence_is_broken_by_comments(path: str) -> None:
    model = Waiting()
    async with daemon_with(model, Timing(beat=0.01, head_after=0.0)) as editor:
        body = {**ASKS[path], "stream": True}
        headers = {"Authorization": f"Bearer {editor.token}"}
        url = editor.daemon.url + path
        async with editor.http.post(url, json=body, headers=headers) as response:
            assert await response.content.readline() == b": byok\n"
            model.may_speak.set()
            assert b"Hi." in await response.content.read()


async def test_translated_reasoning_survives_the_round_trip() -> None:
    def think(chat: ChatRequest) -> list[list[StreamEvent]]:
        data = ProviderData(origin, {"signature": "s"})
        return [[ThinkingDelta("hm", data), TextDelta("Hi."), STOP]]

    origin = Origin("anthropic", "box", "m")
    model = Scripted(think)
    thinking = {"type": "adaptive"}
    async with daemon_with(model) as editor:
        first = await ask(editor, "/v1/messages", thinking=thinking)
        said = {"role": "assistant", "content": first.json["content"]}
        await ask(editor, "/v1/messages", messages=[*HI, said, *HI])
        first = await ask(editor, "/v1/responses")
        item = {"role": "user", "content": "And?"}
        await ask(editor, "/v1/responses", input=[*first.json["output"], item])
        first = await ask(editor, "/v1/chat/completions")
        said = first.json["choices"][0]["message"]
        await ask(editor, "/v1/chat/completions", messages=[*HI, said, *HI])
    for chat in model.chats[1::2]:
        parts = chat.messages[1].parts
        assert parts[0] == ThinkingPart("hm", ProviderData(origin, {"signature": "s"}))


class Changing(Scripted):
    """Serves a protocol itself from a time on."""

    is_serving = False

    def serves(self, path: str, model: str) -> bool:
        return self.is_serving


@pytest.mark.parametrize("stream", [False, True])
async def test_translated_conversation_may_refer_to_items_of_its_answers(
    stream: bool,
) -> None:
    model = Changing(lambda chat: [[ThinkingDelta("hm"), TextDelta("Hi."), STOP]])
    async with daemon_with(model) as editor:
        first = await ask(editor, "/v1/responses", stream=stream)
        whole = events(first)[-1]["response"] if stream else first.json
        model.is_serving = True  # but it does not know these items
        told = [{"type": "item_reference", "id": i["id"]} for i in whole["output"]]
        item = {"role": "user", "content": "And?"}
        answer = await ask(editor, "/v1/responses", input=[*told, item])
    assert answer.status == 200
    assert model.chats[1].messages[1].parts == (ThinkingPart("hm"), TextPart("Hi."))


async def test_translated_conversation_may_go_on_from_a_response() -> None:
    model = Changing(lambda chat: [[TextDelta("Hi."), STOP]])
    async with daemon_with(model) as editor:
        first = await ask(editor, "/v1/responses")
        model.is_serving = True  # but it does not know these responses
        previous = {"previous_response_id": first.json["id"]}
        second = await ask(editor, "/v1/responses", **previous)
        previous = {"previous_response_id": second.json["id"]}
        third = await ask(editor, "/v1/responses", stream=True, **previous)
    assert (second.status, third.status) == (200, 200)
    roles = [message.role for message in model.chats[2].messages]
    assert roles == [Role.USER, Role.ASSISTANT] * 2 + [Role.USER]


async def test_translated_answers_are_forgotten_where_the_client_says_so() -> None:
    async with daemon_with(Scripted()) as editor:
        first = (await ask(editor, "/v1/responses", store=False)).json
        told = {"type": "item_reference", "id": first["output"][0]["id"]}
        answers = [
            await ask(editor, "/v1/responses", input=[told]),
            await ask(editor, "/v1/responses", previous_response_id=first["id"]),
        ]
    assert [answer.status for answer in answers] == [400, 400]


@pytest.mark.parametrize("stream", [False, True])
async def test_translated_answers_name_their_request_for_both_sdks(
    stream: bool,
) -> None:
    async with daemon_with(Scripted()) as editor:
        answer = await ask(editor, "/v1/messages", stream=stream)
    assert answer.headers["Request-Id"] == answer.headers["X-Request-Id"]


async def test_translated_tokens_are_estimated() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 3500}]}
    async with daemon_with(Scripted()) as editor:
        answer = await editor.post("/v1/messages/count_tokens", body)
        same = {"model": "m", "input": "x" * 3500}
        of_response = await editor.post("/v1/responses/input_tokens", same)
    assert of_response.json == {**answer.json, "object": "response.input_tokens"}
    assert 900 < answer.json["input_tokens"] < 1100
    assert answer.json["input_tokens"] == estimate_tokens(decode_message(body))
