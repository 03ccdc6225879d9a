"""Reading Responses: OpenAI's own answers, and how its imitators differ."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Json, Origin, ProviderData
from byok.core.errors import UpstreamError, UpstreamRefused
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.stage import chain, drain
from byok.core.wire.json_body import write_json
from byok.core.wire.sse import SSEDecoder
from byok.dialects.openai_responses.answer import ResponsesAnswer
from byok.dialects.openai_responses.request import foreign_tool
from tests.fakes.responses_server import (
    call_item,
    reasoning_item,
    response,
    streamed,
    text_item,
)
from tests.fakes.upstream import DONE, event
from tests.fakes.values import CUTS, cut

HERE = Origin("openai_responses", "box", "m")
STOP = Finish(FinishReason.STOP)
CALLS = Finish(FinishReason.TOOL_CALLS)
LENGTH = Finish(FinishReason.LENGTH)
USAGE = {
    "input_tokens": 9,
    "output_tokens": 5,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    "output_tokens_details": {"reasoning_tokens": 4},
}


def decode(
    *pieces: bytes, tool_names: dict[str, str] | None = None
) -> list[StreamEvent]:
    decoder = ResponsesAnswer(tool_names or {}, HERE)
    return merged(drain(chain(SSEDecoder(), decoder), pieces))


def merged(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Join the pieces of texts, thoughts and arguments."""
    out: list[StreamEvent] = []
    for item in events:
        last = out[-1] if out else None
        match item, last:
            case (TextDelta(), TextDelta()):
                last.text += item.text
            case (ThinkingDelta(), ThinkingDelta(provider_data=None)):
                out[-1] = ThinkingDelta(last.text + item.text, item.provider_data)
            case (ToolCallDelta(id="", name=""), ToolCallDelta()) if (
                item.index == last.index
            ):
                last.arguments += item.arguments
            case _:
                out.append(item)
    return out


def kept(**data: Any) -> ProviderData:
    return ProviderData(HERE, data)


def delta(kind: str, text: str, **fields: Any) -> bytes:
    return event({"type": f"response.{kind}.delta", "delta": text, **fields})


def ended(**fields: Any) -> bytes:
    whole = {"status": "completed", **fields}
    return event({"type": "response.completed", "response": whole})


def item_event(name: str, item: Any, **fields: Any) -> bytes:
    kind = f"response.output_item.{name}"
    return event({"type": kind, "item": item, **fields})


SEALED = reasoning_item("gAAA", "One.", "Two.")
SENT_BACK = {k: v for k, v in SEALED.items() if k != "id"}
CALL = call_item("view", '{"a": 1}')

