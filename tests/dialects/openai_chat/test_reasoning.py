"""The form of a block of reasoning, from the first piece to its data."""

from byok.dialects.openai_chat.reasoning import PARTS, ReasoningBlock


def test_reasoning_block_has_the_form_of_its_first_field() -> None:
    block = ReasoningBlock()
    block.note_form("reasoning")
    block.note_form("reasoning_content")
    assert block.take() == {"field": "reasoning"}
    assert not block.is_open
    assert block.take() == {}


def test_reasoning_block_of_parts_says_so() -> None:
    block = ReasoningBlock()
    block.note_form(PARTS)
    assert block.take() == {"parts": True}


def test_reasoning_block_opens_with_details_that_are_entries() -> None:
    block = ReasoningBlock()
    block.add_details(["x"])
    assert not block.is_open
    block.add_details([{"type": "reasoning.summary", "summary": "a"}])
    assert block.is_open
    assert block.take() == {"details": [{"type": "reasoning.summary", "summary": "a"}]}


def test_reasoning_block_keeps_extra_content_only_with_a_signature() -> None:
    block = ReasoningBlock()
    for extra in (None, "x", {"google": {"thought": True}}, {"google": None}):
        block.add_extra(extra)
    assert not block.is_open
    signed = {"google": {"thought_signature": "S"}}
    block.add_extra(signed)
    assert block.take() == {"extra_content": signed}
