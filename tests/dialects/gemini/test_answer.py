"""Reading Gemini's answers: parts, calls, signatures, ends and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import Origin, ProviderData
from byok.core.errors import UpstreamGarbled
from byok.core.events import (
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
from byok.dialects.gemini.answer import (
    FINISHED,
    PartialArguments,
    failure_of,
    filter_sentence,
    read_sources,
    read_usage,
)
from byok.dialects.gemini.dialect import Gemini
from tests.fakes.clock import check_linear
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.values import CUTS, VALUES, cut, singles

HERE = Origin("gemini", "box", "gemini-3-pro")
NAMES = {"view_1": "view file"}


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
            [chunk({"text": "A"}), chunk({"text": "B"}, index=1), chunk(finish="STOP")],
            [TextDelta("A"), STOP],
            id="another candidate",
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


def test_gemini_events_without_blank_lines_between_are_read() -> None:
    raw = stream(chunk({"text": "A"}), chunk({"text": "B"}, finish="STOP"))
    found = read(raw.replace(b"\n\n", b"\n") + b"\ndata: [DONE]\n\n")
    assert found == [TextDelta("A"), TextDelta("B"), STOP]


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


# Token counts and sources of Gemini's answers


@pytest.mark.parametrize(
    ("metadata", "usage"),
    [
        (
            {
                "promptTokenCount": 15,
                "toolUsePromptTokenCount": 70,
                "candidatesTokenCount": 3,
                "thoughtsTokenCount": 40,
                "cachedContentTokenCount": 9,
            },
            Usage(85, 43, 9, 0, 40),
        ),
        ({"totalTokenCount": 7}, None),
        (None, None),
    ],
)
def test_gemini_usage_counts_thoughts_and_what_tools_read(
    metadata: Any, usage: Usage | None
) -> None:
    assert read_usage(metadata) == usage


def test_gemini_sources_come_from_searches_files_maps_citations_and_urls() -> None:
    found: dict[str, str] = {}
    candidate = {
        "groundingMetadata": {
            "groundingChunks": [
                {"web": {"uri": "u1", "title": "One"}},
                {"retrievedContext": {"uri": "u2", "text": "..."}},
                {"maps": {"uri": "u3", "title": 3}},
                {"web": {"title": "no address"}},
                {"web": None},
                7,
            ]
        },
        "citationMetadata": {"citationSources": [{"uri": "u4"}, {"uri": "u1"}]},
        "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "u5"}]},
    }
    read_sources(candidate, found)
    assert found == {"u1": "One", "u2": "", "u3": "", "u4": "", "u5": ""}
    read_sources({"groundingMetadata": 7, "citationMetadata": {"citations": 7}}, found)
    assert len(found) == 5


# Arguments that come in pieces


def join(*pieces: Any) -> Any:
    arguments = PartialArguments()
    for piece in pieces:
        arguments.feed([piece])
    return json.loads(arguments.text())


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([], {}),
        ([("$.a", "stringValue", "x"), ("$.a", "stringValue", "y")], {"a": "xy"}),
        (
            [("$.a[0]", "numberValue", 3.0), ("$.a[1]", "numberValue", 4.5)],
            {"a": [3, 4.5]},
        ),
        (
            [
                ("$.a", "stringValue", "x"),
                ("$.b", "stringValue", "y"),
                ("$.a", "nullValue", "NULL_VALUE"),
            ],
            {"a": None, "b": "y"},
        ),
        ([("$['x.y']['']", "nullValue", "NULL_VALUE")], {"x.y": {"": None}}),
        ([('$["it\\"s"]', "stringValue", "z")], {'it"s': "z"}),
    ],
)
def test_pieces_are_placed_by_their_paths(
    pieces: list[tuple[str, str, Any]], whole: Any
) -> None:
    assert (
        join(*({"jsonPath": path, kind: value} for path, kind, value in pieces))
        == whole
    )


@pytest.mark.parametrize(
    "path", ["$", "$..a", "$.a[-1]", "$.a[1]", "a.b", "$.x.y", "$[0]",
             "$.l.a", "$" + ".a" * 65],
)  # fmt: skip
def test_pieces_without_a_place_are_refused_or_ignored(path: str) -> None:
    before = {"jsonPath": "$.x", "stringValue": "s"}
    items = {"jsonPath": "$.l[0]", "stringValue": "s"}
    piece = {"jsonPath": path, "stringValue": "v"}
    if path == "$":
        assert join(before, piece) == {"x": "s"}
        return
    with pytest.raises(UpstreamGarbled):
        join(before, items, piece)


@given(VALUES)
def test_anything_else_is_no_piece(value: Any) -> None:
    arguments = PartialArguments()
    try:
        arguments.feed(value)
        arguments.feed([value])
    except UpstreamGarbled:
        return
    json.loads(arguments.text())


@given(st.text(max_size=20))
def test_any_path_is_placed_or_refused(path: str) -> None:
    try:
        join({"jsonPath": f"${path}", "stringValue": "x"})
    except UpstreamGarbled:
        return


def test_a_long_string_in_many_pieces_takes_linear_time() -> None:
    def joined(size: int) -> int:
        arguments = PartialArguments()
        piece = [{"jsonPath": "$.text", "stringValue": "x" * 20}]
        for _ in range(size):
            arguments.feed(piece)
        return len(arguments.text())

    check_linear(joined, 20_000)
    assert joined(50) == 50 * 20 + len('{"text":""}')


# The reasons for which Gemini ends an answer, and their sentences


FILTERS = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY "
    "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER MODEL_ARMOR"
)
FAILURES = (
    "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
    "MISSING_THOUGHT_SIGNATURE MALFORMED_RESPONSE"
)


def test_every_reason_has_its_kind() -> None:
    for reason in FILTERS.split():
        assert f"({reason})" in filter_sentence(reason)
        assert failure_of(reason) is None
    for reason in FAILURES.split():
        error = failure_of(reason)
        assert error is not None
        assert error.message.endswith(f"({reason}).")
        assert filter_sentence(reason) == ""
    for reason in FINISHED:
        assert filter_sentence(reason) == "" and failure_of(reason) is None


# Recorded answers of Gemini and Vertex AI, as Google's own SDK reads them


def joined(events: list[StreamEvent], kind: type[TextDelta | ThinkingDelta]) -> str:
    return "".join(e.text for e in events if isinstance(e, kind))


def calls(events: list[StreamEvent]) -> list[tuple[str, Any]]:
    found = [e for e in events if isinstance(e, ToolCallDelta)]
    return [(e.name, json.loads(e.arguments)) for e in found]


def test_gemini_recordings_are_read_as_by_the_sdk(shared: Path) -> None:
    read_so_far = 0
    for item in recorded(shared, "gemini_stream"):
        expected, raw = item["expected"], bytes_of(shared, item)
        if not expected or b"partialArgs" in raw:  # which the SDK does not join
            continue
        events = read(raw)
        assert joined(events, TextDelta) == (expected["text"] or ""), item["id"]
        assert joined(events, ThinkingDelta) == (expected["reasoning"] or ""), item[
            "id"
        ]
        wanted = [(c["name"], c["arguments"]) for c in expected["tool_calls"]]
        assert calls(events) == wanted, item["id"]
        (usage,) = [e for e in events if isinstance(e, Usage)]
        counts = expected["usage"]
        assert usage.reasoning_tokens == (counts.get("thoughts_token_count") or 0)
        read_so_far += 1
    assert read_so_far > 100
