"""Whatever is compacted: legal, smaller, nothing of the newest lost, and for good."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ContextPart,
    ImagePart,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.upstream.window.compaction import (
    LEVELS,
    LOW_WATER,
    NO_IMAGE,
    Compaction,
    CompactionPlan,
    Compactions,
    cut_points,
    digests,
    keep_ends_of_results,
    less_context,
    newest_from,
    outline_results,
    plan,
    shorter_system,
    task_of,
)
from byok.upstream.window.estimate import IMAGE_WEIGHT, weigh
from byok.upstream.window.transcript import summary_of
from tests.fakes.clock import check_linear
from tests.fakes.histories import (
    PNG,
    agent,
    histories,
    results,
    rules_broken_by,
    step,
    user,
)

ROOMS = st.sampled_from([300, 1000, 3000, 8000, 20_000, 60_000])

SUMMARY = "Summary. "


def total(messages: tuple[Message, ...]) -> int:
    return sum(map(weigh, messages))


def outcome(made: CompactionPlan, body: tuple[Message, ...]) -> tuple[Message, ...]:
    """Carry a plan out, with the longest summary that it allows."""
    summary = (SUMMARY * made.longest)[: made.longest]
    return (*made.replacement(summary, made.length), *body[made.length :])


def planned(body: tuple[Message, ...], room: int, *user_texts: str) -> CompactionPlan:
    made = plan(body, room, weigh, user_texts)
    assert made is not None
    return made


def newest(body: tuple[Message, ...], room: int) -> int:
    return newest_from(body, cut_points(body), [weigh(m) for m in body], room)


def test_a_message_that_would_get_no_lighter_stays_as_it_is() -> None:
    body = agent(12, 3000)
    made = plan(body, 200, lambda _: 10, ())
    assert made is not None
    assert [m for m in made.replacement("x", made.length)[1:] if m not in body] == []
    assert made.length == 17


# --- whatever the conversation ---
@settings(max_examples=100)
@given(histories(), ROOMS)
def test_compaction_is_legal_and_lighter(body: tuple[Message, ...], room: int) -> None:
    assert rules_broken_by(body) == []
    if made := plan(body, room, weigh):
        now = outcome(made, body)
        assert rules_broken_by(now) == []
        assert total(now) <= made.weight + 40
        if total(body) > room:
            assert total(now) < total(body)


@settings(max_examples=100)
@given(histories(), ROOMS)
def test_compaction_touches_new_messages_last(
    body: tuple[Message, ...], room: int
) -> None:
    if made := plan(body, room, weigh):
        start = newest(body, room)
        assert made.cut <= start
        assert made.messages[made.length :] == body[made.length :]
        if made.messages[start:] != body[start:]:
            untouched = (*made.replacement("", start), *body[start:])
            summary = made.longest if made.cut else 0
            assert total(untouched) + summary > room
        elif made.length < len(body):
            assert body[made.length].role is Role.ASSISTANT


@settings(max_examples=100)
@given(histories(), ROOMS)
def test_compaction_says_of_each_shortened_result_that_it_is_one(
    body: tuple[Message, ...], room: int
) -> None:
    if made := plan(body, room, weigh):
        before = results(body)
        for call_id, content in results(outcome(made, body)).items():
            if content != before[call_id]:
                assert "left out" in content
                assert len(content.encode()) < len(before[call_id].encode())


@settings(max_examples=100)
@given(histories(), histories(), ROOMS, st.lists(ROOMS, max_size=3))
def test_compaction_keeps_the_prefix_of_later_turns(
    body: tuple[Message, ...],
    more: tuple[Message, ...],
    room: int,
    rooms: list[int],
) -> None:
    """Also where it is compacted again and again, each time on top of the last."""
    kept = Compactions()
    for next_room in [room, *rooms]:
        known = kept.find("m", digests(body, kept.lengths("m"))) or Compaction(0, ())
        now = known.apply(body)
        if not (made := plan(now, next_room, weigh)):
            continue
        further = known.extend(made, SUMMARY)
        (digest,) = digests(body, {further.length})
        kept.store("m", digest, further)
        answer = Message(Role.ASSISTANT, (TextPart("Yes."),))
        longer = (*body, answer, *more)
        found = kept.find("m", digests(longer, kept.lengths("m")))
        assert found is not None
        sent = found.apply(body)
        assert sent == made.replacement(SUMMARY, len(now)), "as it was planned"
        assert found.apply(longer)[: len(sent)] == sent
        assert rules_broken_by(sent) == rules_broken_by(found.apply(longer)) == []


@settings(max_examples=100)
@given(histories(), ROOMS)
def test_compaction_always_keeps_the_last_question(
    body: tuple[Message, ...], room: int
) -> None:
    """The one that the newest messages work on; only what is huge is cut."""
    if made := plan(body, room, weigh):
        asked = [
            n
            for n, m in enumerate(body[: made.cut + 1] if made.cut else body)
            if m.role is Role.USER and (n == 0 or body[n - 1].role is not Role.TOOL)
        ]
        first = body[asked[-1]].parts[0]
        assert isinstance(first, TextPart)
        texts = [
            p.text
            for m in outcome(made, body)
            for p in m.parts
            if isinstance(p, TextPart)
        ]
        mark = first.text.partition(" ")[0]
        assert any(text.startswith(mark) for text in texts)


# --- in which order ---
def test_compaction_shortens_the_oldest_results_first() -> None:
    body = agent(20, 5000)
    room = 130_000
    made = planned(body, room)
    assert made.cut == 0
    sizes = [len(content) for content in results(made.messages).values()]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 5000
    assert sizes[0] > 1900, "the first level was enough"
    assert room * LOW_WATER - 3500 < made.weight <= room * LOW_WATER
    assert body[made.length].role is Role.ASSISTANT
    assert made.length == 1 + 2 * sum(size < 5000 for size in sizes)


def test_compaction_replaces_whole_steps_by_a_summary() -> None:
    body = agent(200, 5000, task="Port it, and never touch vendor/.")
    room = 40_000
    made = planned(body, room)
    now = outcome(made, body)
    assert summary_of(now[0])
    assert now[0].parts[1:] == body[0].parts
    assert total(now) <= room * LOW_WATER
    assert total(now) > room * LOW_WATER - 1000, "no more than needed"
    assert now[-2:] == body[-2:]


def test_compaction_drops_old_images_before_any_step() -> None:
    shot = Message(Role.USER, (TextPart("Image 1:"), PNG))
    steps = [m for n in range(9) for m in (*step(n, "ok"), shot)]
    made = planned((user("Click."), *steps), 40_000)
    assert made.cut == 0
    pictures = [n for n, m in enumerate(made.messages) if PNG in m.parts]
    assert 1 <= len(pictures) <= 5
    assert pictures[-1] == len(made.messages) - 1


# --- hard cases ---
@pytest.mark.parametrize("steps", [1, 2, 30])
def test_compaction_cuts_one_last_result_larger_than_the_window(steps: int) -> None:
    head = agent(steps - 1, 3000)
    body = (*head, *step(99, "begins " + "x" * 500_000 + " reference id: 77"))
    room = 40_000
    made = planned(body, room)
    now = outcome(made, body)
    assert total(now) <= room * LOW_WATER + 100
    last = results(now)["call_99"]
    assert last.startswith("begins ")
    assert last.endswith(" reference id: 77")
    assert len(last) > room * 0.3, "it is what the model waits for"
    assert made.length == len(body)


def test_compaction_cuts_only_the_large_of_several_new_results() -> None:
    calls = tuple(ToolCall(f"c{n}", "view", "{}") for n in range(3))
    sizes = (100, 90_000, 50_000)
    found = [
        Message(Role.TOOL, (ToolResult(c.id, c.name, "é" * n),))
        for c, n in zip(calls, sizes, strict=True)
    ]
    body = (user("Look."), Message(Role.ASSISTANT, calls), *found)
    made = planned(body, 40_000)
    small, large, other = results(outcome(made, body)).values()
    assert len(small) == 100
    assert len(large) == pytest.approx(len(other), abs=5)
    assert made.weight <= 24_100


@pytest.mark.parametrize(("room", "pictures"), [(40_000, 2), (9_000, 0)])
def test_compaction_keeps_images_of_new_results_where_there_is_room(
    room: int, pictures: int
) -> None:
    call = ToolCall("c", "view", "{}")
    content = "begins" + "x" * 90_000 + "ends"
    found = ToolResult("c", "view", content, images=(PNG, PNG))
    body = (
        user("Look."),
        Message(Role.ASSISTANT, (call,)),
        Message(Role.TOOL, (found,)),
    )
    made = planned(body, room)
    assert made.weight <= room * LOW_WATER + 100
    [result] = made.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert len(result.images) == pictures
    assert result.content.startswith("begins")


def interrupted(number: int, words: str) -> tuple[Message, ...]:
    """A step whose result the user's words follow, beside context of the editor."""
    context = TextPart("<context>Open: src/1.rs</context>")
    said = Message(Role.USER, (context, TextPart(words)))
    return (*step(number, "x" * 900), said)


