"""Upstreams that break in every way, and clients that leave; ids as in the test plan.

Whatever happens, the text so far is kept, one sentence tells the user, one last chunk
ends the answer, and nothing goes on that nobody waits for.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest

from byok.server.http.deadlines import Timing
from tests.fakes.bodies import tool
from tests.fakes.cases import case_param
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import RawConnection, connected, filled, request
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    tool_answer,
)

VIEW = tool(path="string")
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


@pytest.mark.parametrize(
    ("end", "code"), [("eof", "upstream_cut"), ("reset", "upstream_cut")]
)
@pytest.mark.parametrize(
    "cut",
    [
        case_param(RAW_EURO[: RAW_EURO.index(b"1") + 1], id="F03-in-text"),
        case_param(RAW_EURO[: RAW_EURO.index(b"\xe2") + 2], id="F03-in-a-character"),
        case_param(ESCAPED[: ESCAPED.index(b"20ac")], id="F03-in-an-escape"),
    ],
)
async def test_stream_that_is_cut_keeps_its_whole_events_only(
    fake: FakeUpstream, editor: Editor, cut: bytes, end: str, code: str
) -> None:
    reply = await chat(fake, editor, Script([delta(content="Zero "), cut], end=end))
    check_failed(reply, code)
    assert text_of(reply) == "Zero "
    assert "\ufffd" not in reply.text


CALL_OPEN, CALL_FINISH, _ = tool_answer("view", '{"path": "a')


@pytest.mark.parametrize(
    ("script", "code"),
    [
        case_param([CALL_OPEN], "upstream_cut", id="F04-cut"),
        case_param(
            [CALL_OPEN, delta(finish="length"), DONE],
            "tool_call_incomplete",
            id="F04-length",
        ),
        case_param(
            [CALL_OPEN, CALL_FINISH, DONE],
            "tool_call_incomplete",
            id="F04-half-finished",
        ),
    ],
)
async def test_tool_call_that_came_in_part_is_never_passed_on(
    fake: FakeUpstream, editor: Editor, script: list[bytes], code: str
) -> None:
    reply = await chat(fake, editor, script)
    assert reply.tool_uses == []
    assert [n["type"] for n in reply.nodes] == [2]
    assert reply.last["error"]["code"] == code
    assert reply.text.count("\n[byok] ") == 1
    assert reply.last["stop_reason"] != 3


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


@pytest.mark.case("F04")
async def test_f04_finish_without_done_is_success(
    fake: FakeUpstream, editor: Editor
) -> None:
    check_ended(await chat(fake, editor, answer("Whole.")[:-1]), "Whole.")
    reply = await chat(fake, editor, tool_answer("view", '{"path": "a"}')[:-1])
    assert [use["input_json"] for use in reply.tool_uses] == ['{"path": "a"}']
    assert reply.last["stop_reason"] == 3


WHOLE = {
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Whole."},
            "finish_reason": "stop",
        }
    ]
}


@pytest.mark.case("F11")
async def test_f11_json_where_a_stream_was_requested_is_read(
    fake: FakeUpstream, editor: Editor
) -> None:
    body = json.dumps(WHOLE).encode()
    check_ended(await chat(fake, editor, Script([body], headers=JSON)), "Whole.")
    check_ended(
        await chat(fake, editor, Script([body[:20], 0.01, body[20:]])), "Whole."
    )


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


USAGE = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
OTHER = event({"choices": [{"index": 1, "delta": {"content": "no"}}]})


@pytest.mark.parametrize(
    "script",
    [
        case_param([*answer("Whole."), DONE], id="F12-two-dones"),
        case_param([*answer("Whole."), delta(content="late")], id="F12-data-behind"),
        case_param([USAGE, *answer("Whole.")], id="F12-usage-first"),
        case_param([*answer("Whole.")[:-1], USAGE, DONE], id="F12-usage-behind"),
        case_param([event({"choices": []}), *answer("Whole.")], id="F12-no-choices"),
        case_param([event({}), *answer("Whole.")], id="F12-empty-object"),
        case_param([OTHER, *answer("Whole."), OTHER], id="F12-second-choice"),
        pytest.param([b": ping\n\n", *answer("Who", "le.")], id="comment"),
        pytest.param([*answer("Wh", "", "ole.")], id="nothing-between"),
    ],
)
async def test_sse_events_in_odd_order_give_the_same_text(
    fake: FakeUpstream, editor: Editor, script: list[bytes]
) -> None:
    check_ended(await chat(fake, editor, script), "Whole.")


LINES = (
    b"\xef\xbb\xbf: hello\n"
    b"event: message\n"
    b"id: 7\n"
    b"retry: 10\n"
    b'data:{"choices":[{"index":0,\n'
    b'data: "delta":{"content":"a\xe2\x80\xa8b\xc2\x85c"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
ENDS = {
    "LF": LINES,
    "CRLF": LINES.replace(b"\n", b"\r\n"),
    "CR": LINES.replace(b"\n", b"\r"),
    "mixed": LINES.replace(b"\n", b"\r\n", 5).replace(
        b'}\n\ndata: {"', b'}\r\rdata: {"'
    ),
}
TEXT = "a\u2028b\x85c"


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.case("F13")
async def test_f13_sse_every_line_ending_gives_the_same_text(
    fake: FakeUpstream, editor: Editor, ends: str
) -> None:
    raw = ENDS[ends]
    check_ended(await chat(fake, editor, [raw]), TEXT)
    place = raw.index(b"retry: 10") + len(b"retry: 10") + 1  # within a CRLF
    check_ended(
        await chat(fake, editor, Script([raw[:place], 0.02, raw[place:]])), TEXT
    )


@pytest.mark.case("F14")
async def test_surrogate_halves_are_joined_in_tool_arguments(
    fake: FakeUpstream, editor: Editor
) -> None:
    opened, finish, done = tool_answer("view", '{"path": "\ud83d')
    rest = {"index": 0, "function": {"arguments": '\ude00"}'}}
    reply = await chat(fake, editor, [opened, delta(tool_calls=[rest]), finish, done])
    [use] = reply.tool_uses
    assert json.loads(use["input_json"]) == {"path": "\U0001f600"}


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
