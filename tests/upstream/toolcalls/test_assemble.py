"""Fragments of tool calls: whole calls after Finish, or a sentence why not."""

import itertools
import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    RepairMode,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
)
from byok.core.stage import drain
from byok.upstream.toolcalls.assemble import (
    MAX_ARGUMENT_CHARS,
    MAX_CALLS,
    BrokenCall,
    RepetitionFilter,
    ToolCallAssembler,
    answer_parts,
    correction_request,
)
from byok.upstream.toolcalls.repair import Repair
from tests.fakes.clock import check_linear
from tests.fakes.schemas import OBJECTS
from tests.fakes.values import CUTS, cut

Delta = ToolCallDelta

DONE = Finish(FinishReason.TOOL_CALLS)

VIEW = ToolDefinition(
    "view",
    "Show a file.",
    {
        "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["path"],
    },
)

REMEMBER = ToolDefinition(
    "remember",
    "",
    {"properties": {"memory": {"type": "string"}}, "required": ["memory"]},
)


def assembler(**options: Any) -> ToolCallAssembler:
    numbers = itertools.count(1)
    options = {"new_id": lambda: f"new{next(numbers)}", **options}
    return ToolCallAssembler([VIEW, REMEMBER], **options)


def run(events: Iterable[StreamEvent], **options: Any) -> list[StreamEvent]:
    return list(drain(assembler(**options), events))


def calls(*deltas: Delta, **options: Any) -> list[tuple[str, str, str]]:
    """Run a finished turn and give its calls; nothing else may come of it."""
    *found, finish = run([*deltas, DONE], **options)
    assert finish == DONE
    assert all(isinstance(call, ToolCall) for call in found)
    return [(c.id, c.name, c.arguments) for c in found if isinstance(c, ToolCall)]


A = '{"a":1}'

B = '{"b":2}'


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        # a blank repetition without id
        ([Delta(0, "", "f", A), Delta(0, "", "f", " ")], [("new1", "f", A + " ")]),
        # a whole call sent twice
        ([Delta(0, "x", "f", A), Delta(0, "x", "f", A)], [("x", "f", A)]),
        pytest.param(
            [Delta(0, "x", "f", A), Delta(0, "y", "f", A)],
            [("x", "f", A), ("y", "f", A)],
            id="all at index 0, as Gemini sends it",
        ),
        pytest.param(
            [Delta(0, "x", "f", A), Delta(0, "", "f", B)],
            [("x", "f", A), ("new1", "f", B)],
            id="all at index 0, the second without id",
        ),
        pytest.param(
            [Delta(0, "x", "f", A), Delta(1, "x", "f", A)],
            [("x", "f", A), ("new1", "f", A)],
            id="one id for two calls",
        ),
        # the id comes late
        ([Delta(0, "", "f", '{"a"'), Delta(0, "x", "", ":1}")], [("x", "f", A)]),
        # another id in every fragment
        ([Delta(0, "x", "f", '{"a"'), Delta(0, "y", "", ":1}")], [("x", "f", A)]),
        # the name comes late
        ([Delta(0, "x", "", ""), Delta(0, "", "f", A)], [("x", "f", A)]),
        # an unknown id without name goes on with the last call
        ([Delta(None, "x", "f", '{"a"'), Delta(None, "z", "", ":1}")], [("x", "f", A)]),
        pytest.param(
            [Delta(0, "x", "f", '{"a":"\ud83d'), Delta(0, "", "", '\ude00"}')],
            [("x", "f", '{"a":"😀"}')],
            id="an emoji in two fragments",
        ),
        pytest.param(
            [Delta(0, "x", "vi"), Delta(0, "", "ew"), Delta(0, "", "", A)],
            [("x", "view", A)],
            id="an offered name in pieces",
        ),
        pytest.param(
            [Delta(0, "x", "vi"), Delta(0, "", "a"), Delta(0, "", "", A)],
            [("x", "vi", "{}"), ("new1", "a", A)],
            id="names that make no offered one",
        ),
        pytest.param(
            [Delta(0, "x", "vi", A), Delta(0, "", "ew", B)],
            [("x", "vi", A), ("new1", "ew", B)],
            id="a name after arguments is another call's",
        ),
        pytest.param(
            [Delta(0, "", "", ""), Delta(1, "x", "f", A), Delta(2, "y", "", " ")],
            [("x", "f", A)],
            id="nothing beside a call",
        ),
    ],
)
def test_tool_call_fragments_find_their_call(
    deltas: list[Delta], expected: list[tuple[str, str, str]]
) -> None:
    assert calls(*deltas) == expected


