"""How streams end in all dialects of server-sent events: in silence, or in an error."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import RefusalKind, UpstreamError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.core.stage import drain
from byok.dialects.base import DIALECTS, Codec, UpstreamRequest
from byok.dialects.fim_codecs import codecs_of
from byok.dialects.fim_templates import FimMode, FimProfile
from tests.fakes import messages_api
from tests.fakes.ollama_server import call_line, done_line, text_line
from tests.fakes.responses_server import (
    call_item,
    reasoning_item,
    streamed,
    text_item,
)
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.upstream import DONE, delta, event, tool_answer
from tests.fakes.values import SCALARS, singles

MADE: dict[str, Callable[[str], Codec]] = {
    **DIALECTS,
    "fim": lambda _: codecs_of(FimProfile())[FimMode.SUFFIX],
    "trial": TrialDialect.of,
}


def framed(name: str, values: list[Any]) -> bytes:
    """Write the values of a stream as the protocol frames them."""
    if name not in ("ollama", "trial"):
        return b"".join(map(event, values))
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def values(*events: bytes) -> list[Any]:
    """Return the values of server-sent events."""
    lines = b"".join(events).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


def gemini(*parts: Any, finish: str = "", **fields: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": [*parts]}}
    if finish:
        candidate["finishReason"] = finish
    return event({"candidates": [candidate], **fields})


def completion(text: str, finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"text": text, "finish_reason": finish}], **fields})


HI = {"text": "Hi"}
HI_DELTA = event(
    {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}
)
OPENAI_USAGE = {"prompt_tokens": 3, "completion_tokens": 1}
USAGE = {"input_tokens": 3, "output_tokens": 1}
# The beginning of an answer, the same with its reason to finish (or what comes before
# the last event), and an answer that says nothing.
STREAMS: dict[str, tuple[bytes, bytes, bytes]] = {
    "openai_chat": (
        delta(content="Hi"),
        delta(content="Hi") + delta(finish="stop"),
        delta(role="assistant", content="")
        + delta(finish="stop")
        + event({"choices": [], "usage": OPENAI_USAGE})
        + DONE,
    ),
    "anthropic": (
        messages_api.start() + messages_api.text_block(0, "Hi"),
        messages_api.answer("Hi").partition(b"event: message_stop")[0],
        messages_api.start(input_tokens=3)
        + messages_api.end(usage={"output_tokens": 1}),
    ),
    "fim": (
        completion("Hi"),
        completion("Hi") + completion("", "stop"),
        completion("", "stop", usage=OPENAI_USAGE) + DONE,
    ),
    "gemini": (
        gemini(HI),
        gemini(HI) + gemini(finish="STOP"),
        gemini(
            finish="STOP",
            usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 1},
        ),
    ),
    "openai_responses": (
        HI_DELTA,
        HI_DELTA + event({"type": "response.output_text.done", "text": "Hi"}),
        b"".join(streamed(usage=USAGE)),
    ),
}
BROKEN = {"code": 429, "message": "Too many requests", "status": "RESOURCE_EXHAUSTED"}
BODIES = {
    "one line": json.dumps({"error": BROKEN}).encode(),
    "several lines": json.dumps({"error": BROKEN}, indent=2).encode() + b"\n\n",
    "a list": b"\n" + json.dumps([{"error": BROKEN}], indent=1).encode(),
    "bare": json.dumps(BROKEN).encode() + b"\r\n",
    "an event": event({"error": BROKEN}),
}


def read(name: str, pieces: list[bytes]) -> tuple[list[StreamEvent], str]:
    """Return what was read, and the code of the error that ended it."""
    reader = MADE[name]("").reader(UpstreamRequest("", {}))
    events: list[StreamEvent] = []
    try:
        for found in drain(reader, pieces):
            events.append(found)
    except UpstreamError as error:
        return events, error.code
    return events, ""


def test_an_error_that_is_no_event_ends_the_answer_as_an_error() -> None:
    wrong = []
    for name, (begun, finished, _) in STREAMS.items():
        for start in (begun, finished):
            for body_name, body in BODIES.items():
                raw = start + body
                more = [raw, b"\n" + event({})]
                for pieces in ([raw], [start, body], singles(raw), more):
                    events, error = read(name, pieces)
                    said = [e.text for e in events if isinstance(e, TextDelta)]
                    if error != RefusalKind.RATE_LIMIT or "".join(said) != "Hi":
                        wrong.append((name, body_name, len(pieces), events, error))
    assert not wrong


@pytest.mark.parametrize("name", sorted(STREAMS.keys() - {"fim", "openai_chat"}))
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


# An answer that ends for a reason, in the protocols that have any word for it.
ENDING: dict[str, Callable[[str], bytes]] = {
    "openai_chat": lambda reason: delta(content="Hi") + delta(finish=reason) + DONE,
    "anthropic": lambda reason: b"".join(
        [
            messages_api.start(),
            messages_api.text_block(0, "Hi"),
            messages_api.end(reason),
        ]
    ),
    "fim": lambda reason: completion("Hi") + completion("", reason),
    "ollama": lambda reason: framed(
        "ollama", [text_line("Hi"), done_line(reason=reason)]
    ),
}


@pytest.mark.parametrize(
    ("reasons", "finish"),
    [
        ("stop end_turn stop_sequence eos pause_turn a_later_one", FinishReason.STOP),
        (
            "length max_tokens MAX_TOKENS max_output_tokens "
            "model_context_window_exceeded",
            FinishReason.LENGTH,
        ),
        ("tool_calls tool_use function_call", FinishReason.TOOL_CALLS),
        ("content_filter safety SENSITIVE refusal", FinishReason.CONTENT_FILTER),
    ],
)
def test_finish_reasons_mean_the_same_in_all_protocols(
    reasons: str, finish: FinishReason
) -> None:
    for reason in reasons.split():
        for name, ending in ENDING.items():
            events, error = read(name, [ending(reason)])
            assert (error, events[-1]) == ("", Finish(finish)), (name, reason)


@pytest.mark.parametrize(
    "reason", ["error", "aborted", "NETWORK_ERROR", "malformed_function_call"]
)
def test_an_upstream_that_says_it_failed_has_cut_its_answer(reason: str) -> None:
    for name, ending in ENDING.items():
        events, error = read(name, [ending(reason)])
        assert (error, events[0]) == ("upstream_cut", TextDelta("Hi")), name


# The names of each protocol, and the values that choose how it is read.
SPOKEN: dict[str, tuple[str, str]] = {
    "anthropic": (
        "type index delta content_block message usage content text thinking signature "
        "partial_json input id name stop_reason citation error",
        "message_start content_block_start content_block_delta content_block_stop "
        "message_delta message_stop ping message text tool_use thinking text_delta "
        "thinking_delta signature_delta input_json_delta citations_delta",
    ),
    "fim": ("choices text content finish_reason stop stop_type error usage", "stop"),
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
        *values(
            messages_api.start(),
            messages_api.thinking_block(0, "hm"),
            messages_api.text_block(1, "Hi"),
            messages_api.call_block(2, "view", "{}"),
        ),
        {"type": "message", "content": [{"type": "text", "text": "Ho"}]},
        *values(messages_api.end("tool_use")),
    ],
    "fim": values(completion("a "), completion("b", "length", usage=OPENAI_USAGE)),
    "gemini": values(
        gemini(HI),
        gemini({"text": "hm", "thought": True}),
        gemini({"text": "m", "thought": True, "thoughtSignature": "s"}),
        gemini({"functionCall": {"name": "view", "willContinue": True}}),
        gemini({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "text": "b"}]}}),
        gemini({"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "s"}),
        event({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "N"}}),
        event({"candidates": [{"finishReason": "OTHER", "finishMessage": "Done."}]}),
        gemini(HI, finish="STOP"),
    ),
    "ollama": [
        text_line("Hi", thinking="hm"),
        call_line("view", {}),
        done_line(),
    ],
    "openai_chat": values(
        delta(role="assistant", content="Hi", reasoning="hm"),
        delta(content=[{"text": "a"}, {"type": "thinking", "thinking": "m"}]),
        delta(content="Ho"),
        *tool_answer("a", ""),
        event({"choices": [], "x_groq": {"usage": {"prompt_tokens": 3}}}),
    ),
    "openai_responses": values(
        event(
            {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "m"}
        ),
        *streamed(
            reasoning_item("e", "hm"),
            text_item("Hi", phase="commentary"),
            call_item("a"),
        ),
    ),
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