def test_compaction_keeps_all_that_the_user_wrote_between_results() -> None:
    """Also in a second cut on top of the first, and not the editor's context."""
    said = [f"And keep test {n}.\nNo, really." for n in range(6)]
    body = agent(30, 900)
    for n, words in enumerate(said):
        body = (*body, *interrupted(100 + n, words), *agent(30, 900)[1:])
    for more in range(3):
        body = (*body, *agent(60, 900)[1:])
        made = planned(body, 15_000, "Port it.", *said)
        assert made.cut, more
        body = outcome(made, body)
        texts = [p.text for p in body[0].parts if isinstance(p, TextPart)]
        assert texts[1:] == ["Port it.", *said]


def test_compaction_bounds_what_is_kept_of_very_many_words() -> None:
    said = [f"{n}: {'and this, ' * 30}" for n in range(300)]
    body = agent(5, 900)
    for n, words in enumerate(said):
        body = (*body, *interrupted(100 + n, words))
    made = planned((*body, *agent(60, 900)[1:]), 15_000, *said)
    assert made.weight <= 15_000
    texts = [p.text for p in made.task if isinstance(p, TextPart)]
    assert texts[0] == "Port it."
    assert texts[-1].startswith("299: ")


def test_compaction_cannot_shorten_a_single_question() -> None:
    assert plan((user("x" * 9000),), 1000, weigh) is None


