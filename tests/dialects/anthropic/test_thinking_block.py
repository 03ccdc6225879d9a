from typing import Any

from byok.dialects.anthropic.answer import ThinkingBlock
from tests.fakes.linear import check_linear


def test_the_block_is_whole_with_its_signature() -> None:
    block = ThinkingBlock({"type": "thinking", "thinking": "", "signature": ""})
    assert [block.think("Hm \ud83d"), block.think("\ude00")] == ["Hm ", "😀"]
    assert block.block() == {}
    block.sign("c2")
    block.sign("ln")
    whole = {"type": "thinking", "thinking": "Hm 😀", "signature": "c2ln"}
    assert (block.rest(), block.block()) == ("", whole)


def test_half_an_emoji_at_the_end_is_a_replacement() -> None:
    block = ThinkingBlock()
    assert (block.think("\ud83d"), block.rest()) == ("", "\ufffd")


def test_only_the_fields_of_the_api_come_back() -> None:
    begun: dict[str, Any] = {"type": "thinking", "signature": "c2ln"}
    whole = {**begun, "thinking": ""}
    assert ThinkingBlock({**begun, "other": "x"}).block() == whole


def test_a_redacted_block_needs_its_data() -> None:
    redacted = {"type": "redacted_thinking", "data": "EqQB"}
    assert ThinkingBlock({**redacted, "other": "x"}).block() == redacted
    assert ThinkingBlock({"type": "redacted_thinking", "data": ""}).block() == {}
    assert ThinkingBlock({"type": "thinking", "signature": 3}).block() == {}


def test_a_signature_in_many_pieces_takes_linear_time() -> None:
    piece = "A" * 1000

    def sign(count: int) -> None:
        block = ThinkingBlock()
        for _ in range(count):
            block.sign(piece)
        assert len(block.block()["signature"]) == count * len(piece)

    check_linear(sign, 3000)
