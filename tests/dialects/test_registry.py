"""The names of the wire protocols."""

from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.registry import DIALECTS


def test_every_dialect_has_the_name_of_its_row() -> None:
    assert {name: make("").name for name, make in DIALECTS.items()} == {
        name: name for name in DIALECTS
    }


def test_registry_finds_a_dialect_by_its_name() -> None:
    assert DIALECTS["openai_chat"]("mistral") == OpenAIChat.of("mistral")