# How fragments say whose they are: (id in the first, in the rest, index, index, name)
FORMS = {
    "id and index always": (True, True, True, True),
    "id first, index always": (True, False, True, True),
    "id always, index first": (True, True, True, False),
    "only index": (False, False, True, True),
    "only id": (True, True, False, False),
}

LOOSE_FORMS = {
    "id and index in the first": (True, False, True, False),
    "id in the first": (True, False, False, False),
    "nothing but the name": (False, False, False, False),
}


def fragments(
    call: ToolCall, number: int, places: list[int], form: tuple[bool, ...], named: bool
) -> list[Delta]:
    """Cut one call the way an upstream of that form does."""
    out: list[Delta] = []
    for piece in cut(call.arguments, places):
        first = not out
        out.append(
            Delta(
                number if form[2 if first else 3] else None,
                call.id if form[0 if first else 1] else "",
                call.name if first or named else "",
                piece,
            )
        )
    return out


TURNS = st.lists(
    st.tuples(st.sampled_from(["f", "g"]), OBJECTS.map(json.dumps), CUTS),
    min_size=1,
    max_size=4,
)


def expected_calls(turn: list[Any], form: tuple[bool, ...]) -> list[ToolCall]:
    return [
        ToolCall(f"id{n}" if form[0] else f"new{n}", name, text)
        for n, (name, text, _) in enumerate(turn, 1)
    ]


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@settings(max_examples=30)
@given(turn=TURNS, named=st.booleans(), order=st.randoms(use_true_random=False))
@example([("f", "{}", [2, 2])], True, Random(0))
def test_interleaved_tool_calls_are_whole_whatever_the_slicing(
    form: tuple[bool, ...], turn: list[Any], named: bool, order: Any
) -> None:
    wanted = expected_calls(turn, form)
    queues = [
        fragments(call, number, places, form, named)
        for number, (call, (*_, places)) in enumerate(zip(wanted, turn, strict=True))
    ]
    # Calls begin in their order; after that, fragments come in any.
    deltas = [queue.pop(0) for queue in queues]
    rest = [number for number, queue in enumerate(queues) for _ in queue]
    order.shuffle(rest)
    deltas += [queues[number].pop(0) for number in rest]
    assert run([*deltas, DONE]) == [*wanted, DONE]


@pytest.mark.parametrize(
    "form", [*FORMS.values(), *LOOSE_FORMS.values()], ids=[*FORMS, *LOOSE_FORMS]
)
@settings(max_examples=25)
@given(turn=TURNS)
def test_consecutive_tool_calls_are_whole_whatever_the_slicing(
    form: tuple[bool, ...], turn: list[Any]
) -> None:
    wanted = expected_calls(turn, form)
    deltas = [
        delta
        for number, (call, (*_, places)) in enumerate(zip(wanted, turn, strict=True))
        for delta in fragments(call, number, places, form, named=False)
    ]
    assert run([*deltas, DONE]) == [*wanted, DONE]


DELTAS = st.builds(
    Delta,
    st.none() | st.integers(0, 2),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", "f", "view"]),
    st.sampled_from(["", "{}", A, '{"a"', ":1}", "{", "}", '"', "null", "\ud83d"]),
)


@settings(max_examples=150)
@given(st.lists(DELTAS, max_size=8), st.sampled_from(FinishReason))
@pytest.mark.case("F04")
def test_tool_calls_wait_for_finish_and_are_dropped_after_finish_length(
    deltas: list[Delta], reason: FinishReason
) -> None:
    stage = assembler()
    assert [event for delta in deltas for event in stage.feed(delta)] == []
    *out, finish = stage.feed(Finish(reason))
    assert finish == Finish(reason)
    assert bool(out) == any(delta.name or delta.arguments for delta in deltas)
    for event in out:
        if isinstance(event, ToolCall):
            assert reason is not FinishReason.LENGTH
            assert isinstance(json.loads(event.arguments), dict)
        else:
            assert isinstance(event, Notice)
    ids = [event.id for event in out if isinstance(event, ToolCall)]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert list(stage.flush()) == []


def notice(events: list[StreamEvent]) -> Notice:
    """Give the one notice; no call may be among the events."""
    assert not any(isinstance(event, ToolCall) for event in events)
    (found,) = [event for event in events if isinstance(event, Notice)]
    return found


