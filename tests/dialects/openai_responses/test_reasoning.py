"""Parts of reasoning, and what must come back of them."""

from byok.core.chat import Origin, ProviderData
from byok.core.events import ThinkingDelta
from byok.dialects.openai_responses.answer import ReasoningStream

HERE = Origin("openai_responses", "box", "m")
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}


def test_parts_of_reasoning_begin_on_new_lines() -> None:
    reasoning = ReasoningStream(HERE)
    said = [
        reasoning.add(0, ("summary", 0), "a"),
        reasoning.add(0, ("summary", 0), "b"),
        reasoning.add(0, ("summary", 1), "c"),
        reasoning.add(0, ("content", 0), "not the same again"),
        reasoning.add(0, ("summary", 1), "d"),
        reasoning.add(1, ("content", 0), "e"),
    ]
    assert "".join(said) == "ab\ncd\ne"


def test_reasoning_ends_once_with_its_data() -> None:
    reasoning = ReasoningStream(HERE)
    assert reasoning.end() == []
    reasoning.keep({**SEALED, "id": "rs_1"})
    kept = ProviderData(HERE, {"item": SEALED, "phase": "commentary"})
    assert reasoning.end("commentary") == [ThinkingDelta("", kept)]
    assert reasoning.end() == []


def test_half_an_emoji_is_not_lost() -> None:
    reasoning = ReasoningStream(HERE)
    assert reasoning.add(0, ("summary", 0), "\ud83d") == ""
    assert reasoning.rest() == [ThinkingDelta("\ufffd")]
    assert reasoning.rest() == []
