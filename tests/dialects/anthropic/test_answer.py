"""Reading the Messages API: streams, whole answers, and how they end."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given

from byok.core.chat import ProviderData
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
from byok.core.wire.sse import SSEDecoder
from byok.dialects.anthropic.answer import AnthropicAnswer
from tests.fakes.messages_api import (
    HERE,
    REDACTED,
    answer,
    block,
    call_block,
    end,
    sse,
    start,
    text_block,
    thinking_block,
)
from tests.fakes.values import CUTS, cut

STOP, TOOLS = Finish(FinishReason.STOP), Finish(FinishReason.TOOL_CALLS)
SIGNED = {"type": "thinking", "thinking": "Hm 😀.", "signature": "c2ln"}
HALVES = ("Hm \ud83d", "\ude00.")
FULL = b"".join(
    (
        start(input_tokens=10, cache_read_input_tokens=100, output_tokens=1),
        thinking_block(0, *HALVES),
        block(1, REDACTED),
        sse({"type": "ping"}),
        sse({"type": "a_later_event"}),
        text_block(2, "Let me ", "see \ud83d", "\ude00"),
        call_block(3, "view_alias", '{"pa', 'th": "a"}'),
        call_block(4, "list", call_id="toolu_2"),
        end("tool_use", usage={"output_tokens": 30}),
    )
)


def decode(*pieces: bytes) -> list[StreamEvent]:
    decoder = AnthropicAnswer({"view_alias": "view file"}, HERE)
    return list(drain(chain(SSEDecoder(), decoder), pieces))


def joined(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Join adjacent pieces of one text or of one call's arguments."""
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ThinkingDelta) and (
            isinstance(last, ThinkingDelta) and not last.provider_data
        ):
            out[-1] = ThinkingDelta(last.text + event.text, event.provider_data)
        else:
            out.append(event)
    return out


def until_error(*pieces: bytes) -> tuple[list[StreamEvent], UpstreamError]:
    """Give what came before the error, and the error."""
    stage = drain(chain(SSEDecoder(), AnthropicAnswer({}, HERE)), pieces)
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError) as caught:
        events.extend(stage)
    return events, caught.value


EXPECTED = [
    ThinkingDelta("Hm 😀.", ProviderData(HERE, {"block": SIGNED})),
    ThinkingDelta("", ProviderData(HERE, {"block": REDACTED})),
    TextDelta("Let me see 😀"),
    ToolCallDelta(3, "toolu_1", "view file"),
    ToolCallDelta(3, arguments=""),
    ToolCallDelta(3, arguments='{"pa'),
    ToolCallDelta(3, arguments='th": "a"}'),
    ToolCallDelta(4, "toolu_2", "list"),
    ToolCallDelta(4, arguments=""),
    Usage(110, 30, 100),
    TOOLS,
]


@given(CUTS)
def test_any_slicing_gives_the_same(places: list[int]) -> None:
    assert joined(decode(*cut(FULL, places))) == EXPECTED


def test_a_whole_answer_is_read_like_a_stream() -> None:
    cited = {"type": "web_search_result_location", "url": "https://a.b", "title": "A"}
    whole = {
        "type": "message",
        "content": [
            SIGNED,
            REDACTED,
            {"type": "text", "text": "Yes.", "citations": [cited, {}, None]},
            {"type": "tool_use", "id": "t1", "name": "view_alias", "input": {"a": 1}},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "content": []},
            "no block",
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    assert decode(json.dumps(whole).encode()) == [
        ThinkingDelta("Hm 😀."),
        ThinkingDelta("", ProviderData(HERE, {"block": SIGNED})),
        ThinkingDelta("", ProviderData(HERE, {"block": REDACTED})),
        TextDelta("Yes."),
        Citation("https://a.b", "A"),
        ToolCallDelta(3, "t1", "view file"),
        ToolCallDelta(3, arguments='{"a":1}'),
        Usage(3, 4),
        TOOLS,
    ]


@pytest.mark.parametrize(
    ("before", "told"), [("I look.", "I look.\n\nFound."), ("Now:\n", "Now:\nFound.")]
)
def test_text_behind_a_tool_of_the_api_stands_apart(before: str, told: str) -> None:
    ran = block(1, {"type": "server_tool_use", "id": "s1", "name": "web_search"})
    answer = (text_block(0, before), ran, text_block(2, "Fo"), text_block(3, "und."))
    events = decode(start(), *answer, end())
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == told


def test_a_refusal_is_explained_in_the_apis_words() -> None:
    why = {"type": "refusal", "category": "bio", "explanation": "It may do harm."}
    events = decode(start(), end("refusal", stop_details=why))
    assert Notice("The model gives as its reason: It may do harm.") in events
    assert events[-1] == Finish(FinishReason.CONTENT_FILTER)


def test_a_paused_turn_says_that_it_goes_on() -> None:
    events = decode(start(), text_block(0, "x"), end("pause_turn"))
    assert events[-1] == STOP
    (notice,) = (event for event in events if isinstance(event, Notice))
    assert "ask it to go on" in notice.text


def test_token_counts_are_of_the_whole_answer_so_far() -> None:
    counts = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": None,
        "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 30},
    }
    begun = start(input_tokens=10, cache_read_input_tokens=100, output_tokens=3)
    events = decode(begun, text_block(0, "x"), end(usage=counts))
    assert Usage(117, 40, 100, 7, 30) in events