@pytest.mark.parametrize(
    ("events", "names"),
    [
        pytest.param(
            [Delta(0, "x", "f", A), Delta(1, "y", "g", B), Finish(FinishReason.LENGTH)],
            ["call of g"],
            id="the output limit, though all seem whole",
        ),
        pytest.param([Delta(0, "x", "f", '{"a":1'), DONE], ["f"], id="a brace missing"),
        pytest.param([Delta(0, "x", "", A), DONE], ["a tool"], id="no name"),
        # far too long
        ([Delta(0, "x", "f", '"' + "x" * MAX_ARGUMENT_CHARS + '"'), DONE], ["f"]),
    ],
)
@pytest.mark.case("F04")
def test_an_incomplete_tool_call_becomes_a_notice(
    events: list[StreamEvent], names: list[str]
) -> None:
    told = notice(run(events))
    assert told.code == "tool_call_incomplete"
    assert ", ".join(names) in told.text


@pytest.mark.parametrize("mode", RepairMode)
@pytest.mark.parametrize("raw", [r'{"a": "\d"}', "[1]", "ls -l", '{"a": 1}{"a": 2}'])
def test_a_complete_tool_call_with_invalid_json_is_not_called_incomplete(
    raw: str, mode: RepairMode
) -> None:
    stage = assembler(mode=mode)
    events: list[StreamEvent] = [Delta(0, "x", "view", raw), DONE]
    told = notice(list(drain(stage, events)))
    assert told.code == "tool_call_invalid"
    assert "view" in told.text
    assert "not valid JSON" in told.text
    assert [one.call for one in stage.broken] == [ToolCall("x", "view", raw)]
    assert stage.others == 0


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([Delta(0, "x", "view", A), DONE], []),
        ([Delta(0, "x", "view", "[1]"), Delta(1, "y", "g", A), DONE], ["view"]),
        ([Delta(0, "x", "view", A), Finish(FinishReason.LENGTH)], ["view"]),
    ],
    ids=["whole", "no JSON object", "output limit"],
)
def test_a_tool_call_that_is_not_passed_on_is_told(
    events: list[StreamEvent], names: list[str]
) -> None:
    told: list[str] = []
    list(drain(assembler(on_drop=told.append), events))
    assert told == names


@pytest.mark.parametrize("finish", [DONE, Finish(FinishReason.LENGTH)])
def test_empty_tool_calls_beside_an_answer_raise_no_notice(finish: Finish) -> None:
    empty = [Delta(0, "", "", ""), Delta(1, "call_1", "", ""), Delta(None, "", "", " ")]
    events: list[StreamEvent] = [TextDelta("Hello"), *empty, finish]
    assert run(events) == [TextDelta("Hello"), finish]
    assert run(empty) == []


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("b"),
        ThinkingDelta("b"),
        ThinkingDelta("", ProviderData(Origin("d", "u", "m"), {"a": 1})),
    ],
)
def test_a_tool_call_position_is_sent_before_what_follows_it(
    event: StreamEvent,
) -> None:
    stage = assembler(taken=["x"])
    assert list(stage.feed(Delta(0, "x", "f", A))) == []
    assert list(stage.feed(event)) == [ToolCallPlace("new1"), event]
    assert list(stage.feed(event)) == [event]
    assert list(stage.feed(DONE)) == [ToolCall("new1", "f", A), DONE]


@pytest.mark.parametrize("event", [TextDelta(" \n"), ThinkingDelta("")])
def test_white_space_after_a_tool_call_is_dropped(event: StreamEvent) -> None:
    assert run([Delta(0, "x", "f", A), event, DONE]) == [
        event,
        ToolCall("x", "f", A),
        DONE,
    ]


STEPS = st.lists(st.sampled_from(["text", "thought", "call", "more"]), max_size=12)


@given(STEPS)
def test_tool_calls_and_text_keep_their_order(steps: list[str]) -> None:
    """Put each call into its place; what comes out is in the order of what went in."""
    events: list[StreamEvent] = []
    expected: list[str] = []
    calls = 0
    for number, step in enumerate(steps):
        match step:
            case "text":
                events.append(TextDelta(f"t{number}"))
                expected.append(f"t{number}")
            case "thought":
                events.append(ThinkingDelta(f"h{number}"))
                expected.append(f"h{number}")
            case "call":
                calls += 1
                events.append(Delta(calls, f"c{calls}", "f", "{"))
                expected.append(f"c{calls}")
            case _:
                events += [Delta(calls, arguments=" ")] if calls else []
    events += [Delta(n + 1, arguments="}") for n in range(calls)]
    found: list[str] = []
    for event in run([*events, DONE]):
        match event:
            case TextDelta(text=text) | ThinkingDelta(text=text):
                found.append(text)
            case ToolCallPlace(call_id=call_id):
                found.append(call_id)
            case ToolCall(id=call_id) if call_id not in found:
                found.append(call_id)
    assert found == expected


