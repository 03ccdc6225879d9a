"""The names of the wire protocols."""

from byok.dialects.named import DIALECTS
from byok.dialects.openai_chat import OpenAIChat


def test_the_dialect_is_known_by_its_name() -> None:
    assert isinstance(DIALECTS["openai_chat"], OpenAIChat)
