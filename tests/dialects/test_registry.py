"""The names of the wire protocols."""

from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.registry import DIALECTS


def test_the_dialect_is_known_by_its_name() -> None:
    assert isinstance(DIALECTS["openai_chat"], OpenAIChat)