def test_arguments_given_with_the_block_count_unless_pieces_follow() -> None:
    begun = {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}
    piece = {"type": "input_json_delta", "partial_json": '{"b": 2}'}
    given = decode(start(), block(0, begun), end("tool_use"))
    assert ToolCallDelta(0, arguments='{"a":1}') in given
    pieces = decode(start(), block(0, begun, [piece]), end("tool_use"))
    calls = [event for event in pieces if isinstance(event, ToolCallDelta)]
    assert [call.arguments for call in calls] == ["", '{"b": 2}']


def test_sources_are_given_once_they_come() -> None:
    cited = {"url": "https://a.b", "title": None}
    deltas = [
        {"type": "citations_delta", "citation": cited},
        {"type": "citations_delta", "citation": {"type": "char_location"}},
        {"type": "a_later_delta"},
    ]
    events = decode(start(), block(0, {"type": "text", "text": ""}, deltas), end())
    assert events[0] == Citation("https://a.b")


def test_thinking_without_a_signature_is_shown_but_cannot_come_back() -> None:
    events = decode(start(), thinking_block(0, "Hm.", signature=""), end())
    assert events[0] == ThinkingDelta("Hm.")
    assert all(not getattr(event, "provider_data", None) for event in events)


def test_thinking_whose_text_is_kept_back_has_its_signature() -> None:
    events = decode(start(), thinking_block(0), text_block(1, "x"), end())
    empty = {"type": "thinking", "thinking": "", "signature": "c2ln"}
    assert events[0] == ThinkingDelta("", ProviderData(HERE, {"block": empty}))


def test_a_think_block_that_a_local_server_leaves_in_the_text_is_thinking() -> None:
    texts = ("<thi", "nk>\nHm.", "\n</think>", "\n\n42", " \ud83d")
    events = decode(start(), text_block(0, *texts), end())
    said = "".join(e.text for e in events if isinstance(e, TextDelta))
    thought = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert (said, thought.strip()) == ("42 \ufffd", "Hm.")


def test_servers_may_leave_out_starts_and_indexes() -> None:
    deltas = [
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "c2ln"},
    ]
    raw = [sse({"type": "content_block_delta", "delta": delta}) for delta in deltas]
    stop = sse({"type": "content_block_stop"})
    events = decode(start(), *raw, stop, text_block(1, "x"), end())
    assert isinstance(events[1], ThinkingDelta)
    assert events[1].provider_data is not None


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]\n\n", answer("again")])
def test_what_follows_the_end_is_ignored(tail: bytes) -> None:
    assert decode(answer("x"), tail) == [TextDelta("x"), Usage(10, 5), STOP]


def test_an_answer_that_breaks_off_is_an_error_after_its_text() -> None:
    half = start() + text_block(0, "x", "\ud83d")
    events, error = until_error(half)
    assert events == [TextDelta("x"), TextDelta("\ufffd")]
    assert (error.code, error.retryable) == ("upstream_cut", True)
    held = sse({
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "thinking_delta", "thinking": "\ud83d"},
    })  # fmt: skip
    assert until_error(start(), held)[0] == [ThinkingDelta("\ufffd")]


@pytest.mark.parametrize("reason", ["", "end_turn", None, 7])
def test_the_start_of_a_stream_does_not_say_that_it_is_complete(reason: Any) -> None:
    message = {"content": [], "stop_reason": reason}
    begun = sse({"type": "message_start", "message": message})
    events, error = until_error(begun, text_block(0, "x"))
    assert (events, error.code) == ([TextDelta("x")], "upstream_cut")


def test_calls_are_given_only_where_a_reason_says_that_they_are_whole() -> None:
    stop = sse({"type": "message_stop"})
    assert decode(start(), text_block(0, "x"), stop)[-1] == STOP
    _, error = until_error(start(), call_block(0, "list", "{}"), stop)
    assert (error.code, error.retryable) == ("upstream_cut", True)


@pytest.mark.parametrize(
    ("raw", "code", "retryable"),
    [
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Over"}}',
            "upstream_overloaded", True,
        ),
        (b"rate limit reached", "upstream_rate_limit", True),
    ],
)  # fmt: skip
def test_errors_inside_a_stream(raw: bytes, code: str, retryable: bool) -> None:
    begun = start() + text_block(0, "x")
    events, error = until_error(begun, b"event: error\ndata: ", raw)
    assert events == [TextDelta("x")]
    assert isinstance(error, UpstreamRefused)
    assert (error.code, error.retryable) == (code, retryable)
