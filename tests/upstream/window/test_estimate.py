"""Weights: bytes and not characters, whatever a message is made of."""

from itertools import pairwise

import pytest

from byok.core.chat import (
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.upstream.window.estimate import (
    BYTES_A_TOKEN,
    WindowLimits,
    weigh,
    weigh_tools,
    weigh_without_thoughts,
)
from tests.fakes.histories import user

EMPTY = weigh(user(""))


def weight(part: Part) -> int:
    return weigh(Message(Role.USER, (part,))) - EMPTY


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("abc", 3), ("编译", 6), ("é", 2), ("😀", 4), ("\ud83d", 3)],
)
def test_estimate_of_a_text_is_its_bytes(text: str, expected: int) -> None:
    assert weight(TextPart(text)) == expected
    result = weight(ToolResult("id", "view", text)) - weight(ToolResult("id", "v", ""))
    assert result == expected
    call = weight(ToolCall("id", "view", text)) - weight(ToolCall("id", "view", ""))
    assert call == expected


@pytest.mark.parametrize(
    ("rest", "expected"),
    [(TextPart("Yes."), 0), (ToolCall("i", "view", "{}"), 27)],
    ids=["beside text", "beside a call"],
)
def test_estimate_counts_thinking_where_it_is_sent(rest: Part, expected: int) -> None:
    thinking = Message(Role.ASSISTANT, (ThinkingPart("Hm." * 9), rest))
    silent = Message(Role.ASSISTANT, (rest,))
    assert (
        weigh_without_thoughts(thinking)
        == weigh_without_thoughts(silent)
        == weigh(silent)
    )
    assert weigh(thinking) == weigh(silent) + expected


def test_estimate_counts_the_schemas_of_tools() -> None:
    small = ToolDefinition("view", "Shows.", {"type": "object"})
    large = ToolDefinition("view", "Shows.", {"type": "object", "title": "x" * 500})
    assert weigh_tools([]) == 0
    assert 500 < weigh_tools([large]) - weigh_tools([small]) < 520
    assert weigh_tools([small, small]) == 2 * weigh_tools([small])


K = 1000


@pytest.mark.parametrize(
    ("told", "learned", "window"),
    [
        (0, 0, 0),
        (32 * K, 0, 32 * K),
        (0, 8 * K, 8 * K),
        (32 * K, 8 * K, 8 * K),  # a refusal knows better than a list
        (16 * K, 64 * K, 16 * K),  # the user has said less
    ],
)
def test_limit_sources_and_their_precedence(
    told: int, learned: int, window: int
) -> None:
    assert WindowLimits(told, learned).window() == window


def test_limits_learn_the_token_ratio_from_usage() -> None:
    limits = WindowLimits(32_768)
    assert limits.learn_from_count(20 * K, 10 * K)
    assert limits.ratio == 2.0, "it falls at once"
    assert limits.learn_from_count(40 * K, 10 * K)
    assert 2.0 < limits.ratio < 3.0, "and rises slowly"
    for _ in range(50):
        limits.learn_from_count(40 * K, 10 * K)
    assert limits.ratio == pytest.approx(4.0, abs=0.01)


@pytest.mark.parametrize(
    ("weight", "tokens", "told", "believed"),
    [
        (26 * K, 4096, 4096, False),  # 6.3 bytes a token: cut
        (16 * K, 4090, 4096, True),  # 3.9: cut, or a lighter tokenizer
        (26 * K, 4096, 0, True),  # nobody knows the window
        (30 * K, 41, 0, False),  # whole messages were left out
    ],
)
def test_limits_are_never_calibrated_by_what_may_be_cut(
    weight: int, tokens: int, told: int, believed: bool
) -> None:
    limits = WindowLimits(told)
    assert limits.learn_from_count(weight, tokens) is believed
    assert limits.ratio == BYTES_A_TOKEN


def test_limits_grow_when_a_longer_prompt_was_answered() -> None:
    limits = WindowLimits(0, 4 * K)
    limits.learn_from_count(28 * K, 8 * K)
    assert limits.learned == 8 * K
    limits.learn_from_count(7 * K, 2 * K)
    assert limits.learned == 8 * K


def test_limits_correct_the_token_ratio_after_an_unexpected_refusal() -> None:
    limits = WindowLimits(10 * K)
    limits.learn_from_refusal(28 * K, 10 * K, None)
    assert limits.ratio == pytest.approx(2.8)
    limits.learn_from_refusal(
        350 * K, 10 * K, None
    )  # this one was too long by any count
    assert limits.ratio == pytest.approx(2.8)


def test_limits_learn_the_answer_reserve_from_a_refusal_of_what_fits() -> None:
    """A setting of the upstream's own may ask for longer answers than byok knows of."""
    limits = WindowLimits(32 * K)
    before = limits.budget()
    limits.learn_from_refusal(round(3.5 * 20 * K), 32 * K, 20 * K)
    assert limits.budget() < 0.95 * 20 * K * limits.ratio + 1 < before
    limits.learn_from_refusal(round(3.5 * 50 * K), 32 * K, 50 * K)
    assert limits.answer == 12 * K


def test_limits_shrink_with_each_refusal_without_a_number() -> None:
    limits = WindowLimits()
    rooms = []
    weight = 400 * K
    for _ in range(6):
        limits.learn_from_refusal(weight, None, None)
        rooms.append(limits.budget())
        weight = limits.budget()
    assert rooms[0] < 0.7 * 400 * K
    assert all(b < a * 0.7 for a, b in pairwise(rooms[:5]))
    limits.learn_from_refusal(10, None, None)
    assert limits.window() >= 1000, "one odd refusal does not end all conversations"


def test_limits_try_a_guess_upwards_as_answers_come() -> None:
    limits = WindowLimits()
    limits.learn_from_refusal(40 * K, None, None)  # a whim: it takes far more
    low = limits.window()
    limits.learn_from_count(1 * K, 0)
    assert limits.window() == low, "a short prompt tells nothing"
    for _ in range(12):
        limits.learn_from_count(limits.budget(), 0)
    assert limits.window() > 8 * low
    limits.learn_from_refusal(40 * K, 16 * K, None)
    limits.learn_from_count(limits.budget(), 0)
    assert limits.window() == 16 * K, "a number is no guess"
