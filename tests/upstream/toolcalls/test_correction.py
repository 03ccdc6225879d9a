"""What a model is told of a broken call, and what it then says again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.events import ThinkingDelta, ToolCallPlace
from byok.upstream.toolcalls.assemble import (
    BrokenCall,
    Unsaid,
    answer_parts,
    correction_request,
)
from tests.fakes.values import CUTS, cut

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
    unsaid = Unsaid(said)
    assert "".join(map(unsaid.feed, answer)) == new
    assert Unsaid(said).feed(answer) == new


@given(st.text("ab \n", max_size=6), st.text("ab \n", max_size=12), CUTS)
def test_a_repeated_text_is_recognised_however_the_answer_is_sliced(
    said: str, answer: str, places: list[int]
) -> None:
    unsaid = Unsaid(said)
    assert "".join(map(unsaid.feed, cut(answer, places))) == Unsaid(said).feed(answer)