# Where a conversation may be cut, and what of the user outlives it
DONE = Message(Role.ASSISTANT, (TextPart("Done."),))

WITH_RESULTS = Message(
    Role.USER, (TextPart("Image 1:"), PNG, TextPart("Faster, please"))
)


def texts(parts: tuple[Part, ...]) -> list[str]:
    return [p.text for p in parts if isinstance(p, TextPart)]


def test_a_task_keeps_its_images_where_there_is_room() -> None:
    asked = Message(Role.USER, (TextPart("Like this:"), PNG))
    assert task_of((asked, DONE), (), IMAGE_WEIGHT) == asked.parts
    bare = task_of((asked, DONE), (), IMAGE_WEIGHT - 1)
    assert bare == (TextPart("Like this:"), NO_IMAGE)


def test_a_task_includes_user_messages_that_came_with_results() -> None:
    dropped = (user("Port it."), *step(1, "r"), WITH_RESULTS, *step(2, "r"))
    found = texts(task_of(dropped, ["Faster, please"], 5000))
    assert found == ["Port it.", "Faster, please"]
    assert texts(task_of(dropped, ["Something else"], 5000)) == ["Port it."]


def test_a_cut_does_not_scan_endless_user_messages_for_each_result() -> None:
    def find(size: int) -> None:
        said = [m for n in range(size) for m in (*step(n, "r"), user(f"Not {n}."))]
        task_of((user("Port it."), *said), ["z" * 20_000 * size], 5000)

    check_linear(find, 400)


def test_a_huge_task_keeps_its_small_parts_whole() -> None:
    words = "Explain this file."
    [file, said] = texts(task_of((user("f" * 90_000, words), DONE), [words], 5000))
    assert said == words
    assert len(file) < 5000
    assert file.startswith("fff")
    assert file.endswith("fff")


# Only what is old is shortened: results and pictures
def call(**arguments: object) -> ToolCall:
    return ToolCall("c", "view", json.dumps(arguments))


def outlined(content: str, given: ToolCall | None = None, **fields: object) -> str:
    """Return the line that replaces a result."""
    result = ToolResult("c", "view", content, **fields)  # type: ignore[arg-type]
    calls = {"c": given} if given else {}
    [part] = outline_results(Message(Role.TOOL, (result,)), calls).parts
    assert isinstance(part, ToolResult)
    assert (part.call_id, part.name, part.is_error) == ("c", "view", result.is_error)
    return part.content


_LINES = "x = 1\n" * 120

_RAN = f"<return-code>\n2\n</return-code>\n{_LINES}"


