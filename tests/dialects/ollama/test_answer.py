"""Answers of Ollama's own API: lines of JSON in any slices, or one document."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import ChatRequest, Origin, ProviderData
from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
)
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.stage import chain, drain
from byok.core.wire.json_lines import JsonLines
from byok.dialects.base import Target
from byok.dialects.ollama.answer import REASONING, OllamaAnswer
from byok.dialects.ollama.dialect import Ollama
from tests.fakes.ollama_server import call_line, done_line, text_line
from tests.fakes.values import CUTS, cut

HERE = Origin("ollama", "box", "m")

END = ProviderData(HERE, REASONING)


def raw(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def read(*pieces: bytes, names: dict[str, str] | None = None) -> list[StreamEvent]:
    return [*drain(chain(JsonLines(), OllamaAnswer(names or {}, HERE)), pieces)]


def fail(*pieces: bytes) -> tuple[list[StreamEvent], UpstreamError]:
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError) as caught:
        for event in drain(chain(JsonLines(), OllamaAnswer({}, HERE)), pieces):
            events.append(event)
    return events, caught.value


STREAM = raw(
    text_line("", thinking="I "),
    text_line("", thinking="think."),
    text_line("Hello "),
    text_line("\ud83d"),
    text_line("\ude00!"),
    call_line("view", {"path": "ü", "line": 3}),
    call_line("view", {}, 0),
    done_line(27),
)

EVENTS = [
    ThinkingDelta("I "),
    ThinkingDelta("think."),
    ThinkingDelta("", END),
    TextDelta("Hello "),
    TextDelta("😀!"),
    ToolCallDelta(0, "call_0view", "view", '{"path":"ü","line":3}'),
    ToolCallDelta(1, "call_0view", "view", "{}"),
    Usage(27, 2),
    Finish(FinishReason.TOOL_CALLS),
]


@given(places=CUTS)
def test_any_slicing_gives_the_same_events(places: list[int]) -> None:
    assert read(*cut(STREAM, places)) == EVENTS


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_answer_is_read_like_the_last_line_of_a_stream(
    indent: int | None,
) -> None:
    message = {
        "role": "assistant",
        "content": "Hi.",
        "thinking": "Hm.",
        "tool_calls": [{"function": {"name": "a_1", "arguments": {"x": 1}}}],
    }
    document = {**done_line(9, "length"), "message": message}
    data = json.dumps(document, indent=indent).encode()
    assert read(data, names={"a_1": "a!"}) == [
        ThinkingDelta("Hm."),
        ThinkingDelta("", END),
        TextDelta("Hi."),
        ToolCallDelta(0, "", "a!", '{"x":1}'),
        Usage(9, 2),
        Finish(FinishReason.LENGTH),
    ]


def test_a_model_may_think_again_after_its_text() -> None:
    lines = (text_line("a"), text_line("", thinking="b"), text_line("c"), done_line(0))
    assert read(raw(*lines))[:4] == [
        TextDelta("a"), ThinkingDelta("b"), ThinkingDelta("", END), TextDelta("c"),
    ]  # fmt: skip


def test_think_tags_of_a_model_without_a_parser_become_thoughts() -> None:
    lines = (text_line("<thi"), text_line("nk>Hm.</think>"), text_line("Hi."))
    events = read(raw(*lines, done_line()))
    assert events[0] == ThinkingDelta("Hm.")
    assert TextDelta("Hi.") in events


def test_calls_without_a_role_beside_them_are_read() -> None:
    line = call_line("view", {})
    del line["message"]["role"]
    assert {*line["message"]} == {"content", "tool_calls"}
    events = read(raw(text_line("Hi."), line, done_line(0)))
    assert events[1] == ToolCallDelta(0, "call_0view", "view", "{}")


def test_an_error_beside_a_text_is_an_error() -> None:
    line = {**text_line("more"), "error": "out of memory"}
    events, error = fail(raw(text_line("Hi."), line))
    assert events == [TextDelta("Hi.")]
    assert "out of memory" in str(error)


@pytest.mark.parametrize(
    "call",
    [7, {"function": 7}, {}, {"function": {"name": 7, "arguments": None}}],
)
def test_odd_calls_do_no_harm(call: object) -> None:
    events = read(raw(text_line("", tool_calls=[call]), done_line()))
    assert isinstance(events[-1], Finish)
    for event in events[:-1]:
        assert event == ToolCallDelta(0, "", "", "{}") or isinstance(event, Usage)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", UpstreamEmpty),
        (raw(text_line("Half")), UpstreamGarbled),
        (raw(done_line(0, "load")), UpstreamEmpty),
        (b"[1]\n", UpstreamNotJson),
        (b"<html>", UpstreamGarbled),
    ],
)
def test_what_is_no_answer_is_an_error(data: bytes, kind: type[UpstreamError]) -> None:
    _, error = fail(data)
    assert isinstance(error, kind)


LINES = [
    text_line("", thinking="Hm. 🤔"),
    text_line("Grüße, 世界 "),
    text_line("👩‍👩‍👧!"),
    call_line("view", {"path": "ü\n", "n": 1.5}),
    done_line(27),
]

RAW = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in LINES)


def read_lines(*pieces: bytes) -> list[StreamEvent]:
    sent = Ollama().encode(ChatRequest(()), Target("m"))
    return [*drain(Ollama().reader(sent), pieces)]


def test_what_follows_the_end_is_ignored() -> None:
    assert read_lines(RAW + b'{"error": "too late"}\n') == read_lines(RAW)


LAST = RAW.rindex(b"{", 0, RAW.rindex(b'"message"')) + 1


@given(st.integers(0, LAST))
def test_an_answer_that_is_cut_anywhere_is_no_success(place: int) -> None:
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamError):
        sent = Ollama().encode(ChatRequest(()), Target("m"))
        for event in drain(Ollama().reader(sent), [RAW[:place]]):
            events.append(event)
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize("line", range(len(LINES)))
@pytest.mark.parametrize(
    "garbage",
    [b'{"error": "model runner has stopped"}', b"{]", b"null", b"<html>", b"data: x"],
)
def test_garbage_instead_of_a_line_is_no_success(line: int, garbage: bytes) -> None:
    lines = RAW.splitlines()
    lines[line] = garbage
    with pytest.raises(UpstreamError):
        read_lines(b"\n".join(lines) + b"\n")
