"""Tool calls that models print as text: each form is read, and none is invented."""

import contextlib
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from byok.core.chat import ToolCall, ToolDefinition
from byok.core.errors import UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from byok.upstream.toolcalls.call_grammar import first_mark
from byok.upstream.toolcalls.printed_calls import PrintedCallReader
from tests.fakes.clock import check_linear
from tests.fakes.printed_forms import FORMS, TOOLS, Calls
from tests.fakes.prose_about_calls import ANNOUNCEMENTS, ANSWERS, INTRODUCTIONS, REMARKS

STOP = FinishReason.STOP
VIEW = '{"name": "view", "arguments": {"path": "README.md"}}'


class Words:
    """A dialect whose bytes are the text of the answer, or its reasoning."""

    def __init__(self, kind: type[StreamEvent], reason: FinishReason) -> None:
        self._kind, self._reason = kind, reason

    def feed(self, data: bytes, /) -> list[StreamEvent]:
        if data == b"\0":
            raise UpstreamGarbled("broken")
        text = data.decode()
        return [self._kind(text)]  # type: ignore[call-arg, arg-type]

    def flush(self) -> Iterator[StreamEvent]:
        yield Usage(1, 2)
        yield Finish(self._reason)


def make_reader(
    kind: type[StreamEvent] = TextDelta, reason: FinishReason = STOP
) -> PrintedCallReader:
    return PrintedCallReader(Words(kind, reason), TOOLS, {name: name for name in TOOLS})


def read(
    *pieces: str,
    kind: type[StreamEvent] = TextDelta,
    reason: FinishReason = STOP,
) -> tuple[str, Calls]:
    """Return the text and the calls of an answer that comes in these pieces."""
    stage = make_reader(kind, reason)
    events = [event for piece in pieces for event in stage.feed(piece.encode())]
    events += stage.flush()
    assert events[-1] == Finish(reason)
    return text_of(events), [
        (event.name, json.loads(event.arguments))
        for event in events
        if isinstance(event, ToolCallDelta)
    ]


