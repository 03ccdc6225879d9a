"""Where client and upstream meet: streams, whole answers, and how both fail."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from byok.chat import ChatRequest
from byok.daemon.token import read_token
from byok.errors import UpstreamGarbled
from byok.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.server.run import listening
from byok.upstream.demo import DemoUpstream
from byok.upstream.router import Router
from byok.wiring.services import Services
from tests.fakes.daemon import Editor, parts_of, running, settings_for
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, event

FINISH = Finish(FinishReason.STOP)


def refusal(status: int, message: str = "no", **headers: str) -> Script:
    """Script an error answer."""
    body = json.dumps({"error": {"message": message}}).encode()
    return Script([body], status, {"Content-Type": "application/json", **headers})


async def test_a_stream_that_fails_says_so_in_its_text_and_in_its_last_line(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One"), event({"error": {"message": "broke"}})]))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.chat()
    assert reply.status == 200
    assert reply.text.startswith("One\n[byok] fake: ")
    assert reply.last["stop_reason"] == 0
    assert set(reply.last["error"]) == {"code", "message", "request_id"}
    assert reply.last["error"]["code"] == "upstream_refused"
    assert "broke" in reply.last["error"]["message"]
    assert [n["content"] for n in reply.nodes if n["type"] == 0] == ["One"]


class Odd(DemoUpstream):
    """Says two things, and ends in a way of its own."""

    def __init__(self, *end: StreamEvent, error: Exception | None = None) -> None:
        super().__init__("demo")
        self._end = end
        self._error = error

    async def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        yield [TextDelta("One ")]
        yield [TextDelta("two."), *self._end]
        if self._error is not None:
            raise self._error


NO_END = Odd()
LATE_FAILURE = Odd(FINISH, error=UpstreamGarbled("late"))
LATE_FAULT = Odd(FINISH, error=KeyError("late"))


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        pytest.param("/chat-stream", NO_END, id="streamed without a last word"),
        pytest.param("/chat-stream", LATE_FAILURE, id="streamed with a late failure"),
        pytest.param("/chat-stream", LATE_FAULT, id="streamed with a late fault"),
        pytest.param("/chat", NO_END, id="whole without a last word"),
        pytest.param("/chat", LATE_FAILURE, id="whole with a late failure"),
    ],
)
async def test_an_answer_that_is_whole_ends_once_and_well(
    path: str, upstream: Odd
) -> None:
    settings, paths, redactor, open_services = parts_of(upstream="demo")

    @asynccontextmanager
    async def odd_services() -> AsyncIterator[Services]:
        async with open_services() as services:
            router = Router({"demo": upstream}, services.catalog)
            yield replace(services, router=router)

    async with (
        listening(settings, paths, redactor, odd_services) as daemon,
        aiohttp.ClientSession() as http,
    ):
        editor = Editor(daemon, daemon.services, read_token(paths.token), http)
        reply = await editor.post(path, {"message": "x"})
    assert reply.text == "One two."
    assert [line["stop_reason"] for line in reply.lines if line["stop_reason"]] == [1]
    assert "error" not in reply.last


async def test_a_whole_answer_is_one_object(fake: FakeUpstream) -> None:
    fake.play(answer("One ", "two."))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert (reply.json["text"], reply.json["stop_reason"]) == ("One two.", 1)
    assert "error" not in reply.json


@pytest.mark.parametrize(
    ("script", "status", "code", "retryable"),
    [
        pytest.param(refusal(400), 422, "upstream_refused", False, id="400"),
        pytest.param(refusal(401), 422, "upstream_auth", False, id="401"),
        pytest.param(refusal(403), 422, "upstream_auth", False, id="403"),
        pytest.param(refusal(404), 422, "upstream_not_found", False, id="404"),
        pytest.param(refusal(418), 422, "upstream_refused", False, id="418"),
        pytest.param(refusal(500), 422, "upstream_refused", True, id="500"),
        pytest.param(refusal(501), 422, "upstream_refused", True, id="501"),
        pytest.param(
            refusal(302, Location="http://127.0.0.1:9/"),
            422,
            "upstream_redirect",
            False,
            id="302",
        ),
        pytest.param(Script([]), 422, "upstream_empty", True, id="nothing"),
        pytest.param(
            Script([b"<html>Welcome</html>"]),
            422,
            "upstream_not_json",
            False,
            id="page",
        ),
    ],
)
async def test_a_whole_answer_that_fails_before_any_text_is_an_error(
    fake: FakeUpstream, script: Script, status: int, code: str, retryable: bool
) -> None:
    fake.play(script)
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == status
    check_error(reply.json)
    error = reply.json["error"]
    assert (error["code"], error["retryable"]) == (code, retryable)
    assert error["message"].startswith("fake: ")


@pytest.mark.case("F02")
async def test_a_whole_answer_that_fails_later_keeps_its_text(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One")]))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.json["text"].startswith("One\n[byok] fake: ")
    assert reply.json["stop_reason"] == 0
    assert reply.json["error"]["code"] == "upstream_cut"


@pytest.mark.case("F09")
async def test_a_rate_limit_with_a_wait_stays_one(fake: FakeUpstream) -> None:
    fake.play(refusal(429, "slow down", **{"Retry-After": "60"}))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.post("/chat", {"message": "x"})
    assert reply.status == 429
    assert reply.headers["Retry-After"] == "60"
    assert reply.json["error"]["code"] == "upstream_rate_limit"
    assert reply.json["error"]["retryable"] is True
    assert len(fake.requests) == 1


async def test_nothing_to_answer_is_an_empty_turn_without_an_upstream(
    fake: FakeUpstream,
) -> None:
    async with running(settings_for(fake.url)) as editor:
        stream = await editor.chat("")
        whole = await editor.post("/chat", {})
    assert (stream.text, stream.last["stop_reason"]) == ("", 1)
    assert (whole.json["text"], whole.json["stop_reason"]) == ("", 1)
    assert fake.requests == []


async def test_an_unknown_kind_of_node_is_told_once(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [{"id": 1, "type": 0, "text_node": {"content": "x"}}, {"id": 2, "type": 99}]
    async with running(settings_for(fake.url)) as editor:
        for _ in range(2):
            assert (await editor.chat("", nodes=nodes)).text == "Hi."
    assert caplog.text.count("nodes of type 99") == 1


async def test_beyond_the_limit_a_stream_is_refused_as_not_ready(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    limits = {"streams": 1, "waiting": 0}
    async with running({**settings_for(fake.url), "limits": limits}) as editor:
        first = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), 5)
        refused = await editor.chat()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "2"
    check_error(refused.json)
    assert refused.json["error"]["code"] == "too_many_streams"


async def test_a_model_of_an_upstream_that_left_the_settings_is_asked_of_nobody(
    fake: FakeUpstream,
) -> None:
    gone = "byok:gone:m"
    async with running(settings_for(fake.url)) as editor:
        chat = await editor.chat("Hi?", model=gone)
        edit = await editor.post(
            "/edit", {"model": gone, "instruction": "x", "selected_text": "y"}
        )
        completion = await editor.post("/completion", {"model": gone, "prompt": "x = "})
        openai = await editor.post(
            "/v1/chat/completions", {"model": gone, "messages": []}
        )
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


async def test_another_model_than_the_chosen_one_says_so_once_a_conversation(
    fake: FakeUpstream,
) -> None:
    said = "'claude-x' is no model of byok's: byok:fake:fake-model answers."
    async with running(settings_for(fake.url)) as editor:
        first = [
            await editor.chat(model="claude-x", conversation_id="a", silent=silent)
            for silent in (True, False, False)
        ]
        other = await editor.post(
            "/chat", {"message": "Hi?", "model": "claude-x", "conversation_id": "b"}
        )
        unnamed = await editor.chat(conversation_id="c")
    assert [said in reply.text for reply in first] == [False, True, False]
    assert other.json["text"].endswith(f"\n[byok] {said}")
    assert "error" not in first[1].last and "error" not in other.json
    assert "[byok]" not in unnamed.text
