"""Reading Chat Completions: OpenAI's own answers, and how its imitators differ."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Origin, ProviderData
from byok.core.errors import UpstreamError, UpstreamRefused
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.stage import chain, drain
from byok.core.wire.sse import SSEDecoder
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.chunks import read_usage, usage_near_end
from byok.dialects.openai_chat.reasoning import join_details
from tests.fakes.upstream import DONE, delta, event
from tests.fakes.values import CUTS, cut, singles

HERE = Origin("openai_chat", "box", "m")
SIGNED = ProviderData(HERE, {"extra_content": {"google": {"a": "CiQ+/=="}}})
STOP = Finish(FinishReason.STOP)
LENGTH = Finish(FinishReason.LENGTH)
TOOLS = Finish(FinishReason.TOOL_CALLS)


def decode(
    *pieces: bytes, tool_names: dict[str, str] | None = None
) -> list[StreamEvent]:
    decoder = OpenAIAnswer(tool_names or {}, HERE)
    return list(drain(chain(SSEDecoder(), decoder), pieces))


def until_error(*pieces: bytes) -> tuple[list[StreamEvent], UpstreamError]:
    """Give what came before the error, and the error."""
    stage = chain(SSEDecoder(), OpenAIAnswer({}))
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError) as caught:
        events.extend(drain(stage, pieces))
    return events, caught.value


def text(events: Iterable[StreamEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def call(index: Any = 0, **fields: Any) -> dict[str, Any]:
    """Write one element of tool_calls; name and arguments go into its function."""
    function = {k: fields.pop(k) for k in ("name", "arguments") if k in fields}
    place = {} if index is None else {"index": index}
    return {**place, **fields, "type": "function", "function": function}


def choice(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "finish_reason": finish, **fields}]})


def end(text: str = "", **data: Any) -> ThinkingDelta:
    """The last piece of a block of reasoning, with the form in which it came."""
    return ThinkingDelta(text, ProviderData(HERE, data))


HELLO = {"role": "assistant", "content": ""}
HI = delta(content="Hi.")
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}

STREAMS: dict[str, tuple[list[bytes], list[StreamEvent]]] = {
    "as OpenAI streams": (
        [
            delta(role="assistant", content=""),
            delta(content="Hel"),
            delta(content="lo."),
            delta(finish="stop"),
            event({"choices": [], "usage": USAGE}),
            DONE,
        ],
        [TextDelta("Hel"), TextDelta("lo."), Usage(3, 2), STOP],
    ),
    "no finish_reason but [DONE]": ([HI, DONE], [TextDelta("Hi."), STOP]),
    "no blank lines at all": (
        [b"data: " + json.dumps({"choices": [{"delta": d}]}).encode() + b"\n"
         for d in ({"content": "a"}, {"content": "b"})] + [b"data: [DONE]\n"],
        [TextDelta("a"), TextDelta("b"), STOP],
    ),
    "two [DONE] and data after them": (
        [HI, delta(finish="stop"), DONE, DONE, HI, event({"error": "late"})],
        [TextDelta("Hi."), STOP],
    ),
    "a second choice": (
        [
            event({"choices": [{"index": 1, "delta": {"content": "no"}}]}),
            event({"choices": [
                {"index": 0, "delta": {"content": "yes"}},
                {"index": 1, "delta": {"content": "no"}, "finish_reason": "length"},
            ]}),
            delta(finish="stop"),
        ],
        [TextDelta("yes"), STOP],
    ),
    "an unusual object, which repeats the message": (
        [
            event({"object": "chat.completion.chunk", "choices": [
                {"delta": {"content": "Hi."}}]}),
            event({"object": "chat.completion.done", "choices": [
                {"message": {"content": "Hi."}, "finish_reason": "stop"}]}),
        ],
        [TextDelta("Hi."), STOP],
    ),
    "text after finish_reason": (
        [delta(content="H", finish="stop"), delta(content="i."), DONE],
        [TextDelta("H"), TextDelta("i."), STOP],
    ),
    "the stricter finish_reason wins": (
        [HI, delta(finish="length"), delta(finish="stop"), DONE],
        [TextDelta("Hi."), LENGTH],
    ),
    "only native_finish_reason says length": (
        [HI, choice("tool_calls", delta={}, native_finish_reason="MAX_TOKENS"), DONE],
        [TextDelta("Hi."), LENGTH],
    ),
    "another native_finish_reason says nothing": (
        [HI, choice("stop", delta={}, native_finish_reason="tool_use"), DONE],
        [TextDelta("Hi."), STOP],
    ),
    "reasoning in every field counts once": (
        [
            delta(
                reasoning="hm",
                reasoning_content="hm",
                reasoning_details=[{"type": "reasoning.text", "text": "hm"}],
            ),
            DONE,
        ],
        [
            ThinkingDelta("hm"),
            end(
                field="reasoning_content",
                details=[{"type": "reasoning.text", "text": "hm"}],
            ),
            STOP,
        ],
    ),
    "reasoning in pieces, in either field, then text": (
        [*(delta(role="assistant", content=None, **{field: piece})
           for field in ("reasoning_content", "reasoning") for piece in ("h", "m")),
         delta(content="Hi."), delta(content=""), DONE],
        [*map(ThinkingDelta, "hmhm"), end(field="reasoning_content"),
         TextDelta("Hi."), STOP],
    ),
    "a call that ends reasoning, in pieces": (
        [delta(reasoning="h"), delta(reasoning="m"),
         *(delta(tool_calls=[call(0, arguments=piece)]) for piece in "{}"), DONE],
        [ThinkingDelta("h"), ThinkingDelta("m"), end(field="reasoning"),
         ToolCallDelta(0, arguments="{"), ToolCallDelta(0, arguments="}"), STOP],
    ),
    "thinking, as Ollama's relatives send": (
        [delta(thinking="hm"), delta(thinking=[{"text": "!"}], content="Hi."), DONE],
        [ThinkingDelta("hm"), ThinkingDelta("!"), end(field="thinking"),
         TextDelta("Hi."), STOP],
    ),
    "reasoning_text, as Copilot sends": (
        [delta(reasoning_text="hm", content=None), delta(content="Hi."), DONE],
        [ThinkingDelta("hm"), end(field="reasoning_text"), TextDelta("Hi."), STOP],
    ),
    "the whole text so far beside each delta, as Perplexity streams": (
        [
            choice(delta={"role": "assistant", "content": ""},
                   message={"role": "assistant", "content": ""}),
            choice(delta={"content": "Hi"}, message={"content": "Hi"}),
            choice("stop", delta={"content": "."}, message={"content": "Hi."}),
        ],
        [TextDelta("Hi"), TextDelta("."), STOP],
    ),
    "only reasoning_details": (
        [delta(reasoning_details=[
            {"type": "t", "text": "a"}, {"type": "s", "summary": "b"}, {"data": "x"}]),
         DONE],
        [ThinkingDelta("ab"),
         end(details=[{"type": "t", "text": "a"}, {"type": "s", "summary": "b"}]),
         STOP],
    ),
    "think tags": (
        [delta(content="<thi"), delta(content="nk>hm</think>\n"), HI, DONE],
        [ThinkingDelta("hm"), end(tags=["<think>", "</think>\n"]),
         TextDelta("Hi."), STOP],
    ),
    "list content, as Mistral sends": (
        [
            delta(content=[{"type": "thinking", "thinking": [{"text": "hm"}]}]),
            delta(content=[{"type": "text", "text": "Hi."}, "x"]),
            DONE,
        ],
        [ThinkingDelta("hm"), end(parts=True), TextDelta("Hi."), STOP],
    ),
    "a refusal is text": (
        [delta(refusal="I can"), delta(refusal="not."), delta(finish="stop")],
        [TextDelta("I can"), TextDelta("not."), STOP],
    ),
    "an emoji in halves": (
        [delta(content="a\ud83d"), delta(content="\ude00b"), DONE],
        [TextDelta("a"), TextDelta("😀b"), STOP],
    ),
    "details of several chunks": (
        [
            delta(reasoning="h", reasoning_details=[
                {"type": "reasoning.text", "text": "h", "index": 0, "format": "f"}]),
            delta(reasoning="m", reasoning_details=[
                {"type": "reasoning.text", "text": "m", "index": 0, "format": "f"}]),
            delta(content="", reasoning_details=[
                {"type": "reasoning.text", "signature": "S", "index": 0}]),
            HI,
            delta(finish="stop", reasoning_details=[
                {"type": "reasoning.encrypted", "data": "E", "index": 0}]),
        ],
        [
            ThinkingDelta("h"),
            ThinkingDelta("m"),
            end(field="reasoning", details=[
                {"type": "reasoning.text", "text": "hm", "index": 0, "format": "f",
                 "signature": "S"}]),
            TextDelta("Hi."),
            end(details=[{"type": "reasoning.encrypted", "data": "E", "index": 0}]),
            STOP,
        ],
    ),
    "a signature beside a text, as Gemini sends": (
        [
            HI,
            delta(content="", extra_content={"google": {"thought": True}}),
            delta(finish="stop", extra_content={"google": {"thought_signature": "S"}}),
        ],
        [
            TextDelta("Hi."),
            end(extra_content={"google": {"thought_signature": "S"}}),
            STOP,
        ],
    ),
    "a block that ran into the limit has no data": (
        [delta(reasoning="hm"), delta(finish="length"), DONE],
        [ThinkingDelta("hm"), LENGTH],
    ),
    "sources, as Perplexity sends": (
        [
            event({"citations": ["https://a", "https://b", 1], "choices": []}),
            HI,
            event({"citations": ["https://a"], "choices": [], "search_results": [
                {"url": "https://a", "title": "A"}, {"title": "none"}]}),
            delta(finish="stop"),
        ],
        [TextDelta("Hi."), Citation("https://a", "A"), Citation("https://b"), STOP],
    ),
    "sources beside a text, in one chunk each": (
        [HI, *(event({"choices": [{"delta": {"content": "x"}}], **named}) for named in (
            {"citations": ["https://a"]}, {"search_results": [{"url": "https://b"}]},
            {"annotations": [{"url": "https://c"}]})), DONE],
        [TextDelta("Hi."), *map(TextDelta, "xxx"),
         *map(Citation, ("https://a", "https://b", "https://c")), STOP],
    ),
    "annotations, as OpenRouter sends": (
        [
            delta(content="Hi.", annotations=[
                {"type": "url_citation",
                 "url_citation": {"url": "https://a", "title": "A"}},
                {"type": "url_citation", "url": "https://c", "title": None},
                "x",
            ]),
            delta(finish="stop"),
        ],
        [TextDelta("Hi."), Citation("https://a", "A"), Citation("https://c"), STOP],
    ),
    "usage in a choice, as Moonshot sends": (
        [HI, choice("stop", delta={}, usage=USAGE)],
        [TextDelta("Hi."), Usage(3, 2), STOP],
    ),
    "usage in every chunk, the last counts": (
        [event({"usage": {"prompt_tokens": 1, "completion_tokens": n},
                "choices": [{"delta": {"content": "x"}}]}) for n in (1, 2)]
        + [event({"usage": None, "choices": []}), DONE],
        [TextDelta("x"), TextDelta("x"), Usage(1, 2), STOP],
    ),
}  # fmt: skip
TABLE = pytest.mark.parametrize(
    ("stream", "events"), list(STREAMS.values()), ids=list(STREAMS)
)


@TABLE
def test_sse_stream_gives_its_events(
    stream: list[bytes], events: list[StreamEvent]
) -> None:
    assert decode(*stream) == events


D = ToolCallDelta


@pytest.mark.parametrize(
    ("calls", "deltas"),
    [
        pytest.param(
            [[call(None, id="x", name="f", arguments="{}")]],
            [D(None, "x", "f", "{}")],
            id="no index, as Mistral sends",
        ),
        pytest.param(
            [[call(id="x", name="f", arguments={"a": [1, "é"]})]],
            [D(0, "x", "f", '{"a":[1,"é"]}')],
            id="arguments as an object",
        ),
        pytest.param(
            [[call("0", id=7, name=["f"], arguments=5)], [None, "x"]],
            [D()],
            id="values of the wrong type",
        ),
        pytest.param(
            [[call(id="x", name="safe_name")]], [D(0, "x", "my tool")], id="a name back"
        ),
        pytest.param(
            [[call(id="x", name="f", extra_content={"google": {"a": "CiQ+/=="}})]],
            [D(0, "x", "f", "", SIGNED)],
            id="what Gemini wants back",
        ),
        pytest.param([{"index": 0}, "f", 5], [], id="no list"),
    ],
)
def test_openai_chat_tool_calls_are_passed_on_as_deltas(
    calls: list[Any], deltas: list[ToolCallDelta]
) -> None:
    stream = [delta(tool_calls=part) for part in calls]
    events = decode(
        *stream, delta(finish="tool_calls"), tool_names={"safe_name": "my tool"}
    )
    assert events == [*deltas, TOOLS]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [(None, STOP), ("", STOP), ("tool_calls", TOOLS), ("length", LENGTH)],
)
@pytest.mark.parametrize(
    "beside", [{}, {"delta": {"role": "assistant", "content": ""}}]
)
@pytest.mark.case("F11")
def test_openai_chat_whole_message_ends_the_turn(
    finish: str | None, reason: Finish, beside: dict[str, Any]
) -> None:
    calls = [call(None, id="x", name="f", arguments="{}")]
    message = {
        "role": "assistant",
        "content": "Hi.",
        "reasoning_content": "hm",
        "tool_calls": calls,
    }
    choice = {**beside, "message": message, "finish_reason": finish}
    body = {"object": "chat.completion", "choices": [choice], "usage": USAGE}
    for indent in (None, 2):
        assert decode(json.dumps(body, indent=indent).encode()) == [
            ThinkingDelta("hm"),
            end(field="reasoning_content"),
            TextDelta("Hi."),
            D(None, "x", "f", "{}"),
            Usage(3, 2),
            reason,
        ]


def test_openai_chat_empty_message_beside_an_empty_delta_is_a_beginning() -> None:
    empty = {"role": "assistant", "content": ""}
    events, error = until_error(choice(delta=empty, message=empty), HI)
    assert (text(events), error.code) == ("Hi.", "upstream_cut")


FAILURES: dict[str, tuple[list[bytes], str, str]] = {
    "[DONE] and then text": ([DONE, HI], "", "upstream_empty"),
    "no choice": ([event({"choices": []})], "", "upstream_empty"),
    "cut in a tag": ([delta(content="<thi")], "<thi", "upstream_cut"),
    "cut in an emoji": ([delta(content="a\ud83d")], "a\ufffd", "upstream_cut"),
    "cut in an event": ([HI, HI[:-9]], "Hi.", "upstream_not_json"),
    "half JSON": ([b'data: {"a":1}\ndata: oops\n\n'], "", "upstream_not_json"),
    "an error in a list": ([b'[{"error": "Over"}]'], "", "upstream_failed"),
    "an error event": (
        [b'event: error\ndata: {"message": "Over"}\n\n'],
        "",
        "upstream_failed",
    ),
    "a bare error field": (
        [HI, b'error: {"message": "Over"}\n\n'],
        "Hi.",
        "upstream_failed",
    ),
    "an error of a choice": (
        [HI, choice("error", delta={"content": ""}, error={"message": "Over"})],
        "Hi.",
        "upstream_failed",
    ),
    "an error of a choice that says no more": (
        [HI, choice(delta={"content": "a"}, error={"message": "Over"}), HI, DONE],
        "Hi.a",
        "upstream_failed",
    ),
    "an error in plain words": ([HI, b"error: Over\n\n"], "Hi.", "upstream_failed"),
}


@pytest.mark.parametrize(
    ("stream", "said", "code"), list(FAILURES.values()), ids=list(FAILURES)
)
def test_openai_chat_failure_keeps_the_text_before_it(
    stream: list[bytes], said: str, code: str
) -> None:
    events, error = until_error(*stream)
    assert text(events) == said
    assert not any(isinstance(e, Finish) for e in events)
    assert error.code == code
    if code == "upstream_failed":
        assert isinstance(error, UpstreamRefused)
        assert "Over" in str(error)


ERRORS: list[dict[str, Any]] = [
    {"object": "error", "message": "Over", "code": 500},
    {"object": "error", "message": {"detail": "Over"}},
    {"detail": "Over"},
    {"detail": [{"msg": "Over", "loc": ["body"]}]},
    {"code": 1261, "msg": "Over", "success": False},
    {"errors": [{"message": "Over"}]},
    {"base_resp": {"status_code": 1013, "status_msg": "Over"}, "choices": None},
    {"message": "Over", "choices": []},
    {
        "base_resp": {"status_code": 1013, "status_msg": "Over"},
        "choices": [{"delta": {"content": ""}}],
    },
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("before", [[], [HI]], ids=["alone", "in the middle"])
def test_openai_chat_error_is_told_from_a_chunk_by_its_fields(
    error: dict[str, Any], before: list[bytes]
) -> None:
    events, failure = until_error(*before, event(error), DONE)
    assert text(events) == ("Hi." if before else "")
    assert isinstance(failure, UpstreamRefused)
    assert "Over" in str(failure)


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"choices": [{"delta": {"content": "a"}}], "detail": "x", "message": "y"},
        {"choices": [], "usage": USAGE, "message": "done"},
        {"choices": [], "message": "", "detail": None, "errors": []},
        {"type": "ping"},
    ],
)
def test_openai_chat_lookalike_of_an_error_is_none(chunk: dict[str, Any]) -> None:
    assert text(decode(HI, event(chunk), delta(finish="stop"), DONE)).startswith("Hi.")


PROTOCOLS: dict[str, bytes] = {
    "Anthropic's Messages API": b'event: message_start\ndata: {"type": '
    b'"message_start", "message": {"role": "assistant"}}\n\n',
    "Anthropic's": b'{"type": "message", "role": "assistant", "content": []}',
    "OpenAI's Responses API": b'event: response.created\ndata: {"type": '
    b'"response.created", "response": {}}\n\n',
    "OpenAI's Responses": b'{"object": "response", "output": []}',
    "Ollama's own API": b'{"model": "m", "message": {"content": "Hi"}, "done": false}\n'
    b'{"model": "m", "message": {"content": "."}, "done": true}\n',
    "Ollama's own": b'{"model": "m", "response": "Hi.", "done": true}',
    "Gemini's own API": b'data: {"candidates": [{"content": {"parts": []}}]}\n\n',
    "Gemini's own": b'[{"candidates": [{"content": {"parts": []}}]}]',
}


@pytest.mark.parametrize(("name", "answer"), PROTOCOLS.items(), ids=list(PROTOCOLS))
def test_openai_chat_answer_of_another_protocol_is_named(
    name: str, answer: bytes
) -> None:
    _, error = until_error(answer)
    assert error.code == "upstream_protocol"
    assert name in str(error)
    assert "base_url" in error.hint


# Properties

TEXTS = st.lists(
    st.sampled_from(["a", "é", "😀", "\u2028", "\n", "<think>", "</think>", "{", '"'])
).map("".join)
ANSWERS = st.tuples(TEXTS, TEXTS, TEXTS, CUTS)


def summed(events: Iterable[StreamEvent]) -> tuple[str, str, str, list[StreamEvent]]:
    """Give all text, all reasoning, all arguments, and the rest."""
    events = list(events)
    return (
        text(events),
        "".join(e.text for e in events if isinstance(e, ThinkingDelta)),
        "".join(e.arguments for e in events if isinstance(e, ToolCallDelta)),
        [e for e in events if isinstance(e, (Usage, Finish))],
    )


@settings(max_examples=100)
@given(ANSWERS, CUTS, st.sampled_from([b"\n", b"\r\n", b"\r"]))
@pytest.mark.case("F13")
def test_any_slicing_gives_the_same_answer(
    answer: tuple[str, str, str, list[int]], places: list[int], line_end: bytes
) -> None:
    thought, said, arguments, pieces = answer
    stream = b"".join(
        [delta(reasoning_content=piece) for piece in cut(thought, pieces)]
        + [delta(content=piece) for piece in cut("." + said, pieces)]
        + [delta(tool_calls=[call(arguments=p)]) for p in cut(arguments, pieces)]
        + [delta(finish="stop"), event({"choices": [], "usage": USAGE}), DONE]
    ).replace(b"\n", line_end)
    for slices in ([stream], cut(stream, places), singles(stream)):
        assert summed(decode(*slices)) == (
            "." + said,
            thought,
            arguments,
            [Usage(3, 2), STOP],
        )


@pytest.mark.parametrize("content", [{}, {"content": None}])
def test_openai_chat_transcript_of_a_voice_is_the_text(content: dict[str, Any]) -> None:
    pieces = ({"id": "a", "transcript": "Hel"}, {"transcript": "lo"}, {"data": "UklG"})
    streamed = [
        event({"choices": [{"delta": {"audio": p, **content}}]}) for p in pieces
    ]
    message = {"role": "assistant", "audio": {"transcript": "Hello"}, **content}
    whole = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    for raw in ([*streamed, choice("stop")], [whole.encode()]):
        assert text(decode(*raw)) == "Hello"


# Token counts: who counts the cached part where


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 10, "cached_tokens": 8}, Usage(10, 0, 8), id="at the top"
        ),
        pytest.param(
            {"prompt_tokens": 10, "num_cached_tokens": 8}, Usage(10, 0, 8), id="Mistral"
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 6},
            },
            Usage(10, 0, 3, 6),
            id="OpenAI tells what it wrote to its cache",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "cache_creation_input_tokens": 6,
                "cache_read_input_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 3},
            },
            Usage(10, 0, 3, 6),
            id="Claude behind a gateway",
        ),
        pytest.param(
            {"prompt_tokens": "10", "completion_tokens": 5}, Usage(0, 5), id="a string"
        ),
        pytest.param(
            {"prompt_tokens": -1, "completion_tokens": 5}, Usage(0, 5), id="negative"
        ),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, None, id="zeros"),
        pytest.param({"total_tokens": 15}, None, id="only the total"),
        pytest.param([], None, id="a list"),
    ],
)
def test_usage_is_read(usage: Any, expected: Usage | None) -> None:
    assert read_usage(usage) == expected


@pytest.mark.parametrize(
    ("told", "details"),
    [
        (False, {}),
        (False, {"prompt_tokens_details": {"audio_tokens": 0}}),
        (True, {"prompt_tokens_details": {"cached_tokens": 0}}),
        (True, {"prompt_cache_hit_tokens": 0}),
    ],
)
def test_a_cache_that_is_not_told_of_is_not_an_empty_one(
    told: bool, details: dict[str, Any]
) -> None:
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, **details})
    assert usage is not None
    assert (usage.cache_read_tokens, usage.cache_told) == (0, told)
    assert usage.plus(Usage(1, 1)).cache_told is told


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            b'data: {"usage":null}\n\ndata: {"usage":{"prompt_tokens":3}}\n\n'
            b"data: [DONE]\n\n",
            Usage(3),
            id="the last event of a stream",
        ),
        pytest.param(
            b'{"usage":{"input_tokens":3,"output_tokens":2,'
            b'"input_tokens_details":{"cached_tokens":1}}}}',
            Usage(3, 2, 1),
            id="a response",
        ),
        pytest.param(b'{"choices": []}', None, id="none"),
        pytest.param(b'ge": 1} "usage": {"prompt_tok', None, id="cut"),
        pytest.param(b'"usage":{"a":"\xff"}', None, id="not UTF-8"),
    ],
)
def test_usage_of_an_answer_that_is_passed_on(
    answer: bytes, expected: Usage | None
) -> None:
    assert usage_near_end(answer) == expected


# reasoning_details: pieces of entries joined, and nothing else changed


ENTRY = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
SEALED = {"type": "reasoning.encrypted", "index": 0, "id": "rs_1", "data": "gAAA"}


PIECES = st.sampled_from(
    [None, "", "a", "\n", "<think>", "</think>b", "\ud83d", "\ude00"]
)
FRAGMENTS = st.builds(
    call,
    st.sampled_from([0, 1, None]),
    id=st.sampled_from([None, "", "x"]),
    name=st.sampled_from([None, "", "f"]),
    arguments=PIECES,
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from([None, "assistant"]),
        "refusal": st.sampled_from([None, "no"]),
        "content": PIECES,
        "reasoning_content": PIECES,
        "reasoning": PIECES,
        "tool_calls": st.none() | st.lists(FRAGMENTS, max_size=2),
    },
)


@given(st.lists(DELTAS, max_size=8))
def test_a_field_that_only_one_vendor_has_changes_no_delta(
    deltas: list[dict[str, Any]],
) -> None:
    for field in ({"x_vendor": 1}, {"name": "Bot"}):
        plain = [delta(**fields) for fields in (HELLO, *deltas)]
        marked = [delta(**fields, **field) for fields in (HELLO, *deltas)]
        assert decode(*plain, DONE) == decode(*marked, DONE)


@given(st.text(), CUTS)
def test_details_of_a_text_are_one_entry_however_it_is_cut(
    text: str, places: list[int]
) -> None:
    pieces = [[{**ENTRY, "text": piece}] for piece in cut(text, places)]
    signed = [{**ENTRY, "signature": "S+/=="}]
    whole = {**ENTRY, "text": text, "signature": "S+/=="}
    assert join_details([*pieces, signed]) == [whole]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [[{**ENTRY, "text": "a"}, {**ENTRY, "text": "b"}]], id="one chunk"
        ),
        pytest.param([[SEALED], [{**SEALED, "id": "rs_2"}]], id="encrypted ones"),
        pytest.param([[{**ENTRY, "summary": "a"}], [SEALED]], id="types"),
        pytest.param(
            [[{**ENTRY, "text": "a"}], [{**ENTRY, "index": 1, "text": "b"}]],
            id="indexes",
        ),
        pytest.param([[{"type": "later", "x": [1, {"y": 2}]}]], id="unknown type"),
    ],
)
def test_details_that_are_no_pieces_stay_apart(chunks: list[Any]) -> None:
    assert join_details(chunks) == [entry for chunk in chunks for entry in chunk]


def test_details_that_are_encrypted_and_come_twice_are_kept_once() -> None:
    assert join_details([[SEALED], [SEALED], [{**SEALED, "data": "x"}]]) == [
        SEALED,
        {**SEALED, "data": "x"},
    ]


def test_openai_chat_legacy_function_call_is_read() -> None:
    events = decode(
        delta(function_call={"name": "f", "arguments": '{"a"'}),
        delta(function_call={"arguments": ":1}"}),
        delta(finish="function_call"),
    )
    assert events == [D(0, "", "f", '{"a"'), D(0, "", "", ":1}"), TOOLS]
