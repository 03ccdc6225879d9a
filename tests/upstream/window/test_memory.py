"""A compaction is found by what it replaced, and by nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
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
    Compaction,
    CompactionPlan,
    Compactions,
    digests,
)
from tests.fakes.histories import PNG, agent, histories, step, user

BODY = agent(10, 50)
FRONT = (user("Summary."),)


def keep(
    kept: Compactions, body: Sequence[Message], made: Compaction, model: str = "m"
) -> None:
    (digest,) = digests(body, {made.length})
    kept.keep(model, digest, made)


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
    kept = Compactions(room=5000)
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


def test_further_compaction_counts_the_messages_that_the_first_one_replaced() -> None:
    first = Compaction(6, FRONT)
    seen = first.apply(BODY)
    made = CompactionPlan(seen, cut=3, length=4, task=(), longest=100, weight=0)
    further = first.further(made, "Later.")
    assert further.length == 4 - len(FRONT) + 6
    assert further.apply(BODY)[1:] == (*seen[3:4], *BODY[further.length :])