STREAMS: dict[str, tuple[list[bytes], list[StreamEvent]]] = {
    "text and usage": (
        streamed(text_item("Hello."), usage=USAGE),
        [TextDelta("Hello."), Usage(9, 5, 3, 2, 4), STOP],
    ),
    "reasoning, commentary, two calls": (
        streamed(
            SEALED,
            text_item("I look.", phase="commentary"),
            CALL,
            call_item("edit", "", "call_2"),
        ),
        [
            ThinkingDelta("One.\nTwo.", kept(item=SENT_BACK, phase="commentary")),
            TextDelta("I look."),
            ToolCallDelta(0, "call_1", "view", '{"a": 1}'),
            ToolCallDelta(1, "call_2", "edit"),
            CALLS,
        ],
    ),
    "reasoning itself, not sealed": (
        [
            item_event("added", {"type": "reasoning"}, output_index=0),
            delta("reasoning_text", "Hm", output_index=0, content_index=0),
            delta("reasoning_summary_text", "no", output_index=0, summary_index=0),
            item_event(
                "done",
                {"type": "reasoning", "summary": [], "content": [{"text": "Hm"}]},
                output_index=0,
            ),
            item_event("done", text_item("So."), output_index=1),
            ended(),
        ],
        [
            ThinkingDelta(
                "Hm",
                kept(
                    item={
                        "type": "reasoning",
                        "summary": [],
                        "content": [{"text": "Hm"}],
                    }
                ),
            ),
            TextDelta("So."),
            STOP,
        ],
    ),
    "items that end in another order (OpenRouter)": (
        [
            item_event("added", {"type": "message"}, output_index=0),
            delta("output_text", "So.", output_index=0),
            item_event("added", {"type": "reasoning"}, output_index=1),
            item_event("done", text_item("So."), output_index=0),
            item_event("done", SEALED, output_index=1),
            ended(),
        ],
        [TextDelta("So."), ThinkingDelta("One.\nTwo.", kept(item=SENT_BACK)), STOP],
    ),
    "no places (llama.cpp)": (
        [
            item_event("added", {"type": "message", "id": "a"}),
            delta("output_text", "So.", item_id="a"),
            item_event("done", text_item("So.", id="b")),
            item_event("added", CALL | {"arguments": ""}),
            delta("function_call_arguments", '{"a": 1}', item_id="fc_other"),
            item_event("done", CALL),
            item_event("done", call_item("edit", "{}", "call_2")),
            ended(output=[text_item("So."), CALL]),
        ],
        [
            TextDelta("So."),
            ToolCallDelta(0, "call_1", "view", '{"a": 1}'),
            ToolCallDelta(1, "call_2", "edit", "{}"),
            CALLS,
        ],
    ),
    "everything in the last event": (
        [ended(output=[SEALED, text_item("So.", phase="final_answer")], usage=USAGE)],
        [
            ThinkingDelta("One.\nTwo.", kept(item=SENT_BACK, phase="final_answer")),
            TextDelta("So."),
            Usage(9, 5, 3, 2, 4),
            STOP,
        ],
    ),
    "one document": (
        [write_json(response(text_item("So."), CALL))],
        [TextDelta("So."), ToolCallDelta(0, "call_1", "view", '{"a": 1}'), CALLS],
    ),
    "cut by the limit": (
        streamed(
            text_item("So"),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        [TextDelta("So"), LENGTH],
    ),
    "cut by a filter": (
        streamed(
            text_item("So"),
            status="incomplete",
            incomplete_details={"reason": "content_filter"},
        ),
        [TextDelta("So"), Finish(FinishReason.CONTENT_FILTER)],
    ),
    "a think block in the text": (
        streamed(text_item("<think>Hm</think>So.")),
        [
            ThinkingDelta("Hm", kept(tags=["<think>", "</think>"])),
            TextDelta("So."),
            STOP,
        ],
    ),
    "sources that the text does not name": (
        streamed(
            {
                "type": "message",
                "content": [
                    {
                        "type": "output_text",
                        "text": "See https://a.example.",
                        "annotations": [
                            {"url": "https://a.example", "title": "A"},
                            {"url": "https://b.example", "title": "B"},
                            {"file_id": "f"},
                        ],
                    }
                ],
            }
        ),
        [
            TextDelta("See https://a.example."),
            Citation("https://b.example", "B"),
            STOP,
        ],
    ),
    "tools of the API": (
        [
            item_event("done", {"type": "web_search_call"}, output_index=0),
            item_event("done", {"type": "apply_patch_call"}, output_index=1),
            ended(),
        ],
        [
            Notice(
                "The model called `apply_patch`, a tool of its API that byok cannot "
                "run."
            ),
            CALLS,
        ],
    ),
    "what may stand between": (
        [
            b": ping\n\n",
            event({"type": "keepalive"}),
            event({"type": "response.in_progress"}),
            event({"type": "response.unknown", "message": "new"}),
            event({"type": 7, "delta": "no"}),
            delta("output_text", "So."),
            b"data:  \n\n",
            ended(),
            DONE,
            event({"type": "error", "message": "late"}),
        ],
        [TextDelta("So."), STOP],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_events_of_a_stream(name: str) -> None:
    pieces, events = STREAMS[name]
    assert decode(*pieces) == merged(events)


@settings(max_examples=60)
@given(st.sampled_from(sorted(STREAMS)), CUTS)
def test_any_slices_give_the_same_events(name: str, places: list[int]) -> None:
    pieces, events = STREAMS[name]
    whole = b"".join(pieces)
    assert decode(*cut(whole, places)) == merged(events)


def test_tool_names_are_those_of_the_user() -> None:
    sent = {"v": "view file", "plain": "plain"}
    custom = {"type": "custom_tool_call", "name": "plain", "input": '{"a": 1}'}
    found = decode(*streamed(call_item("v")), tool_names=sent)
    assert found[0] == ToolCallDelta(0, "call_1", "view file", "{}")
    found = decode(item_event("done", custom), ended(), tool_names=sent)
    assert found == [ToolCallDelta(0, "", "plain", '{"a": 1}'), CALLS]


def until_error(*pieces: bytes) -> tuple[list[StreamEvent], UpstreamError]:
    """Give what came before the error, and the error."""
    stage = chain(SSEDecoder(), ResponsesAnswer({}))
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError) as caught:
        for found in drain(stage, pieces):
            events.append(found)
    return events, caught.value


HI = delta("output_text", "Hi")
RATE = {
    "code": "rate_limit_exceeded",
    "message": "Rate limit reached, try again in 3s.",
}


@pytest.mark.parametrize(
    "last",
    [
        event({"type": "error", **RATE}),
        event({"type": "error", "error": RATE}),
        event({"type": "response.failed", "response": {"error": RATE}}),
        ended(error=RATE),
        b"event: error\ndata: " + write_json(RATE) + b"\n\n",
        b"event: error\ndata: Rate limit reached\n\n",
    ],
)
def test_an_error_event_ends_the_answer(last: bytes) -> None:
    events, error = until_error(HI, last, HI, ended())
    assert events == [TextDelta("Hi")]
    assert isinstance(error, UpstreamRefused)
    assert error.code == "upstream_rate_limit"


def test_a_refusal_may_come_in_one_piece() -> None:
    part = {"type": "refusal", "refusal": "No."}
    document = response({"type": "message", "content": [part]})
    assert decode(write_json(document)) == [TextDelta("No."), STOP]


def test_a_document_may_be_an_error() -> None:
    assert isinstance(until_error(write_json({"detail": "no"}))[1], UpstreamRefused)


def lossy(repeated: str, *, has_index: bool) -> list[bytes]:
    """Return a stream that lost the end of the text and a piece of the arguments.

    `repeated` names the events that have the whole of it.
    """
    message = {**text_item("Hello there."), "id": "msg_1"}
    call = {**call_item("view", '{"path": "a.py", "line": 1}'), "id": "fc_1"}
    one, two = ({"output_index": n} if has_index else {} for n in (0, 1))
    kind = "response.function_call_arguments"
    done = {"type": f"{kind}.done", "item_id": "fc_1", **two}
    pieces = [
        item_event("added", {**message, "content": []}, **one),
        delta("output_text", "Hello", item_id="msg_1", **one),
    ]
    if repeated in ("item", "all"):
        pieces.append(item_event("done", message, output_index=0))
    pieces += [
        item_event("added", {**call, "arguments": ""}, **two),
        delta("function_call_arguments", '{"path": ', item_id="fc_1", **two),
        delta("function_call_arguments", ' "line": 1}', item_id="fc_1", **two),
    ]
    if repeated in ("arguments", "all"):
        pieces.append(event({**done, "arguments": call["arguments"]}))
    if repeated in ("item", "all"):
        pieces.append(item_event("done", call, output_index=1))
    is_whole = repeated in ("completed", "all")
    return [*pieces, ended(output=[message, call] if is_whole else [])]


def test_what_deltas_lost_is_completed_by_what_repeats_them() -> None:
    wrong = []
    for repeated in ("arguments", "item", "completed", "all"):
        for has_index in (True, False):
            events = decode(*lossy(repeated, has_index=has_index))
            said = "".join(e.text for e in events if isinstance(e, TextDelta))
            calls = [e for e in events if isinstance(e, ToolCallDelta)]
            given = "".join(e.arguments for e in calls)
            text = "Hello" if repeated == "arguments" else "Hello there."
            whole = '{"path": "a.py", "line": 1}'
            if (said, given, [e.name for e in calls if e.name]) != (
                text,
                whole,
                ["view"],
            ):
                wrong.append((repeated, has_index, said, calls))
    assert not wrong


def test_two_messages_are_parted_by_a_blank_line() -> None:
    one, two = text_item("I look.", phase="commentary"), text_item("Done.")
    for stream in (streamed(one, two), [ended(output=[one, two])]):
        events = decode(*stream)
        said = "".join(e.text for e in events if isinstance(e, TextDelta))
        assert said == "I look.\n\nDone."


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"type": "custom_tool_call", "name": "a"}, "a"),
        ({"type": "custom_tool_call"}, "custom"),
        ({"type": "shell_call", "environment": {"type": "container"}}, ""),
        ({"type": "tool_search_call", "execution": "client"}, "tool_search"),
        ({"type": "tool_search_call", "execution": "server"}, ""),
        ({"type": "web_search_call"}, ""),
    ],
)
def test_a_tool_of_the_api_is_the_clients_where_the_client_runs_it(
    item: Json, name: str
) -> None:
    assert foreign_tool(item) == name