def test_tool_call_ids_are_made_where_missing_or_taken() -> None:
    deltas = [Delta(0, "x", "f"), Delta(1, "", "f"), Delta(2, "y", "f")]
    assert [c[0] for c in calls(*deltas, taken=["x", "new1"])] == ["new2", "new3", "y"]


def test_a_call_is_hidden_until_its_place_or_its_end_is_passed_on() -> None:
    stage = assembler()
    assert not stage.has_hidden_call
    list(stage.feed(Delta(0, "x", "f", A)))
    assert stage.has_hidden_call
    list(stage.feed(TextDelta("b")))
    assert not stage.has_hidden_call


def test_calls_that_are_open_when_an_answer_breaks_off_are_named() -> None:
    stage = assembler()
    list(stage.feed(Delta(0, "x", "view", A[:-1])))
    [told] = stage.flush()
    assert isinstance(told, Notice) and "view" in told.text
    assert list(stage.flush()) == []


@pytest.mark.case("F08")
def test_provider_data_has_the_final_id_of_its_tool_call() -> None:
    signed = ProviderData(Origin("d", "u", "m"), {"signature": "CiQ=="})
    deltas = [Delta(0, "x", "f"), Delta(0, "x", "f", A, signed), Delta(1, "y", "g", B)]
    kept = ToolCall("new1", "f", A, signed)
    found = run([*deltas, DONE], taken=["x"])
    assert found == [kept, ToolCall("y", "g", B), DONE]


def test_tool_calls_per_turn_are_limited() -> None:
    deltas = [Delta(n, f"i{n}", "f") for n in range(MAX_CALLS + 2)]
    assert len(calls(*deltas[:MAX_CALLS])) == MAX_CALLS
    *found, told, finish = run([*deltas, DONE])
    assert len(found) == MAX_CALLS
    assert isinstance(told, Notice)
    assert told.code == "too_many_tool_calls"
    assert finish == DONE


def test_repair_modes_reach_tool_call_repair() -> None:
    cut_short = Delta(0, "x", "view", "{'line':5}")
    fill = calls(cut_short, mode=RepairMode.FILL)
    assert fill == [("x", "view", '{"line":5,"path":""}')]
    assert notice(run([cut_short, DONE], mode=RepairMode.OFF))


@pytest.mark.parametrize("mode", [RepairMode.LOSSLESS, RepairMode.FILL])
def test_a_memory_tool_call_gets_the_users_words(mode: RepairMode) -> None:
    ((_, _, text),) = calls(Delta(0, "x", "remember"), user_text="Tabs!", mode=mode)
    assert json.loads(text)["memory"].startswith("Tabs!\n")
    blank = Delta(0, "x", "remember", '{"memory": ""}')
    ((_, _, text),) = calls(blank, user_text="Tabs!", mode=mode)
    assert json.loads(text)["memory"].startswith("Tabs!\n")
    ((_, _, other),) = calls(Delta(0, "x", "view"), user_text="Tabs!")
    assert other == "{}"


def test_every_tool_call_repair_is_recorded() -> None:
    told: list[Repair] = []
    text = "{'path':'a','line':'5'}"
    fixed = '{"path":"a","line":5}'
    calls(Delta(0, "x", "view", text), Delta(1, "y", "f", A), on_repair=told.append)
    assert told == [
        Repair("view", text, fixed, "single quotes; line: type made integer"),
    ]


@pytest.mark.parametrize("piece", ["}", '{"a":1}'])
@pytest.mark.parametrize("fields", [{"index": 0, "name": "f"}, {"id": "x"}])
def test_tool_call_assembly_is_linear_in_the_number_of_fragments(
    piece: str, fields: dict[str, Any]
) -> None:
    delta = Delta(**fields, arguments=piece)
    check_linear(lambda size: run([*[delta] * size, DONE]), 10_000)


ASKED = Message(Role.USER, (TextPart("Search it."),))

GREP = ToolDefinition("grep", "", {"type": "object"})

CHAT = ChatRequest((ASKED,), (GREP,), own_words="Search it.")

RAW = r'{"regex": "class\s+\w+"}'

