"""Reading Gemini's answers: parts, calls, signatures, ends and errors."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Origin, ProviderData
from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
    UpstreamRefused,
)
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
from byok.dialects.base import UpstreamRequest
from byok.dialects.gemini.dialect import Gemini
from tests.fakes.slices import CUTS, cut, singles
from tests.fakes.values import VALUES

HERE = Origin("gemini", "box", "gemini-3-pro")
NAMES = {"view_1": "view file"}
USED = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}


def chunk(*parts: Any, finish: str = "", **candidate: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"parts": [*parts], "role": "model"}}
    if finish:
        found["finishReason"] = finish
    return {"candidates": [{**found, "index": 0, **candidate}]}


def stream(*chunks: Any) -> bytes:
    return b"".join(b"data: " + written(c) + b"\n\n" for c in chunks)


def written(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half an emoji
        return json.dumps(value).encode()


def read(*slices: bytes) -> list[StreamEvent]:
    stage = Gemini().reader(UpstreamRequest("", {}, tool_names=NAMES, origin=HERE))
    out = [event for piece in slices for event in stage.feed(piece)]
    return [*out, *stage.flush()]


def kept(**data: Any) -> ProviderData:
    return ProviderData(HERE, data)


def call(name: str = "view_1", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **fields}}


STOP = Finish(FinishReason.STOP)


@pytest.mark.parametrize(
    ("chunks", "events"),
    [
        pytest.param(
            [chunk({"text": "Hi"}), chunk({"text": " you"}), chunk(finish="STOP")],
            [TextDelta("Hi"), TextDelta(" you"), STOP],
            id="text",
        ),
        pytest.param(
            [
                chunk({"text": "Hm.", "thought": True}),
                chunk({"text": "Yes", "thoughtSignature": "c2ln"}),
                chunk({"text": "."}, finish="STOP"),
            ],
            [
                ThinkingDelta("Hm."),
                ThinkingDelta("", kept(thoughtSignature="c2ln", chars=3)),
                TextDelta("Yes"),
                TextDelta("."),
                STOP,
            ],
            id="a signature at the first text, as of Gemini 2.5",
        ),
        pytest.param(
            [
                chunk({"text": "Yes"}),
                chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
            ],
            [
                TextDelta("Yes"),
                ThinkingDelta("", kept(thoughtSignature="c2ln", chars=0)),
                STOP,
            ],
            id="a signature in an empty text, as of Gemini 3",
        ),
        pytest.param(
            [
                chunk({"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"}),
                chunk({"text": "Yes"}, finish="STOP"),
            ],
            [
                ThinkingDelta("Hm.", kept(thoughtSignature="c2ln", thought=True)),
                TextDelta("Yes"),
                STOP,
            ],
            id="a signed thought",
        ),
        pytest.param(
            [
                chunk({"text": "Hm.", "thought": True}),
                chunk(call("grep"), finish="STOP"),
            ],
            [
                ThinkingDelta("Hm."),
                ThinkingDelta("", kept(thought=True)),
                ToolCallDelta(1, "", "grep", "{}"),
                STOP,
            ],
            id="thoughts without a signature",
        ),
        pytest.param(
            [
                chunk(call(args={"path": "a"}) | {"thoughtSignature": "c2ln"}),
                chunk(call("grep", id="7"), finish="STOP"),
            ],
            [
                ToolCallDelta(
                    1, "", "view file", '{"path":"a"}', kept(thoughtSignature="c2ln")
                ),
                ToolCallDelta(2, "7", "grep", "{}", kept(id="7")),
                STOP,
            ],
            id="parallel calls",
        ),
        pytest.param(
            [
                chunk({"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"}),
                chunk({"codeExecutionResult": {"output": "1"}}, finish="STOP"),
                chunk({"text": "One."}, finish="STOP"),
            ],
            [
                ThinkingDelta(
                    "",
                    kept(part={"executableCode": {"code": "1"},
                               "thoughtSignature": "c2ln"}),
                ),
                ThinkingDelta("", kept(part={"codeExecutionResult": {"output": "1"}})),
                TextDelta("One."),
                STOP,
            ],
            id="code that Google ran, and two finish reasons",
        ),
        pytest.param(
            [chunk({"text": "A\ud83d"}), chunk({"text": "\ude00"}, finish="STOP")],
            [TextDelta("A"), TextDelta("😀"), STOP],
            id="half an emoji",
        ),
        pytest.param(
            [
                chunk({"text": "Hm\ud83d", "thought": True}),
                chunk({"text": "A"}, finish="STOP"),
            ],
            [
                ThinkingDelta("Hm"),
                ThinkingDelta("\ufffd", kept(thought=True)),
                TextDelta("A"),
                STOP,
            ],
            id="half an emoji for ever",
        ),
        pytest.param(
            [chunk({"text": "A"}), chunk({"text": "B"}, index=1), chunk(finish="STOP")],
            [TextDelta("A"), STOP],
            id="another candidate",
        ),
        pytest.param(
            [chunk({"text": "A"}), {"usageMetadata": USED}, chunk(finish="MAX_TOKENS")],
            [
                TextDelta("A"),
                Usage(7, 5, reasoning_tokens=2),
                Finish(FinishReason.LENGTH),
            ],
            id="counts, and the limit",
        ),
        pytest.param(
            [
                chunk(
                    {"text": "A"},
                    finish="STOP",
                    groundingMetadata={
                        "groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}]
                    },
                )
            ],
            [TextDelta("A"), Citation("https://a", "A"), STOP],
            id="sources",
        ),
        pytest.param(
            [chunk({"inlineData": {}}), chunk({"fileData": {}}, finish="STOP")],
            [Notice("The model sent an image or a file, which cannot be shown here."),
             STOP],
            id="a picture",
        ),
        pytest.param(
            [[chunk({"text": "A"}), chunk({}, {"text": "B"}, 7, finish="STOP")]],
            [TextDelta("A"), TextDelta("B"), STOP],
            id="an array of chunks in one event",
        ),
    ],
)  # fmt: skip
def test_gemini_answer_becomes_events(
    chunks: list[Any], events: list[StreamEvent]
) -> None:
    raw = stream(*chunks)
    for slices in ([raw], singles(raw)):
        assert read(*slices) == events
    assert read(json.dumps(chunks).encode() if len(chunks) > 1 else raw) == events


@pytest.mark.parametrize(
    ("reason", "finish", "words"),
    [
        (
            "SAFETY",
            FinishReason.CONTENT_FILTER,
            "safety filter (SAFETY). Too bold.",
        ),
        ("RECITATION", FinishReason.CONTENT_FILTER, "a protected text"),
        ("OTHER", FinishReason.STOP, "(OTHER)"),
    ],
)
def test_gemini_early_end_is_told(
    reason: str, finish: FinishReason, words: str
) -> None:
    last = chunk({"text": "A"}, finish=reason, finishMessage="Too bold.")
    text, notice, end = read(stream(last))
    assert (text, end) == (TextDelta("A"), Finish(finish))
    assert isinstance(notice, Notice)
    assert words in notice.text


def test_gemini_reasons_that_are_not_known_are_told_once() -> None:
    pieces = [chunk({"text": "A"}, finish=f"LATER_{n}") for n in range(9)]
    _, *rest = read(stream(*pieces))
    assert [event for event in rest if isinstance(event, Notice)] == rest[-2:-1]
    assert rest[-1] == STOP


def test_gemini_blocked_prompt_is_an_error_in_words() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    notice, usage, end = read(
        stream({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 9}})
    )
    assert isinstance(notice, Notice)
    assert notice.code == "upstream_content_filter"
    assert "prohibited content (PROHIBITED_CONTENT). No." in notice.text
    assert (usage, end) == (Usage(9), Finish(FinishReason.CONTENT_FILTER))


@pytest.mark.parametrize(
    ("reason", "retryable"),
    [("MALFORMED_FUNCTION_CALL", True), ("MISSING_THOUGHT_SIGNATURE", False)],
)
def test_gemini_failed_answer_is_an_error(reason: str, retryable: bool) -> None:
    with pytest.raises(UpstreamGarbled, match=reason) as raised:
        read(stream(chunk(finish=reason, finishMessage="print(x")))
    assert raised.value.code == "upstream_tool_failed"
    assert raised.value.retryable is retryable
    assert "print(x" in str(raised.value)


@pytest.mark.parametrize(
    "chunks", [[], [{"candidates": []}], [chunk({"text": ""})], [{}]]
)
def test_gemini_empty_answer_may_be_asked_for_again(chunks: list[Any]) -> None:
    with pytest.raises(UpstreamEmpty) as raised:
        read(stream(*chunks))
    assert raised.value.retryable


@pytest.mark.parametrize("reason", ["", "FINISH_REASON_UNSPECIFIED"])
def test_gemini_answer_without_a_finish_reason_was_cut(reason: str) -> None:
    stage = Gemini().reader(UpstreamRequest("", {}))
    last = chunk({"text": "A"}, finish=reason)
    assert [*stage.feed(stream(last))] == [TextDelta("A")]
    with pytest.raises(UpstreamGarbled) as raised:
        [*stage.flush()]
    assert raised.value.code == "upstream_cut"


def test_gemini_events_without_blank_lines_between_are_read() -> None:
    raw = stream(chunk({"text": "A"}), chunk({"text": "B"}, finish="STOP"))
    found = read(raw.replace(b"\n\n", b"\n") + b"\ndata: [DONE]\n\n")
    assert found == [TextDelta("A"), TextDelta("B"), STOP]


def test_gemini_answer_that_is_no_object_is_refused() -> None:
    with pytest.raises(UpstreamNotJson):
        read(b"data: 7\n\n")


@pytest.mark.parametrize("wrap", ["{}", "[{}]"])
@pytest.mark.parametrize("event", ["", "event: error\n"])
def test_gemini_error_inside_a_stream_comes_after_the_text(
    wrap: str, event: str
) -> None:
    error = '{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}'
    stage = Gemini().reader(UpstreamRequest("", {}))
    raw = (
        stream(chunk({"text": "A"}))
        + f"{event}data: {wrap}\n\n".replace("{}", error).encode()
    )
    found: list[StreamEvent] = []
    with pytest.raises(UpstreamRefused, match="overloaded"):
        for one in stage.feed(raw):
            found.append(one)
    assert found == [TextDelta("A")]


def test_gemini_call_in_pieces_is_joined() -> None:
    pieces = [
        chunk(call(willContinue=True) | {"thoughtSignature": "c2ln"}),
        chunk({"functionCall": {"willContinue": True, "partialArgs": [
            {"jsonPath": "$.path", "stringValue": "src/", "willContinue": True}]}}),
        chunk({"functionCall": {"willContinue": True, "partialArgs": [
            {"jsonPath": "$.path", "stringValue": "a.py"},
            {"jsonPath": "$.lines[0]", "numberValue": 2.0}]}}),
        chunk({"functionCall": {}}),
        chunk(call("grep", partialArgs=[{"jsonPath": "$.x", "boolValue": True}])),
        chunk({"functionCall": {}}, finish="STOP"),
    ]  # fmt: skip
    assert read(stream(*pieces)) == [
        ToolCallDelta(1, "", "view file", "", kept(thoughtSignature="c2ln")),
        ToolCallDelta(1, arguments='{"path":"src/a.py","lines":[2]}'),
        ToolCallDelta(2, "", "grep"),
        ToolCallDelta(2, arguments='{"x":true}'),
        STOP,
    ]


def test_gemini_call_that_never_ended_at_the_limit_stays_open() -> None:
    raw = stream(chunk(call(willContinue=True), finish="MAX_TOKENS"))
    _, arguments, end = read(raw)
    assert arguments == ToolCallDelta(1, arguments="{")
    assert end == Finish(FinishReason.LENGTH)


@pytest.mark.parametrize("reason", ["STOP", "OTHER", "A_LATER_REASON"])
def test_gemini_answer_with_half_a_call_broke_off(reason: str) -> None:
    stage = Gemini().reader(UpstreamRequest("", {}))
    found = [*stage.feed(stream(chunk(call(willContinue=True), finish=reason)))]
    with pytest.raises(UpstreamGarbled) as raised:
        for event in stage.flush():
            found.append(event)
    assert (raised.value.code, raised.value.retryable) == ("upstream_cut", True)
    assert found == [ToolCallDelta(1, "", "view_1"), ToolCallDelta(1, arguments="{")]


def test_gemini_answer_of_another_protocol_is_named() -> None:
    with pytest.raises(UpstreamGarbled) as raised:
        read(stream({"choices": [{"delta": {"content": "A"}}]}))
    assert raised.value.code == "upstream_protocol"


PARTS = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=6)),
    st.builds(lambda text: {"text": text, "thought": True}, st.text(max_size=6)),
    st.builds(
        lambda text: {"text": text, "thoughtSignature": "c2ln"}, st.text(max_size=6)
    ),
    st.builds(lambda text: call(args={"x": text}), st.text(max_size=6)),
)


@given(st.lists(PARTS, min_size=1, max_size=6), CUTS, st.sampled_from(["\n", "\r\n"]))
def test_gemini_any_slicing_gives_the_same_events(
    parts: list[Any], places: list[int], line_end: str
) -> None:
    chunks = [*map(chunk, parts), chunk({"text": "."}, finish="STOP")]
    raw = stream(*chunks).replace(b"\n", line_end.encode())
    assert read(*cut(raw, places)) == read(raw)


CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "content": st.one_of(
                        VALUES,
                        st.fixed_dictionaries({"parts": st.lists(
                            st.dictionaries(
                                st.sampled_from([
                                    "text", "thought", "thoughtSignature",
                                    "functionCall", "toolCall",
                                ]),
                                st.one_of(VALUES, st.fixed_dictionaries(
                                    {}, optional={
                                        "name": VALUES, "args": VALUES, "id": VALUES,
                                        "partialArgs": VALUES, "willContinue": VALUES,
                                    })),
                                max_size=3,
                            ), max_size=2)}),
                    ),
                    "finishReason": VALUES,
                    "groundingMetadata": VALUES,
                    "index": VALUES,
                },
            ),
            max_size=2,
        )
        | VALUES,
        "promptFeedback": VALUES,
        "usageMetadata": VALUES,
        "error": VALUES,
    },
)  # fmt: skip


@settings(max_examples=80)
@given(st.lists(CHUNKS | VALUES, max_size=3))
def test_gemini_any_chunk_fails_only_as_an_upstream_error(chunks: list[Any]) -> None:
    try:
        *_, last = read(stream(*chunks))
    except UpstreamError:
        return
    assert isinstance(last, Finish)
