"""Upstreams that break in every way, and clients that leave; ids as in the test plan.

Whatever happens, the text so far is kept, one sentence tells the user, one last chunk
ends the answer, and nothing goes on that nobody waits for.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from byok.core.language import speaking
from byok.server.http.deadlines import Timing
from tests.fakes.cases import case_param
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import RawConnection, connected, filled, request
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    dead_url,
    delta,
    event,
    refusal,
    tool_answer,
)

VIEW = {
    "name": "view",
    "description": "Show a file.",
    "input_schema_json": '{"type":"object","properties":{"path":{"type":"string"}}}',
}
JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}


def text_of(reply: Answer) -> str:
    """Return the model's own text: the deltas without byok's sentence."""
    return reply.text.partition("\n[byok] ")[0]


def check_failed(reply: Answer, code: str) -> None:
    """The answer broke off, and said so exactly once in each place."""
    assert reply.status == 200
    assert reply.text.count("\n[byok] fake: ") == 1
    assert reply.text.count("[byok]") == 1
    assert [line["stop_reason"] for line in reply.lines if "error" in line] == [0]
    assert reply.last["error"]["code"] == code
    assert reply.last["error"]["message"].startswith("fake: ")
    assert "Traceback" not in reply.text


def check_ended(reply: Answer, text: str, stop: int = 1) -> None:
    """The answer is whole."""
    assert (reply.text, reply.last["stop_reason"]) == (text, stop)
    assert [n["content"] for n in reply.nodes if n["type"] == 0] == [text]
    assert "error" not in reply.last


async def chat(
    fake: FakeUpstream, editor: Editor, script: Script | list[bytes]
) -> Answer:
    """Play a script to one chat."""
    fake.play(script)
    return await asyncio.wait_for(editor.chat(tool_definitions=[VIEW]), PATIENCE)


@pytest.mark.parametrize(
    "first",
    [
        case_param(Script(before_head=True), id="F02-before-the-head"),
        case_param(Script([], end="reset"), id="F02-after-the-head"),
    ],
)
async def test_retry_of_a_connection_lost_before_any_text(
    fake: FakeUpstream, editor: Editor, first: Script
) -> None:
    fake.play(first, answer("Whole."))
    check_ended(await editor.chat(), "Whole.")
    assert len(fake.requests) == 2
    assert fake.requests[0] == fake.requests[1]


@pytest.mark.case("F02")
async def test_f02_connection_lost_after_text_keeps_the_text(
    fake: FakeUpstream, editor: Editor
) -> None:
    reply = await chat(fake, editor, Script([delta(content="One")], end="reset"))
    check_failed(reply, "upstream_cut")
    assert text_of(reply) == "One"
    assert [n["content"] for n in reply.nodes if n["type"] == 0] == ["One"]
    assert len(fake.requests) == 1


RAW_EURO = 'data: {"choices":[{"index":0,"delta":{"content":"1 €"}}]}\n\n'.encode()
ESCAPED = b'data: {"choices":[{"index":0,"delta":{"content":"1 \\u20ac"}}]}\n\n'


@pytest.mark.parametrize("end", ["eof", "reset"])
@pytest.mark.parametrize(
    "cut",
    [
        case_param(RAW_EURO[: RAW_EURO.index(b"1") + 1], id="F03-in-text"),
        case_param(RAW_EURO[: RAW_EURO.index(b"\xe2") + 2], id="F03-in-a-character"),
        case_param(ESCAPED[: ESCAPED.index(b"20ac")], id="F03-in-an-escape"),
    ],
)
async def test_stream_that_is_cut_keeps_its_whole_events_only(
    fake: FakeUpstream, editor: Editor, cut: bytes, end: str
) -> None:
    reply = await chat(fake, editor, Script([delta(content="Zero "), cut], end=end))
    check_failed(reply, "upstream_cut")
    assert text_of(reply) == "Zero "


CALL_OPEN, *_ = tool_answer("view", '{"path": "a')


@pytest.mark.parametrize("end", ["eof", "reset"])
@pytest.mark.case("F04")
async def test_f04_a_tool_call_that_was_lost_is_asked_for_again(
    fake: FakeUpstream, editor: Editor, end: str
) -> None:
    said = delta(content="I look.")
    whole = tool_answer("view", '{"path": "a"}')
    fake.play(Script([said, CALL_OPEN], end=end), [said, *whole])
    reply = await asyncio.wait_for(editor.chat(tool_definitions=[VIEW]), PATIENCE)
    assert [use["input_json"] for use in reply.tool_uses] == ['{"path": "a"}']
    assert text_of(reply) == "I look."
    assert (reply.last["stop_reason"], len(fake.requests)) == (3, 2)
    assert "error" not in reply.last


@pytest.mark.parametrize(
    ("script", "code"),
    [
        case_param(
            Script([b"<!DOCTYPE html><p>Sign in</p>"], headers=HTML),
            "upstream_not_json",
            id="F11-web-page",
        ),
        case_param(
            Script([event({"error": {"message": "it crashed"}})]),
            "upstream_failed",
            id="F11-error-event",
        ),
        case_param(
            Script([b'{"error": {"message": "it crashed"}}'], headers=JSON),
            "upstream_failed",
            id="F11-error-document",
        ),
        pytest.param(Script([b"data: oops\n\n"]), "upstream_not_json", id="no-json"),
        case_param(Script([DONE]), "upstream_empty", id="F12-done-first"),
    ],
)
async def test_upstream_answer_of_the_wrong_kind_is_reported_in_one_sentence(
    fake: FakeUpstream, editor: Editor, script: Script, code: str
) -> None:
    check_failed(await chat(fake, editor, script), code)


@pytest.mark.case("F01")
async def test_upstream_that_is_down_is_reported_in_one_sentence() -> None:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
        async with running(settings_for(url)) as editor:
            reply = await asyncio.wait_for(editor.chat(), PATIENCE)
    check_failed(reply, "upstream_connect")
    assert url in reply.text


@pytest.mark.parametrize(
    ("pieces", "text"), [([], ""), ([delta(content="One")], "One")]
)
@pytest.mark.case("F05")
async def test_upstream_timeout_of_one_that_hangs(
    fake: FakeUpstream, pieces: list[bytes], text: str
) -> None:
    fake.play(Script(pieces, end="hang"))
    async with running(settings_for(fake.url, timeout=3)) as editor:
        reply = await asyncio.wait_for(editor.chat(), PATIENCE)
    check_failed(reply, "upstream_timeout")
    assert text_of(reply) == text
    assert len(fake.requests) == 1


async def test_a_failure_is_told_in_the_language_in_which_byok_was_started(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(401, "no such key"), answer("Hello."))
    with speaking("zh_CN"):
        async with running(settings_for(fake.url, model="m")) as editor:
            failed = await editor.chat("Hi?")
            assert failed.text.startswith("\n[byok] ")
            assert all(
                re.search("[一-鿿]", line) for line in failed.text.split("。")[:-1]
            )
            assert "密钥" in failed.text
            error = failed.last["error"]
            assert (error["code"], error["message"].isascii()) == (
                "upstream_auth",
                True,
            )
            said = {"request_message": "Hi?", "response_text": failed.text}
            await editor.chat("Again?", chat_history=[said])
    assert "[byok]" not in json.dumps(fake.requests[-1], ensure_ascii=False)


# A client that leaves.


@asynccontextmanager
async def asking(editor: Editor) -> AsyncIterator[RawConnection]:
    """Send a chat on a connection that the test can abort."""
    port = editor.daemon.port
    body = b'{"message":"x"}'
    data = filled(request(target=b"/chat-stream", body=body), port, editor.token)
    async with connected(port) as connection:
        yield await connection.send(data)


@pytest.mark.parametrize(
    "script",
    [
        case_param(Script([5.0, *answer("late")]), id="F15-before-the-first-byte"),
        case_param(Script([delta(content="One")], end="hang"), id="F15-mid-stream"),
    ],
)
async def test_disconnect_releases_the_upstream_within_half_a_second(
    fake: FakeUpstream, script: Script
) -> None:
    fake.play(script)
    async with running(settings_for(fake.url)) as editor, asking(editor) as client:
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        if script.end == "hang":
            while b"One" not in await client.line():
                pass
        client.abort()
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


@pytest.mark.case("F15")
async def test_disconnect_releases_the_upstream_while_heartbeats_are_sent(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([], end="hang"))
    timing = Timing(beat=0.02, head_after=0.01, grace=0.1, last_words=0.2)
    async with (
        running(settings_for(fake.url), timing=timing) as editor,
        asking(editor) as client,
    ):
        beats = 0
        while beats < 3:
            beats += b'"text":""' in await client.line()
        client.abort()
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


@pytest.mark.case("F15")
async def test_f15_disconnect_in_the_queue_never_reaches_the_upstream(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    limits = {"streams": 1, "waiting": 1}
    async with (
        running({**settings_for(fake.url), "limits": limits}) as editor,
        asking(editor) as inside,
    ):
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        async with asking(editor) as queued:
            while (await editor.chat()).status != 503:
                pass  # until the room is full
            queued.abort()
        fake.reached.clear()
        async with asking(editor):  # takes the chair that is free again
            inside.abort()
            await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    assert len(fake.requests) == 2


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.case("F15")
async def test_retries_end_when_the_client_leaves(
    fake: FakeUpstream, status: int
) -> None:
    busy = Script([b"{}"], status, {**JSON, "Retry-After": "100"})
    async with running(settings_for(fake.url, patience=300)) as editor:
        await editor.chat()  # opens connections
        fake.play(busy)
        fake.reached.clear()
        before = asyncio.all_tasks()
        async with asking(editor) as client:
            await asyncio.wait_for(fake.reached.wait(), PATIENCE)
            client.abort()
        async with asyncio.timeout(PATIENCE):
            while asyncio.all_tasks() - before:  # as who waits for another try
                await asyncio.sleep(0.01)
    assert len(fake.requests) == 2


# Who answers instead of one that fails before an answer


@pytest.fixture
async def other() -> AsyncIterator[FakeUpstream]:
    """A second upstream."""
    async with FakeUpstream() as started:
        started.play(answer("From the other."))
        yield started


def settings_of(first: str, other: FakeUpstream, **routing: Any) -> dict[str, Any]:
    """Two upstreams; where one fails, the other answers chats."""
    upstreams = {
        "one": {"base_url": first, "timeout": 5, "model": "m"},
        "two": {"base_url": other.url, "timeout": 5, "model": "n"},
    }
    named = ["byok:one:m", "byok:two:n"]
    return {
        "upstreams": upstreams,
        "routing": {"fallback": {"chat": named}, **routing},
    }


async def ask(editor: Editor, conversation: str = "c-1") -> Answer:
    return await editor.chat(conversation_id=conversation)


TOLD = "\n[byok] byok:two:n answers instead of byok:one:m: it cannot be reached."


async def test_fallback_answers_a_conversation_and_says_so(
    other: FakeUpstream,
) -> None:
    async with running(settings_of(dead_url(), other)) as editor:
        first, second = await ask(editor), await ask(editor)
        elsewhere = await ask(editor, "c-2")
        services = await editor.services.renew(editor.services.settings)
    assert first.text == f"From the other.{TOLD}"
    for answered in (second, elsewhere):  # each message asks the chosen model first
        assert answered.text == f"From the other.{TOLD}"
    assert services.fallbacks.memory is editor.services.fallbacks.memory
    assert {request["model"] for request in other.requests} == {"n"}


@pytest.mark.parametrize("path", ["/chat", "/generate-commit-message-stream"])
async def test_fallback_is_only_for_its_purpose_and_whole_answers_too(
    other: FakeUpstream, path: str
) -> None:
    body = {"message": "Hi?", "changed_file_stats": {}, "diff": "+a"}
    async with running(settings_of(dead_url(), other)) as editor:
        reply = await editor.post(path, body)
    assert len(other.requests) == (path == "/chat")
    assert ("From the other." in reply.raw.decode()) is (path == "/chat")
