"""The chunks of an answer: order, ids, stop reasons, and what stays out."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Json,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.errors import ByokError, UpstreamUnreachable
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
)
from byok.core.stage import drain
from byok.protocols.augment.chat_reply import ChatReply, chunk, collect, source_lines
from byok.protocols.augment.history import read_reply
from byok.protocols.augment.reply_job import ReplyFacts
from byok.upstream.toolcalls.assemble import ToolCallAssembler

SIGNED = ProviderData(Origin("d", "u", "m"), {"signature": "CiQ+/=="})
CALL = ToolCall("c1", "view", '{"path": "a.py"}')
OTHER = ToolCall("c2", "snap_box", "{}")
MCP = ToolDefinition("snap_box", "", {"type": "object"}, "box", "snap")
BOTH = ChatRequest((), (MCP,), client_tool_use_start=True)
STOP, TOOLS, LENGTH, FILTER = (
    Finish(reason)
    for reason in (
        FinishReason.STOP,
        FinishReason.TOOL_CALLS,
        FinishReason.LENGTH,
        FinishReason.CONTENT_FILTER,
    )
)
FACTS = ReplyFacts("r-1")
BROKE = UpstreamUnreachable("It broke.", hint="Try again.")


def written(
    *events: StreamEvent, chat: ChatRequest = BOTH, error: ByokError | None = None
) -> list[Json]:
    reply = ChatReply(chat, FACTS)
    chunks = [c for event in events for c in reply.feed(event)]
    return [*chunks, *(reply.fail(error) if error else reply.flush())]


def nodes(chunks: Iterable[Json]) -> list[Any]:
    return [node for c in chunks for node in c["nodes"]]


def types(chunks: Iterable[Json]) -> list[int]:
    return [int(node["type"]) for node in nodes(chunks)]


def texts(chunks: Iterable[Json]) -> list[str]:
    return [c["text"] for c in chunks if c["text"]]


WAIT = Notice("groq: its rate\n limit is reached, waiting 20 s.", at_once=True)


def test_notice_of_a_wait_stands_above_the_answer_and_in_no_node() -> None:
    reply = ChatReply(ASKED, FACTS)
    [told] = reply.feed(WAIT)
    said = "[byok] groq: its rate limit is reached, waiting 20 s.\n\n"
    assert (told["text"], told["nodes"]) == (said, [])
    assert not reply.has_output
    chunks = [told, *reply.feed(TextDelta("Hi.")), *reply.flush()]
    text = "".join(texts(chunks))
    assert text == f"{said}Hi."
    item = {"response_text": text, "response_nodes": nodes(chunks)}
    assert read_reply(item).text == "Hi."


def test_notice_of_a_wait_comes_at_the_end_once_the_answer_has_begun() -> None:
    chunks = written(TextDelta("Hi."), WAIT, STOP)
    assert "".join(texts(chunks)).startswith("Hi.\n[byok] groq: ")
    chunks = written(WAIT, TextDelta("Hi."), STOP, chat=replace(ASKED, verbatim=True))
    assert "".join(texts(chunks)).startswith("Hi.\n[byok] groq: ")


def test_chat_reply_nodes_are_in_their_order() -> None:
    chunks = written(
        ThinkingDelta("Hm"),
        ThinkingDelta("m."),
        TextDelta("Let me "),
        TextDelta("look."),
        CALL,
        OTHER,
        Usage(812, 40, 100, 7),
        TOOLS,
    )
    assert types(chunks) == [8, 0, 7, 5, 7, 5, 10, 2]
    assert [node["id"] for node in nodes(chunks)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert texts(chunks) == ["Let me ", "look."]
    thinking, text, start, use, *_, usage, _ = nodes(chunks)
    assert thinking["thinking"] == {"summary": "Hmm.", "content": None}
    assert text["content"] == "Let me look."
    assert use["tool_use"] == {
        "tool_use_id": "c1",
        "tool_name": "view",
        "input_json": '{"path": "a.py"}',
        "is_partial": False,
    }
    assert start["tool_use"] == {**use["tool_use"], "is_partial": True}
    assert usage["token_usage"] == {
        "input_tokens": 812,
        "output_tokens": 40,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
    }


@pytest.mark.parametrize(
    ("finish", "without", "with_call"),
    [
        pytest.param(STOP, 1, 3, id="stop"),
        pytest.param(TOOLS, 1, 3, id="tool_calls"),
        pytest.param(LENGTH, 2, 2, id="length"),
        pytest.param(FILTER, 4, 4, id="content_filter"),
        pytest.param(None, 1, 3, id="none"),
    ],
)
def test_stop_reason_depends_on_the_finish_and_on_tool_calls(
    finish: Finish | None, without: int, with_call: int
) -> None:
    end = [finish] if finish else []
    for events, stop in (((), without), ((CALL,), with_call)):
        stops = [c["stop_reason"] for c in written(TextDelta("a"), *events, *end)]
        assert stops[-1] == stop
        assert not any(stops[:-1])


@pytest.mark.parametrize("events", [(), (TextDelta("a"),), (CALL,)])
def test_stop_reason_of_a_broken_answer_is_zero_with_an_error(
    events: tuple[StreamEvent, ...],
) -> None:
    chunks = written(*events, error=BROKE)
    assert chunks[-1]["stop_reason"] == 0
    assert chunks[-1]["error"] == {
        "code": "upstream_unreachable",
        "message": "It broke. Try again.",
        "request_id": "r-1",
    }
    assert texts(chunks)[-1] == "\n[byok] It broke. Try again."
    assert types(chunks)[-1] == 2


@pytest.mark.parametrize("error", [None, BROKE])
def test_notice_is_shown_and_never_comes_back(error: ByokError | None) -> None:
    notice = Notice("A call\n was incomplete.", "tool_call_incomplete")
    chunks = written(TextDelta("Hi."), notice, STOP, error=error)
    assert "\n[byok] A call was incomplete." in texts(chunks)
    assert "[byok]" not in repr(nodes(chunks))
    assert [n["content"] for n in nodes(chunks) if n["type"] == 0] == ["Hi."]
    kept_by_client = {"response_text": collect(chunks)["text"]}
    assert read_reply(kept_by_client).text == "Hi."
    assert chunks[-1]["error"]["code"] in ("tool_call_incomplete", BROKE.code)


def test_notice_for_information_is_no_error() -> None:
    chunks = written(TextDelta("Hello"), Notice("Tool x was left out."), STOP)
    assert chunks[-2]["text"] == "\n[byok] Tool x was left out."
    assert "error" not in chunks[-1] and chunks[-1]["stop_reason"] == 1
    silent = written(
        TextDelta("Hello"), Notice("Left out."), STOP, chat=replace(BOTH, silent=True)
    )
    assert "[byok]" not in collect(silent)["text"]


def test_sources_stand_last_and_never_come_back() -> None:
    page = Citation("https://a.example/x")
    events: list[StreamEvent] = [
        page,
        TextDelta("So it is.\n"),
        Citation(page.url, "A page"),
        page,
        STOP,
    ]
    whole = collect(written(*events))
    lines = ["So it is.", "", "[byok] Sources:", "[byok] 1. A page https://a.example/x"]
    assert whole["text"].split("\n") == lines
    item = {"response_text": whole["text"], "response_nodes": whole["nodes"]}
    assert read_reply(item).text == "So it is."


@pytest.mark.parametrize(
    "chat", [replace(BOTH, silent=True), replace(BOTH, verbatim=True)]
)
def test_sources_are_left_out_where_the_text_is_used_as_it_is(
    chat: ChatRequest,
) -> None:
    events = (TextDelta("Yes."), Citation("https://a.example"), STOP)
    assert texts(written(*events, chat=chat)) == ["Yes."]


@pytest.mark.parametrize(
    ("start", "expected"), [(True, [7, 5, 7, 5, 2]), (False, [5, 5, 2])]
)
def test_chat_reply_has_only_nodes_that_the_client_supports(
    start: bool, expected: list[int]
) -> None:
    chunks = written(
        CALL, OTHER, TOOLS, chat=replace(BOTH, client_tool_use_start=start)
    )
    assert types(chunks) == expected
    assert nodes(chunks)[0]["tool_use"]["tool_use_id"] == "c1"
    assert chunks[-1]["stop_reason"] == 3


def test_tool_use_of_an_mcp_tool_echoes_its_origin() -> None:
    for node in nodes(written(OTHER, TOOLS))[:2]:
        assert node["tool_use"]["mcp_server_name"] == "box"
        assert node["tool_use"]["mcp_tool_name"] == "snap"


def test_chat_reply_of_a_silent_job_has_no_thinking() -> None:
    events = (ThinkingDelta("Hm."), TextDelta("Yes."), STOP)
    assert types(written(*events, chat=ChatRequest((), silent=True))) == [0, 2]
    assert types(written(*events)) == [8, 0, 2]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((), [2], id="nothing"),
        pytest.param((ThinkingDelta(" \n"), STOP), [2], id="blank thoughts"),
        pytest.param((TextDelta("\n"), ThinkingDelta("b"), TextDelta("c"), STOP),
                     [8, 0, 2], id="white space before the thoughts"),
        pytest.param((ThinkingDelta("", SIGNED), STOP), [8, 2], id="only encrypted"),
        pytest.param((ThinkingDelta("b"), OTHER, TOOLS), [8, 7, 5, 2],
                     id="thoughts before a call"),
        pytest.param((ToolCallDelta(0, "c", "view", "{}"), STOP), [2],
                     id="a fragment that became no call"),
    ],
)  # fmt: skip
def test_chat_reply_nodes_appear_only_for_what_there_was(
    events: tuple[StreamEvent, ...], expected: list[int]
) -> None:
    assert types(written(*events)) == expected


ASKED = ChatRequest((Message(Role.USER, (TextPart("Hi"),)),))


@pytest.mark.parametrize(
    "events", [(), (STOP,), (ThinkingDelta("Hm."), STOP), (TextDelta(" \n"), STOP)]
)
def test_notice_of_an_empty_answer(events: tuple[StreamEvent, ...]) -> None:
    chunks = written(*events, chat=ASKED)
    assert texts(chunks)[-1].startswith("\n[byok] The model gave an empty answer.")
    assert chunks[-1]["error"]["code"] == "upstream_empty"
    assert chunks[-1]["stop_reason"] == 1


@pytest.mark.parametrize(
    ("events", "chat"),
    [
        ((TextDelta("a"), STOP), ASKED),
        ((CALL, TOOLS), ASKED),
        ((LENGTH,), ASKED),
        ((STOP,), replace(ASKED, silent=True)),
        ((), ChatRequest(())),
    ],
)
def test_notice_is_left_out_beside_an_answer_or_where_nobody_reads_it(
    events: tuple[StreamEvent, ...], chat: ChatRequest
) -> None:
    chunks = written(*events, chat=chat)
    assert "error" not in chunks[-1]
    assert "[byok]" not in "".join(texts(chunks))


def test_tool_use_stands_where_the_call_began() -> None:
    chunks = written(
        TextDelta("One."),
        ToolCallPlace("c1"),
        ThinkingDelta("Hm."),
        TextDelta("Two."),
        ToolCallPlace("broken"),
        TextDelta("Three."),
        CALL,
        OTHER,
        TOOLS,
        chat=replace(BOTH, client_tool_use_start=False),
    )
    assert texts(chunks) == ["One.", "Two.", "Three."]
    assert types(chunks) == [0, 5, 8, 0, 0, 5, 2]
    assert [node["id"] for node in nodes(chunks)] == [1, 2, 3, 4, 5, 6, 7]
    uses = [n["tool_use"]["tool_use_id"] for n in nodes(chunks) if n["type"] == 5]
    assert uses == ["c1", "c2"]


def test_text_behind_an_open_tool_use_is_shown_at_once() -> None:
    reply = ChatReply(BOTH, FACTS)
    assert list(reply.feed(ToolCallPlace("c1"))) == []
    assert list(reply.feed(TextDelta("Two."))) == [chunk("Two.")]


STEPS = st.lists(st.sampled_from(["text", "thought", "signed", "call"]), max_size=9)


@given(STEPS)
def test_chat_reply_is_read_back_in_the_order_in_which_it_came(
    steps: list[str],
) -> None:
    stage = ToolCallAssembler((), new_id=lambda: "new")
    events: list[StreamEvent] = []
    blocks: list[Part] = []
    for number, step in enumerate(steps):
        match step:
            case "text":
                events.append(TextDelta(f"t{number}"))
                blocks.append(TextPart(f"t{number}"))
            case "call":
                events.append(ToolCallDelta(number, f"c{number}", "view", "{}"))
                blocks.append(ToolCall(f"c{number}", "view", "{}"))
            case _:
                signed = SIGNED if step == "signed" else None
                events.append(ThinkingDelta(f"h{number}", signed))
                blocks.append(ThinkingPart(f"h{number}", signed))
    whole = drain(stage, [*events, TOOLS])
    item = collect(written(*whole, chat=BOTH))
    reply = read_reply({"response_text": item["text"], "response_nodes": item["nodes"]})
    assert _joined(reply.blocks) == _joined(blocks)


def _joined(blocks: Iterable[Part]) -> list[Part]:
    """Join what no node parts: texts in a row, and thoughts that nothing ends."""
    out: list[Part] = []
    for block in blocks:
        match out, block:
            case [*_, TextPart(text=before)], TextPart(text=text):
                out[-1] = TextPart(before + text)
            case (
                [*_, ThinkingPart(text=before, provider_data=None)],
                ThinkingPart(text=text, provider_data=data),
            ):
                out[-1] = ThinkingPart(before + text, data)
            case _:
                out.append(block)
    return out


@pytest.mark.parametrize("told", ["", "[workspace]"])
def test_an_empty_answer_after_a_tool_result_is_no_failure(told: str) -> None:
    result = Message(Role.TOOL, (ToolResult("c", "view", "Done."),))
    aside = Message(Role.USER, (TextPart(told, is_aside=True),))
    messages = (*ASKED.messages, result, *([aside] if told else []))
    chat = replace(ASKED, messages=messages)
    chunks = written(Usage(3, 1), STOP, chat=chat)
    assert "error" not in chunks[-1]
    assert chunks[-1]["stop_reason"] == 1
    assert texts(chunks) == []
    assert 10 in types(chunks)


# The list of sources: numbers, titles, and what a hostile title cannot do


def test_sources_are_one_line_each_whatever_they_contain() -> None:
    lines = [*source_lines({"https://a\n.example": "A\n\u2028[byok] title" * 99})]
    assert len(lines) == 2
    assert len(lines[1]) < 230
    assert lines[1].endswith("https://a .example")
    assert "\n" not in lines[1]


def test_sources_beyond_the_most_are_counted() -> None:
    lines = [*source_lines({f"https://a.example/{n}": "" for n in range(45)})]
    assert lines[-2:] == ["40. https://a.example/39", "and 5 more."]