def text_of(events: Iterable[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def cut(text: str, draw: random.Random) -> list[str]:
    places = sorted(draw.sample(range(len(text) + 1), min(5, len(text))))
    return [text[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]


@pytest.mark.slow
def test_each_form_is_read_however_it_is_cut() -> None:
    draw = random.Random(1)
    wrong = {}
    for name, (text, calls) in FORMS.items():
        ways = [[text], [*text], cut(text, draw), cut(text, draw)]
        results = [read(*pieces) for pieces in ways]
        if any(found != calls or said.strip() for said, found in results):
            wrong[name] = results
    assert len(FORMS) >= 65
    assert wrong == {}


def test_each_form_is_read_out_of_reasoning_if_nothing_else_was_said() -> None:
    found = {n: read(text, kind=ThinkingDelta)[1] for n, (text, _) in FORMS.items()}
    assert found == {name: calls for name, (_, calls) in FORMS.items()}


def test_no_call_is_made_of_an_answer_that_was_cut_off() -> None:
    """By the limit of its length, or of a call that is not complete."""
    reasons = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
    for name, (text, _) in FORMS.items():
        for reason in reasons:
            assert read(text, reason=reason) == (text, []), name
        if "without arguments" not in name:
            half = text[: len(text) * 2 // 3]
            assert read(half) == (half, []), name


@pytest.mark.slow
def test_of_an_answer_that_stops_anywhere_only_complete_calls_are_made() -> None:
    """Some hosts report a cut answer as whole, and show the token that ended it."""
    wrong = []
    for name, (text, calls) in FORMS.items():
        ends = [end for end in range(1, len(text)) if not text[end - 1].isalpha()]
        for end in ends:  # behind a letter, a cut never looks complete
            for mark in ("", "<|im_end|>"):
                _, made = read(text[:end] + mark)
                if made != calls[: len(made)]:
                    wrong.append((name, text[:end] + mark, made))
    assert wrong == []


@pytest.mark.slow
def test_no_call_is_invented_in_prose() -> None:
    """Answers that show calls: documentation, reviews, tests, questions."""
    draw = random.Random(2)
    made = []
    for answer in ANSWERS:
        if any(
            read(*pieces) != (answer, []) for pieces in ([answer], cut(answer, draw))
        ):
            made.append(answer)
    forms = [*FORMS.items()]
    for place, lead in enumerate(INTRODUCTIONS):
        for _, (text, _) in forms[place % 6 :: 6]:
            for answer in (f"{lead}\n\n{text}", f"{lead}\n\n```\n{text}\n```"):
                if read(answer) != (answer, []):
                    made.append(answer)
            answer = f"{text}\n\n{REMARKS[place % len(REMARKS)]}"
            if read(answer)[1]:
                made.append(answer)
    assert len(ANSWERS) + len(INTRODUCTIONS) >= 120
    assert made == []


def test_an_agent_may_say_what_it_does_before_a_marked_call() -> None:
    marked = {name: form for name, form in FORMS.items() if first_mark(form[0])}
    wanted = ("tool_call (Hermes, Qwen)", "Kimi K2", "Qwen3-Coder", "Claude", "GLM 4.5")
    draw = random.Random(3)
    lost = []
    for name in wanted:
        text, calls = marked[name]
        for lead in ANNOUNCEMENTS:
            answer = f"{lead}\n\n{text}"
            ways = ([answer], cut(answer, draw))
            if any(read(*pieces) != (f"{lead}\n\n", calls) for pieces in ways):
                lost.append((name, lead))
    assert lost == []


def test_reasoning_in_the_text_is_no_text_before_a_call() -> None:
    """Servers leave it there, and lose its opening tag with the prompt."""
    call = f"<tool_call>{VIEW}</tool_call>"
    thoughts = "The user wants this:\n```\nview a tool\n```\nSo I read the file."
    for lead in (
        f"{thoughts}\n</think>\n\n",
        f"<think>{thoughts}</think>",
        f"\n<thinking>\n{thoughts * 100}\n</thinking>\n",
    ):
        for pieces in ([lead + call], [*lead, call]):
            assert read(*pieces) == (lead, [("view", {"path": "README.md"})])
    shown = f"The model answers:\n\n<think>\n{thoughts}\n</think>\n\n{call}"
    assert read(shown) == (shown, [])


NO_CALLS = (
    VIEW.replace("view", "unknown-tool"),
    VIEW.replace('"path"', '"file"'),
    VIEW.replace('"README.md"', "[1]"),
    VIEW.replace('"README.md"', '"a", "line": 1e999'),
    VIEW.replace('"README.md"', '"a", "line": NaN'),
    '{"name": "view", "path": "README.md"}',
    f"<tool_call>{VIEW.replace('view', 'other')}</tool_call>",
    f"<tool_call>{VIEW[:-2]},</tool_call>",
    f"<tool_call>{VIEW[:-3]}</tool_call>",
    # cut by the end of an answer that its host calls whole
    '<tool_call>{"name": "view", "arguments": {"path": "a"</tool_call>',
    '<tool_call>{"name": "view", "arguments": {"path": "a", "line": 12</tool_call>',
    '<tool_call>{"name": "view", "arguments": {"path": "a", "ranges": [1</tool_call>',
    '<tool_call>{"name": "view", "arguments": {"path": "a</tool_call>',
    '<tool_call>{"name": "launch-process", "command": "a", "wait": true, "env": {}'
    "</tool_call>",
    'view({"path": "a"<|im_end|>',
    '<tool_call>[{"name": "view", "arguments": {"path": "a"}}</tool_call>',
    '<tool_call>{"name": "view", "arguments": {"path": "a"}<',
    "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>",
    "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>a</arg_value><|im_end|>",
    '<function=view>{"path": "README',
    '<tool_call>{"view": {"path": "a"}, "line": 3}</tool_call>',
    '<function=view>{"path": "a"} and more',
    "<function=view><parameter=path>a</parameter><parameter=path>b</parameter>"
    "</function>",
    "<tool_call>view\n<arg_key>path</arg_key>\n<arg_key>a</arg_key></tool_call>",
    "[view(path='a', path='b')]",
    '<tool_call>save_file(path=\'a\', content="""x</tool_call>',
    '<tool_call>save_file(path=\'a\', content="""x\\n""")</tool_call>',
    f"{VIEW} {VIEW.replace('view', 'other')}",
    '{"path": "README.md"}',
    "view the file",
)


def test_what_is_no_complete_valid_call_of_an_offered_tool_stays_text() -> None:
    made = [t for t in NO_CALLS if read(t) != (t, []) or read(*t) != (t, [])]
    assert made == []


def test_a_call_inside_the_arguments_of_another_is_its_content() -> None:
    inner = f"<tool_call>{VIEW}</tool_call>"
    arguments = {"path": "a.md", "content": f"Call it so:\n{inner}\n"}
    outer = json.dumps({"name": "save-file", "arguments": arguments})
    for text in (outer, f"<tool_call>{outer}</tool_call>"):
        assert read(text) == ("", [("save-file", arguments)])


def test_text_passes_at_once_unless_it_may_become_a_call() -> None:
    stage = make_reader()
    words = "The function is defined in `reader.py`. "
    assert text_of(stage.feed(words.encode())) == words
    assert text_of(stage.feed(b"a < b and c[0]")) != ""


class Reads:
    """A dialect whose reads bring several events each; the last are those of its end.

    An exception among them is raised in its place.
    """

    def __init__(self, *reads: list[StreamEvent | Exception]) -> None:
        self._reads = iter(reads)

    def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
        for event in next(self._reads):
            if isinstance(event, Exception):
                raise event
            yield event

    def flush(self) -> Iterator[StreamEvent]:
        return self.feed(b"")


def events_of(*reads: list[StreamEvent | Exception]) -> list[StreamEvent]:
    """Return all events of an answer, up to the error that ends it."""
    stage = PrintedCallReader(Reads(*reads), TOOLS, {name: name for name in TOOLS})
    events: list[StreamEvent] = []
    with contextlib.suppress(UpstreamGarbled):
        for _ in reads[1:]:
            events.extend(stage.feed(b""))
        events.extend(stage.flush())
    return events


def test_several_events_of_one_read_keep_their_order() -> None:
    half, call = VIEW[:20], ToolCallDelta(0, "c", "view", '{"path": "b"}')
    usage, finish = Usage(1, 2), Finish(STOP)
    words = "I look. "
    ways: list[list[list[StreamEvent | Exception]]] = [
        [[TextDelta(half), TextDelta(VIEW[20:]), usage], [finish]],
        [[TextDelta(half)], [TextDelta(VIEW[20:]), usage, finish]],
    ]
    for reads in ways:
        *others, made, end = events_of(*reads)
        assert (others, end) == ([usage], finish)
        assert isinstance(made, ToolCallDelta)
    for thoughts in (VIEW, ""):  # a call that came as such is the only one
        given: list[StreamEvent | Exception] = [ThinkingDelta(thoughts), call]
        assert events_of([*given, finish], []) == [*given, finish]
    assert events_of([TextDelta(words), usage, TextDelta("so.")], [finish]) == [
        *(TextDelta(words), usage, TextDelta("so."), finish)
    ]


def test_text_that_was_held_back_is_given_wherever_the_answer_breaks() -> None:
    held, broken = TextDelta(VIEW[:20]), UpstreamGarbled("broken")
    ways: list[list[list[StreamEvent | Exception]]] = [
        [[held, broken], []],
        [[held], [broken]],
        [[], [held, broken]],
        [[held], []],
    ]
    for reads in ways:
        assert events_of(*reads) == [held]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("<tool_call>{", "<function=view><parameter=path>", "{", "\n```\n"),
        *(f"<tool_call>{VIEW}</tool_call>x", f"{VIEW}\n"),
    ],
)
def test_text_full_of_marks_takes_linear_time(piece: str) -> None:
    def run(size: int) -> None:
        text = piece * (size // len(piece))
        assert read(*(text[n : n + 2000] for n in range(0, len(text), 2000)))[1] == []

    check_linear(run, 12_000)


# --- what the assembler makes of them ---


def assemble(*deltas: ToolCallDelta) -> list[tuple[str, Any]]:
    tools = [ToolDefinition(name, "", schema) for name, schema in TOOLS.items()]
    numbers = itertools.count()
    stage = ToolCallAssembler(tools, new_id=lambda: f"id{next(numbers)}")
    events = [event for delta in deltas for event in stage.feed(delta)]
    events += stage.feed(Finish(FinishReason.TOOL_CALLS))
    return [
        (event.name, json.loads(event.arguments))
        for event in events
        if isinstance(event, ToolCall)
    ]


def test_a_call_that_came_as_such_and_as_text_is_made_once() -> None:
    path = '{"path": "README.md"}'
    given = ToolCallDelta(0, "c1", "view", path)
    printed = ToolCallDelta(1000, "", "view", '{ "path":"README.md" }', is_printed=True)
    other = ToolCallDelta(1001, "", "view", '{"path": "b.py"}', is_printed=True)
    call = ("view", {"path": "README.md"})
    assert assemble(given, printed) == [call]
    assert assemble(printed) == [call]
    assert assemble(given, printed, other) == [call, ("view", {"path": "b.py"})]


def test_names_in_wrappings_are_those_of_the_only_tool_that_fits() -> None:
    path = '{"path": "a"}'
    names = {
        **dict.fromkeys(
            [
                *("functions.view", "View", "default_api.view", "view", "tools.view"),
                *("view<|channel|>commentary", "functions.view:0", "VIEW"),
            ],
            "view",
        ),
        "save_file": "save-file",
        "functions.SaveFile": "save-file",
        "functions.open": "functions.open",
        "viewer": "viewer",  # none fits
    }
    arguments = {"save-file": '{"path": "a", "content": "b"}'}
    found = {
        name: [call for call, _ in assemble(ToolCallDelta(0, "c", name, given))]
        for name, wanted in names.items()
        for given in [arguments.get(wanted, path)]
    }
    assert found == {name: [wanted] for name, wanted in names.items()}