SIGNED = ProviderData(Origin("d", "u", "m"), {"sign": 1})

BROKEN = BrokenCall(ToolCall("c1", "grep", RAW), "an invalid escape", RAW.index("\\"))


def test_correction_returns_the_tool_call_without_arguments_and_its_error() -> None:
    chat = correction_request(CHAT, [TextPart("I look.")], [BROKEN])
    assert chat is not None
    asked, answer, result = chat.messages
    assert asked == ASKED
    parts = (TextPart("I look."), ToolCall("c1", "grep", "{}"))
    assert answer == Message(Role.ASSISTANT, parts)
    [told] = result.parts
    assert result.role is Role.TOOL
    assert isinstance(told, ToolResult)
    assert (told.call_id, told.name) == ("c1", "grep")
    assert told.is_error and told.content.startswith("ERROR: ")
    assert "an invalid escape" in told.content
    assert r"class\s+\w+" in told.content
    assert (chat.tools, chat.own_words) == (CHAT.tools, CHAT.own_words)


def test_correction_quotes_only_the_position_in_long_arguments() -> None:
    raw = json.dumps({"content": "x" * 5000})[:-1] + r", \d" + "y" * 5000
    broken = BrokenCall(ToolCall("c", "grep", raw), "no", raw.index("\\"))
    chat = correction_request(CHAT, [], [broken])
    assert chat is not None
    [result] = chat.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert len(result.content) < 600
    assert r"…xxx" in result.content
    assert r"\dyyy" in result.content


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        pytest.param(
            [ThinkingDelta("H"), ThinkingDelta("m."), "I ", "look."],
            [ThinkingPart("Hm."), TextPart("I look.")],
            id="joined",
        ),
        pytest.param(
            [ThinkingDelta("a"), ThinkingDelta("", SIGNED), ThinkingDelta("b")],
            [ThinkingPart("a", SIGNED), ThinkingPart("b")],
            id="provider data ends a block",
        ),
        ([ThinkingDelta("", SIGNED)], [ThinkingPart("", SIGNED)]),  # encrypted
        pytest.param([" \n", ThinkingDelta("")], [], id="blank"),
    ],
)
def test_correction_turns_deltas_into_the_blocks_of_a_message(
    pieces: list[str | ThinkingDelta], parts: list[Part]
) -> None:
    assert answer_parts(pieces) == parts


def test_calls_of_an_answer_stand_in_their_places_or_at_the_end() -> None:
    first, second = ToolCall("c1", "grep", "{}"), ToolCall("c2", "grep", "{}")
    places = ToolCallPlace("c1"), ToolCallPlace("dropped")
    thought = ThinkingDelta("Hm.")
    pieces: list[str | ThinkingDelta | ToolCallPlace]
    pieces = ["I look.", *places, thought, "Done."]
    assert answer_parts(pieces, [first, second]) == [
        TextPart("I look."),
        first,
        ThinkingPart("Hm."),
        TextPart("Done."),
        second,
    ]


@pytest.mark.parametrize("tools", [(), (ToolDefinition("view", "", {}),)])
def test_correction_does_not_mention_a_tool_that_was_not_offered(
    tools: tuple[ToolDefinition, ...],
) -> None:
    assert correction_request(ChatRequest((ASKED,), tools), [], [BROKEN]) is None
    assert correction_request(CHAT, [], []) is None


@pytest.mark.parametrize(
    ("said", "answer", "new"),
    [
        ("I look.", "Again:", "\n\nAgain:"),
        ("I look.\n", "Again:", "Again:"),
        ("I look.", "I look.", ""),
        ("I look.", "\n I look.\nSo:", "\nSo:"),
        ("I look.", "I lo", ""),
        ("I look.", "I love it.", "\n\nI love it."),
        (" \n", "So:", "So:"),
    ],
)
def test_a_repeated_text_is_not_shown_again(said: str, answer: str, new: str) -> None:
    unsaid = RepetitionFilter(said)
    assert "".join(map(unsaid.feed, answer)) == new
    assert RepetitionFilter(said).feed(answer) == new


@given(st.text("ab \n", max_size=6), st.text("ab \n", max_size=12), CUTS)
def test_a_repeated_text_is_recognised_however_the_answer_is_sliced(
    said: str, answer: str, places: list[int]
) -> None:
    unsaid = RepetitionFilter(said)
    assert "".join(map(unsaid.feed, cut(answer, places))) == RepetitionFilter(
        said
    ).feed(answer)
