"""How streams end in all dialects of server-sent events: in silence, or in an error."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import RefusalKind, UpstreamError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.core.stage import drain
from byok.dialects.base import DIALECTS, UpstreamRequest
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.values import SCALARS, singles

MADE = {**DIALECTS, "trial": TrialDialect.of}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def framed(name: str, values: list[Any]) -> bytes:
    """Write the values of a stream as the protocol frames them."""
    if name not in ("ollama", "trial"):
        return sse(*values)
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def chat(delta: Any, finish: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def gemini(text: str, **fields: Any) -> Any:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, **fields}]}


def text_delta(text: str) -> Any:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


START = {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}
STOPPED = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 1},
}
DONE = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}
# The beginning of an answer, the same with its reason to finish (or what comes before
# the last event), and an answer that says nothing.
STREAMS: dict[str, tuple[bytes, bytes, bytes]] = {
    "openai_chat": (
        sse(chat({"content": "Hi"})),
        sse(chat({"content": "Hi"}), chat({}, "stop")),
        sse(
            chat({"role": "assistant", "content": ""}),
            chat({}, "stop"),
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
        )
        + b"data: [DONE]\n\n",
    ),
    "anthropic": (
        sse(START, text_delta("Hi")),
        sse(START, text_delta("Hi"), STOPPED),
        sse(START, STOPPED, {"type": "message_stop"}),
    ),
    "gemini": (
        sse(gemini("Hi")),
        sse(gemini("Hi"), gemini("", finishReason="STOP")),
        sse(
            {
                **gemini("", finishReason="STOP"),
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1},
            }
        ),
    ),
    "openai_responses": (
        sse(DONE),
        sse(DONE, {"type": "response.output_text.done", "text": "Hi"}),
        sse(
            {
                "type": "response.completed",
                "response": {
                    "status": "completed",
                    "output": [],
                    "usage": {"input_tokens": 3, "output_tokens": 1},
                },
            }
        ),
    ),
}
BROKEN = {"code": 429, "message": "Too many requests", "status": "RESOURCE_EXHAUSTED"}
BODIES = {
    "one line": json.dumps({"error": BROKEN}).encode(),
    "several lines": json.dumps({"error": BROKEN}, indent=2).encode() + b"\n\n",
    "a list": b"\n" + json.dumps([{"error": BROKEN}], indent=1).encode(),
    "bare": json.dumps(BROKEN).encode() + b"\r\n",
    "an event": sse({"error": BROKEN}),
}


def read(name: str, pieces: list[bytes]) -> tuple[list[StreamEvent], str]:
    """Return what was read, and the code of the error that ended it."""
    reader = MADE[name]("").reader(UpstreamRequest("", {}))
    events: list[StreamEvent] = []
    try:
        for event in drain(reader, pieces):
            events.append(event)
    except UpstreamError as error:
        return events, error.code
    return events, ""


def test_an_error_that_is_no_event_ends_the_answer_as_an_error() -> None:
    wrong = []
    for name, (begun, finished, _) in STREAMS.items():
        for start in (begun, finished):
            for body_name, body in BODIES.items():
                raw = start + body
                more = [raw, b"\n" + sse({})]
                for pieces in ([raw], [start, body], singles(raw), more):
                    events, error = read(name, pieces)
                    said = [e.text for e in events if isinstance(e, TextDelta)]
                    if error != RefusalKind.RATE_LIMIT or "".join(said) != "Hi":
                        wrong.append((name, body_name, len(pieces), events, error))
    assert not wrong


@pytest.mark.parametrize("name", sorted(STREAMS.keys() - {"openai_chat"}))
def test_a_chat_completion_in_another_dialect_is_named(name: str) -> None:
    assert read(name, [STREAMS["openai_chat"][0]])[1] == "upstream_protocol"


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_no_whole_answer_is_an_error_after_its_text(name: str) -> None:
    begun = STREAMS[name][0]
    for raw, code in (
        (b"", "upstream_empty"),
        (b": ping\n\n", "upstream_empty"),
        (b"data: [DONE]\n\n", "upstream_empty"),
        (begun, "upstream_cut"),
        (begun + b"data: {\n\n", "upstream_not_json"),
        (begun + b"data: 7\n\n", "upstream_not_json"),
    ):
        events, error = read(name, [raw])
        said = [TextDelta("Hi")] if raw.startswith(begun) else []
        assert (events, error) == (said, code), raw


def test_other_bytes_between_events_are_passed_over() -> None:
    for odd in (b"{not JSON\n\n", b'{"a": 1}\n', b"[1]\n", b"x: {}\n", b"{" * 90_000):
        for name, (begun, *_) in STREAMS.items():
            events, error = read(name, [begun, odd])
            assert error in ("", "upstream_cut"), (name, odd[:9], error)
            assert TextDelta("Hi") in events


def test_an_answer_without_a_word_ends_with_its_usage() -> None:
    for name, (*_, silent) in STREAMS.items():
        for pieces in ([silent], singles(silent)):
            events, error = read(name, pieces)
            assert (error, events) == ("", [Usage(3, 1), Finish(FinishReason.STOP)]), (
                name
            )


# The names of each protocol, and the values that choose how it is read.
SPOKEN: dict[str, tuple[str, str]] = {
    "anthropic": (
        "type index delta content_block message usage content text thinking signature "
        "partial_json input id name stop_reason citation error",
        "message_start content_block_start content_block_delta content_block_stop "
        "message_delta message_stop ping message text tool_use thinking text_delta "
        "thinking_delta signature_delta input_json_delta citations_delta",
    ),
    "gemini": (
        "candidates content parts text thought thoughtSignature functionCall toolCall "
        "name args id partialArgs jsonPath willContinue finishReason groundingMetadata "
        "index promptFeedback usageMetadata error",
        "STOP SAFETY MAX_TOKENS $.a",
    ),
    "ollama": (
        "message content thinking tool_calls function name arguments role done "
        "done_reason response prompt_eval_count error",
        "stop length load assistant",
    ),
    "openai_chat": (
        "choices index delta message finish_reason usage x_groq error content "
        "reasoning reasoning_details refusal tool_calls function_call function name "
        "arguments type text audio",
        "stop length tool_calls reasoning.text",
    ),
    "openai_responses": (
        "type delta item response output output_index item_id summary content "
        "arguments status error usage name text",
        "response.created response.output_item.added response.output_item.done "
        "response.output_text.delta response.reasoning_text.delta response.completed "
        "response.function_call_arguments.delta response.incomplete response.failed "
        "response.function_call_arguments.done message reasoning function_call",
    ),
    "trial": (
        "text thought call place id name arguments over read written problem",
        "end calls full",
    ),
}


@cache
def chunks(name: str) -> st.SearchStrategy[list[Any]]:
    """Return random values with the names of a protocol."""
    fields, words = (st.sampled_from(text.split()) for text in SPOKEN[name])

    def inside(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(inner, max_size=2) | st.dictionaries(fields, inner, max_size=5)

    values = st.recursive(SCALARS | words, inside, max_leaves=10)
    return st.lists(st.dictionaries(fields, values, max_size=5) | values, max_size=4)


@pytest.mark.parametrize("name", MADE)
@given(st.data())
def test_whatever_comes_ends_or_is_an_error_of_the_upstream(
    name: str, data: st.DataObject
) -> None:
    events, error = read(name, [framed(name, data.draw(chunks(name)))])
    assert error or isinstance(events[-1], Finish)


# A stream of each protocol with all kinds of events.
FULL: dict[str, list[Any]] = {
    "anthropic": [
        START,
        *(
            {"type": "content_block_start", "index": n, "content_block": block}
            for n, block in enumerate(
                (
                    {"type": "thinking", "thinking": "", "signature": ""},
                    {"type": "text", "text": "", "citations": []},
                    {"type": "tool_use", "id": "i", "name": "view", "input": {}},
                )
            )
        ),
        *(
            {"type": "content_block_delta", "index": n, "delta": {"type": kind, **more}}
            for n, kind, more in (
                (0, "thinking_delta", {"thinking": "hm"}),
                (0, "signature_delta", {"signature": "s"}),
                (1, "text_delta", {"text": "Hi"}),
                (2, "input_json_delta", {"partial_json": "{}"}),
            )
        ),
        {"type": "content_block_stop", "index": 2},
        {"type": "message", "content": [{"type": "text", "text": "Ho"}]},
        STOPPED,
        {"type": "message_stop"},
    ],
    "gemini": [
        gemini("Hi"),
        *(
            {"candidates": [{"content": {"parts": [part]}}]}
            for part in (
                {"text": "hm", "thought": True},
                {"text": "m", "thought": True, "thoughtSignature": "s"},
                {"functionCall": {"name": "view", "willContinue": True}},
                {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "text": "b"}]}},
                {"functionCall": {"name": "edit", "args": {}}, "thoughtSignature": "s"},
            )
        ),
        {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}},
        gemini("Ho", finishReason="STOP", finishMessage="Done."),
    ],
    "ollama": [
        {"message": {"role": "assistant", "content": "Hi", "thinking": "hm"}},
        {"message": {"tool_calls": [{"function": {"name": "view", "arguments": {}}}]}},
        {"message": {"content": "Ho"}, "done": True, "done_reason": "stop"},
    ],
    "openai_chat": [
        chat({"role": "assistant", "content": "Hi", "reasoning": "hm"}),
        chat({"content": [{"text": "a"}, {"type": "thinking", "thinking": "m"}]}),
        chat({"content": "Ho"}),
        chat(
            {"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": ""}}]}
        ),
        {**chat({}, "stop"), "x_groq": {"usage": {"prompt_tokens": 3}}},
    ],
    "openai_responses": [
        *(
            {"type": "response.output_item.added", "output_index": n, "item": item}
            for n, item in enumerate(
                (
                    {"type": "reasoning", "id": "r", "summary": []},
                    {"type": "message", "id": "m", "phase": "commentary"},
                    {"type": "function_call", "id": "f", "call_id": "c", "name": "a"},
                )
            )
        ),
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {**DONE, "output_index": 1},
        {
            "type": "response.function_call_arguments.delta",
            "output_index": 2,
            "delta": "{}",
        },
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "r", "encrypted_content": "e"},
        },
        {"type": "response.completed", "response": {"status": "completed"}},
    ],
    "trial": [
        {"thought": "hm"},
        {"text": "Hi"},
        {"call": {"place": 0, "id": "i", "name": "view"}},
        {"call": {"place": 0, "arguments": "{}"}},
        {"over": "calls", "read": 3, "written": 1},
    ],
}
ODD: tuple[Any, ...] = (None, 7, "", "x", "\ud83d", [], {}, [7], {"a": 7})


def with_odd_values(value: Any) -> Iterator[Any]:
    """Yield a value with one place of it odd or missing, for each of its places."""
    yield from ODD
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {k: v for k, v in value.items() if k != name}
            yield from ({**value, name: odd} for odd in with_odd_values(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for odd in with_odd_values(inner):
                yield [*value[:place], odd, *value[place + 1 :]]


@pytest.mark.parametrize("name", MADE)
def test_an_odd_value_anywhere_ends_or_is_an_error_of_the_upstream(name: str) -> None:
    assert read(name, [framed(name, FULL[name])])[1] == ""
    for odd in with_odd_values(FULL[name]):
        if isinstance(odd, list):
            events, error = read(name, [framed(name, odd)])
            assert error or isinstance(events[-1], Finish), odd