def test_a_line_tells_the_tool_its_argument_and_how_it_ended() -> None:
    rows = [
        (outlined(_LINES, call(path="a/b.rs")), "[view a/b.rs: ok, 120 lines; "),
        (
            outlined(_LINES, call(command="str_replace", path="a")),
            "[view a: ok, 120 lines; ",
        ),
        (outlined("x" * 900, call(path="a")), "[view a: ok, 1 line; "),
        (outlined(_RAN, call(command="make\n test")), "[view make test: exit code 2, "),
        (outlined(_RAN, call(path="a")), "[view a: ok, 123 lines; "),
        (outlined(_RAN.replace("2", "0"), call(command="make")), "[view make: ok, "),
        (outlined(_LINES, call(path="a" * 900)), "[view " + "a" * 100 + "…: ok"),
        (outlined(_LINES, call(strange="thing", n=1)), "[view thing: ok, "),
        (outlined(_LINES, call(n=1)), "[view: ok, "),
        (outlined(_LINES, ToolCall("c", "view", "{broken")), "[view: ok, "),
        (outlined(_LINES), "[view: ok, "),
        (
            outlined(f"\n No such  file\n{_LINES}", call(path="a"), is_error=True),
            "[view a: error: No such file; ",
        ),
        (
            outlined(f"{_LINES}\nReference ID: 77", call(path="a")),
            "[view a: ok, 122 lines; Reference ID: 77; ",
        ),
    ]
    assert [line for line, begins in rows if not line.startswith(begins)] == []
    assert [line for line, _ in rows if "\n" in line or len(line) > 200] == []


def test_a_line_counts_the_lines_that_were_left_out_before() -> None:
    whole = Message(Role.TOOL, (ToolResult("c", "view", _LINES * 9),))
    cut = keep_ends_of_results(whole, {})
    assert cut != whole
    assert outline_results(cut, {}) == outline_results(whole, {})


def test_shortening_twice_is_shortening_once() -> None:
    """Else every compaction would change the beginning of the prompt again."""
    for content in (_LINES * 9, _RAN * 9, "x" * 9000, "short"):
        for is_error in (False, True):
            given = ToolResult("c", "view", content, is_error=is_error)
            once = Message(Role.TOOL, (given,))
            for shorten in LEVELS:
                once = shorten(once, {"c": call(path="a" * 90)})
                assert shorten(once, {"c": call(path="a" * 90)}) is once


def test_old_images_of_results_are_replaced_by_a_line() -> None:
    shown = ToolResult("c", "view", "Opened.", is_error=True, images=(PNG, PNG))
    content = f"Opened.\n{NO_IMAGE.text}"
    cut = LEVELS[-1](Message(Role.TOOL, (shown,)), {})
    assert cut.parts == (ToolResult("c", "view", content, is_error=True),)


@pytest.mark.parametrize(
    "message",
    [
        user("words " * 5000),
        Message(Role.ASSISTANT, (TextPart("x" * 5000),)),
        Message(
            Role.ASSISTANT, (ToolCall("c", "save", '{"a": "' + "x" * 9000 + '"}'),)
        ),
        Message(Role.TOOL, (ToolResult("c", "view", "short"),)),
        Message(Role.SYSTEM, (TextPart("x" * 5000),)),
    ],
    ids=["words", "an answer", "a call", "a short result", "the system message"],
)
def test_shortening_keeps_other_parts_the_same_object(message: Message) -> None:
    assert all(shorten(message, {}) is message for shorten in LEVELS)


QUESTION = TextPart("Why?")


def asked(code: str) -> tuple[Message, ...]:
    parts = (ContextPart(code), QUESTION)
    return (user("Hi"), Message(Role.ASSISTANT, (TextPart("Yes?"),)),
            Message(Role.USER, parts))  # fmt: skip


@given(st.lists(st.text("aü🌍 ", max_size=60), max_size=200), st.integers(0, 9000))
def test_added_code_is_shortened_at_its_end_by_whole_lines(
    lines: list[str], excess: int
) -> None:
    code = "".join(line + "\n" for line in lines)
    *before, last = less_context(asked(code), excess)
    assert tuple(before) == asked(code)[:-1]
    assert last.parts[-1] == QUESTION
    for part in last.parts[:-1]:
        assert isinstance(part, ContextPart)
        assert f"{code}".startswith(f"{part.text}\n")
        assert len(code.encode()) - len(part.text.encode()) >= excess
        assert len(part.text.encode()) >= 1000


