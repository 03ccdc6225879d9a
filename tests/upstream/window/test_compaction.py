"""Whatever is compacted: legal, smaller, nothing of the newest lost, and for good."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import Message, Role, TextPart, ToolCall, ToolResult
from byok.upstream.window.compaction import (
    LOW_WATER,
    Compaction,
    CompactionPlan,
    Compactions,
    cut_points,
    digests,
    newest_from,
    plan,
)
from byok.upstream.window.estimate import weigh
from byok.upstream.window.transcript import summary_of
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
    return (*made.front(summary, made.length), *body[made.length :])


def planned(body: tuple[Message, ...], room: int, *user_texts: str) -> CompactionPlan:
    made = plan(body, room, weigh, user_texts)
    assert made is not None
    return made


def newest(body: tuple[Message, ...], room: int) -> int:
    return newest_from(body, cut_points(body), [weigh(m) for m in body], room)


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
            untouched = (*made.front("", start), *body[start:])
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
        further = known.further(made, SUMMARY)
        (digest,) = digests(body, {further.length})
        kept.keep("m", digest, further)
        answer = Message(Role.ASSISTANT, (TextPart("Yes."),))
        longer = (*body, answer, *more)
        found = kept.find("m", digests(longer, kept.lengths("m")))
        assert found is not None
        sent = found.apply(body)
        assert sent == made.front(SUMMARY, len(now)), "as it was planned"
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
