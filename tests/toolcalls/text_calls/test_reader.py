"""Tool calls in text: only whole, valid calls of offered tools, and nothing lost."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.errors import UpstreamGarbled
from byok.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.toolcalls.text_calls.reader import TextCallReader
from byok.toolcalls.text_calls.syntaxes import SYNTAXES
from tests.fakes.linear import check_linear
from tests.fakes.slices import CUTS, cut, singles

STOP = Finish(FinishReason.STOP)
SCHEMAS: dict[str, Any] = {
    "save file": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "text": {"type": "string"},
            "line": {"type": "integer"},
            "kind": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "look": {"type": "object", "properties": {}},
}
NAMES = {"save_file": "save file", "look": "look"}


class Words:
    """Stage[bytes, StreamEvent] that reads plain text; `!` breaks it."""

    def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
        if data == b"!":
            raise UpstreamGarbled("broken")
        yield TextDelta(data.decode("utf-8", "surrogatepass"))

    def flush(self) -> Iterable[StreamEvent]:
        return [Usage(1, 2), STOP]


def reader(family: str) -> TextCallReader:
    return TextCallReader(Words(), SYNTAXES[family], SCHEMAS, NAMES)


def read(family: str, pieces: Iterable[str]) -> list[StreamEvent]:
    stage = reader(family)
    raw = (piece.encode("utf-8", "surrogatepass") for piece in pieces)
    events = [event for data in raw for event in stage.feed(data)]
    events += stage.flush()
    assert events[-2:] == [Usage(1, 2), STOP] or events[-1] == STOP
    return events


def text_of(events: Iterable[StreamEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def calls_of(events: Iterable[StreamEvent]) -> list[tuple[str, Any]]:
    calls = [e for e in events if isinstance(e, ToolCallDelta)]
    assert len({call.id for call in calls}) == len(calls)
    assert len({call.index for call in calls}) == len(calls)
    return [(call.name, json.loads(call.arguments)) for call in calls]


ARGS = {"path": "a.py", "text": "</tool_call> <x>"}
CALL: tuple[str, Any] = ("save file", ARGS)
LOOK: tuple[str, Any] = ("look", {})
HERMES = (
    f"<tool_call>\n{json.dumps({'name': 'save_file', 'arguments': ARGS})}\n</tool_call>"
)
CASES: dict[str, tuple[str, str, str, list[tuple[str, Any]]]] = {
    "a call": ("hermes", HERMES, "", [CALL]),
    "words around": ("hermes", f"So:\n{HERMES}\nDone.", "So:\n\nDone.", [CALL]),
    "two calls": (
        "hermes",
        f'{HERMES}\n<tool_call>{{"name": "look", "arguments": {{}}}}</tool_call>',
        "\n",
        [CALL, LOOK],
    ),
    "no closer at the end": (
        "hermes",
        '<tool_call>{"name": "look", "arguments": {}}\n',
        "",
        [LOOK],
    ),
    "a mention, then a call": (
        "hermes",
        "I use <tool_call> now: "
        '<tool_call>{"name": "look", "arguments": {}}</tool_call>',
        "I use <tool_call> now: ",
        [LOOK],
    ),
    "XML with types": (
        "hermes",
        "<tool_call>\n<function=save_file>\n<parameter=path>\na\n</parameter>\n"
        "<parameter=line>\n5\n</parameter>\n</function>\n</tool_call>",
        "",
        [("save file", {"path": "a", "line": 5})],
    ),
    "XML alone": ("hermes", "<function=look>\n</function> ok", " ok", [LOOK]),
    "GLM": (
        "glm",
        "Hm.<tool_call>save_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>"
        "<arg_key>line</arg_key><arg_value>5</arg_value></tool_call>",
        "Hm.",
        [("save file", {"path": "a", "line": 5})],
    ),
    "Kimi": (
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
        "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        "",
        [LOOK],
    ),
    "Kimi without its section": (
        "kimi",
        "<|tool_call_begin|>look:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "",
        [LOOK],
    ),
    "DeepSeek": (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "",
        [LOOK],
    ),
    "DeepSeek V4": (
        "deepseek",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        "",
        [LOOK],
    ),
    "MiniMax": (
        "minimax",
        '<minimax:tool_call><invoke name="look"></invoke></minimax:tool_call>',
        "",
        [LOOK],
    ),
    "Llama": ("llama", ' {"name": "look", "parameters": {}}', " ", [LOOK]),
    "Llama's tag": (
        "llama",
        '<|python_tag|>{"name": "look", "parameters": {}}',
        "",
        [LOOK],
    ),
    "Mistral": (
        "mistral",
        'Well.[TOOL_CALLS][{"name": "look", "arguments": {}}]',
        "Well.",
        [LOOK],
    ),
    "Mistral, newer": ("mistral", "[TOOL_CALLS]look[ARGS]{}", "", [LOOK]),
}  # fmt: skip
TABLE = pytest.mark.parametrize(
    ("family", "text", "said", "calls"), CASES.values(), ids=CASES
)


@TABLE
def test_text_call_is_read(
    family: str, text: str, said: str, calls: list[tuple[str, Any]]
) -> None:
    events = read(family, [text])
    assert (text_of(events), calls_of(events)) == (said, calls)


@TABLE
def test_text_call_is_the_same_however_it_is_cut(
    family: str, text: str, said: str, calls: list[tuple[str, Any]]
) -> None:
    events = read(family, singles(text))
    assert (text_of(events), calls_of(events)) == (said, calls)


UNCHANGED: dict[str, tuple[str, str]] = {
    "another tool": (
        "hermes",
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    ),
    "a required argument is missing": (
        "hermes",
        '<tool_call>{"name": "save_file", "arguments": {}}</tool_call>',
    ),
    "an argument too many": (
        "hermes",
        '<tool_call>{"name":"save_file","arguments":{"path":"a","x":1}}</tool_call>',
    ),
    "a value that is not allowed": (
        "hermes",
        '<tool_call>{"name":"save_file","arguments":{"path":"a","kind":"c"}}</tool_call>',
    ),
    "a value of another type": (
        "glm",
        "<tool_call>save_file<arg_key>path</arg_key><arg_value>a</arg_value>"
        "<arg_key>line</arg_key><arg_value>five</arg_value></tool_call>",
    ),
    "one of two is invalid": (
        "mistral",
        '[TOOL_CALLS][{"name":"look","arguments":{}},{"name":"rm","arguments":{}}]',
    ),
    "cut": ("hermes", '<tool_call>{"name": "look", "argum'),
    "cut XML": ("hermes", "<function=look>"),
    "in a fence": (
        "hermes",
        'As so:\n```\n<tool_call>{"name": "look", "arguments": {}}</tool_call>\n```\n',
    ),
    "a mention": ("hermes", "The tags <tool_call> and </tool_call> are for tools."),
    "in backticks": ("hermes", "Write `<tool_call>` first."),
    "a list in JSON": ("llama", '{"name": "Ann", "age": 5}'),
    "not at the start": ("llama", 'See {"name": "look", "parameters": {}}'),
    "the markers of others": (
        "kimi",
        '<tool_call>{"name": "look", "arguments": {}}</tool_call>',
    ),
    "half a marker": ("mistral", "[TOOL"),
    "a footnote": ("mistral", "[TOOL_CALLS] is what it writes."),
}


@pytest.mark.parametrize(("family", "text"), UNCHANGED.values(), ids=UNCHANGED)
def test_text_without_a_whole_valid_call_is_unchanged(family: str, text: str) -> None:
    for pieces in ([text], singles(text)):
        events = read(family, pieces)
        assert calls_of(events) == []
        assert text_of(events) == text


PIECES = st.sampled_from(
    [b.opener for s in SYNTAXES.values() for b in s.blocks]
    + [b.closer for s in SYNTAXES.values() for b in s.blocks]
    + ["<parameter=a>", "</parameter>", "<arg_key>a</arg_key>", "[ARGS]", "{}", "{",
       '{"name": "rm", "arguments": {}}', '"', "\n", " ", "```", "rm", "<", "[", "x",
       '<invoke name="rm">', "<|tool_call_argument_begin|>", "<tool", "\ud83d"]
)  # fmt: skip


@pytest.mark.parametrize("family", SYNTAXES)
@settings(max_examples=60)
@given(text=st.lists(PIECES, max_size=20).map("".join), places=CUTS)
def test_text_between_markers_is_never_lost(
    family: str, text: str, places: list[int]
) -> None:
    events = read(family, cut(text, places))
    assert calls_of(events) == []
    assert text_of(events) == text


def test_text_call_holds_back_no_more_than_a_possible_marker() -> None:
    stage = reader("hermes")
    fed = [
        text_of(stage.feed(piece.encode()))
        for piece in ("a <", "b <tool", "_calls <tool_call>", "\n", "no", " <x")
    ]
    assert fed == ["a ", "<b ", "<tool_calls ", "", "<tool_call>\nno", " <x"]


def test_text_that_was_held_is_given_when_the_answer_breaks() -> None:
    for held in ("<tool_c", '<tool_call>{"name'):
        stage = reader("hermes")
        events = [*stage.feed(held.encode())]
        with pytest.raises(UpstreamGarbled):
            for event in stage.feed(b"!"):
                events.append(event)
        assert text_of(events) == held


def test_text_that_was_held_is_given_when_the_end_breaks() -> None:
    class Broken(Words):
        def flush(self) -> Iterator[StreamEvent]:
            yield TextDelta("x")
            raise UpstreamGarbled("broken")

    stage = TextCallReader(Broken(), SYNTAXES["hermes"], SCHEMAS, NAMES)
    events = [*stage.feed(b"<tool_call>{")]
    with pytest.raises(UpstreamGarbled):
        for event in stage.flush():
            events.append(event)
    assert text_of(events) == "<tool_call>{x"


def test_text_stands_before_the_event_that_follows_it() -> None:
    class Mixed(Words):
        def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
            yield TextDelta("a <tool")
            yield ThinkingDelta("hm")
            yield TextDelta("<function=look>")
            yield ToolCallDelta(0, "c1", "look", "{}")

    stage = TextCallReader(Mixed(), SYNTAXES["hermes"], SCHEMAS, NAMES)
    events = [*stage.feed(b"")]
    assert events == [
        TextDelta("a "),
        TextDelta("<tool"),
        ThinkingDelta("hm"),
        TextDelta("<function="),
        TextDelta("look>"),
        ToolCallDelta(0, "c1", "look", "{}"),
    ]


def test_text_without_markers_passes_as_it_came() -> None:
    stage, event = reader("hermes"), TextDelta("plain")
    stage._first = Passing(event)
    assert next(iter(stage.feed(b""))) is event


class Passing(Words):
    """Gives one event."""

    def __init__(self, event: StreamEvent) -> None:
        self._event = event

    def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
        yield self._event


@pytest.mark.parametrize(
    ("family", "piece"),
    [
        ("hermes", "<tool_call>{"),
        ("hermes", "<tool_call></tool_call>"),
        ("hermes", '<tool_call>{"a": "</tool_call>'),
        ("glm", "<tool_call>a"),
        ("kimi", "<|tool_calls_section_begin|><"),
        ("llama", "<|python_tag|>{"),
        ("mistral", "[TOOL_CALLS]a"),
        ("mistral", "[TOOL_"),
    ],
)
def test_text_full_of_markers_takes_linear_time(family: str, piece: str) -> None:
    def run(count: int) -> None:
        assert text_of(read(family, [piece * 10] * (count // 10))) == piece * count

    check_linear(run, 2000)