def test_system_messages_are_cut_in_their_middles() -> None:
    picture = ImagePart("image/png", "aGk=")
    long = Message(Role.SYSTEM, (TextPart("a" + "x" * 9000 + "z"), picture))
    short = Message(Role.SYSTEM, (TextPart("Be kind."),))
    cut, same = shorter_system((long, short), 3000)
    assert same == short and cut.parts[1] is picture
    text = cut.parts[0]
    assert isinstance(text, TextPart)
    assert text.text.startswith("ax") and text.text.endswith("xz")
    assert 1500 < len(text.text) < 2100  # a power of two
    assert shorter_system((long, short), 2500) == (cut, same)
    assert shorter_system((long,), 100_000) == (long,)


def test_without_added_code_nothing_is_shortened() -> None:
    plain = (user("Hi"),)
    assert less_context(plain, 10) == plain
    assert less_context((), 10) == ()
    assert less_context(asked("x\n" * 9000), 10**6)[-1].parts == (QUESTION,)


BODY = agent(10, 50)

FRONT = (user("Summary."),)


def keep(
    kept: Compactions, body: Sequence[Message], made: Compaction, model: str = "m"
) -> None:
    (digest,) = digests(body, {made.length})
    kept.store(model, digest, made)


def find(
    kept: Compactions, body: Sequence[Message], model: str = "m"
) -> Compaction | None:
    return kept.find(model, digests(body, kept.lengths(model)))


def keeping(*lengths: int, model: str = "m") -> Compactions:
    kept = Compactions()
    for length in lengths:
        keep(kept, BODY, Compaction(length, FRONT), model)
    return kept


def test_compaction_memory_finds_the_longest_match_of_a_conversation() -> None:
    kept = keeping(5, 9, 3)
    found = find(kept, (*BODY, *step(77, "more")))
    assert found == Compaction(9, FRONT)
    assert found.apply(BODY) == (*FRONT, *BODY[9:])
    assert find(kept, BODY[:7]) == Compaction(5, FRONT)
    assert find(kept, BODY[:9]) == Compaction(9, FRONT)
    assert find(kept, BODY[:2]) is None


@given(histories(), st.data())
def test_compaction_memory_does_not_match_an_edited_history(
    body: tuple[Message, ...], data: st.DataObject
) -> None:
    kept = Compactions()
    keep(kept, body, Compaction(len(body), FRONT))
    assert find(kept, body) is not None
    place = data.draw(st.integers(0, len(body) - 1))
    message = body[place]
    edited = replace(message, parts=(*message.parts[:-1], TextPart("edited")))
    assert find(kept, (*body[:place], edited, *body[place + 1 :])) is None
    assert find(kept, body[:-1]) is None


ONE = ProviderData(Origin("d", "u", "m"), {"s": "1"})

PAIRS: list[tuple[tuple[Part, ...], tuple[Part, ...]]] = [
    ((TextPart("ab"),), (TextPart("a"), TextPart("b"))),
    ((TextPart("a"),), (ThinkingPart("a"),)),
    ((ThinkingPart("", ONE),), (ThinkingPart("", replace(ONE, data={"s": "2"})),)),
    ((ToolCall("a", "b", "c"),), (ToolResult("a", "b", "c"),)),
    ((ToolResult("a", "b", "c"),), (ToolResult("a", "b", "c", is_error=True),)),
    ((ToolResult("a", "b", "c"),), (ToolResult("a", "b", "c", images=(PNG,)),)),
    ((ToolCall("a", "bc", "{}"),), (ToolCall("ab", "c", "{}"),)),
    ((TextPart("\ud800"),), (TextPart("\udc00"),)),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_conversation_digest_differs_with_any_part(
    one: tuple[Part, ...], other: tuple[Part, ...]
) -> None:
    kept = Compactions()
    keep(kept, [Message(Role.USER, one)], Compaction(1, FRONT))
    assert find(kept, [Message(Role.USER, one)])
    assert find(kept, [Message(Role.ASSISTANT, one)]) is None
    assert find(kept, [Message(Role.USER, other)]) is None


def large(length: int, size: int = 1000) -> Compaction:
    return Compaction(length, (user("s" * size),))


def test_compaction_memory_evicts_the_least_recently_used() -> None:
    kept = Compactions(budget=5000)
    for length in (3, 5, 7):
        keep(kept, BODY, large(length))
    assert find(kept, BODY[:3])  # now 5 is the oldest
    keep(kept, BODY, large(9))
    assert find(kept, BODY[:5]) == large(3)
    assert find(kept, BODY[:7]) == large(7)


def test_compaction_memory_is_kept_per_model() -> None:
    kept = keeping(5)
    assert kept.knows("m")
    assert not kept.knows("n")
    assert find(kept, BODY, "n") is None
