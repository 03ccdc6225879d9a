"""Events of a stream: token counts add up; what is a part of the answer."""

import pytest

from byok.core.chat import NO_ORIGIN, ProviderData, ToolCall
from byok.core.events import (
    Citation,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
    begins_answer,
    shows_answer,
)

SIGNED = ThinkingDelta("", ProviderData(NO_ORIGIN, {}))
PARTS = [TextDelta("a"), ThinkingDelta("h"), SIGNED, ToolCallDelta(0), Citation("u")]
PARTS += [ToolCallPlace("c"), ToolCall("c", "view", "{}")]


def test_usage_of_two_answers_adds_up() -> None:
    total = Usage(10, 2, 4, 1).plus(Usage(100, 20, 40, 10))
    assert total == Usage(110, 22, 44, 11)


@pytest.mark.parametrize("event", PARTS, ids=repr)
def test_an_answer_is_shown_by_each_of_its_parts(event: StreamEvent) -> None:
    assert shows_answer([Usage(1), event])
    assert begins_answer([event])


@pytest.mark.parametrize(
    "event", [TextDelta(""), ThinkingDelta(""), Usage(1), Notice("n")], ids=repr
)
def test_an_answer_has_not_begun_with_what_byok_says_or_counts(
    event: StreamEvent,
) -> None:
    assert not shows_answer([event])
    assert not begins_answer([event])
