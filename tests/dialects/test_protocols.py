from typing import Any

import pytest

from byok.core.errors import UpstreamGarbled
from byok.dialects import answer_reader
from byok.dialects.answer_reader import check_protocol, protocol_of


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        ({"choices": []}, answer_reader.CHAT_COMPLETIONS),
        ({"type": "message_start"}, answer_reader.MESSAGES),
        ({"type": "response.created"}, answer_reader.RESPONSES),
        ({"object": "response"}, answer_reader.RESPONSES),
        ([{"candidates": []}], answer_reader.GEMINI),
        ({"done": False, "message": {}}, answer_reader.OLLAMA),
        ({"type": 7}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_first_chunk_names_the_protocol(chunk: Any, name: str) -> None:
    assert protocol_of(chunk) == name


def test_another_protocol_is_an_error_that_names_it() -> None:
    chunk: dict[str, list[object]] = {"choices": []}
    check_protocol(chunk, answer_reader.CHAT_COMPLETIONS)
    check_protocol({}, answer_reader.MESSAGES)
    with pytest.raises(UpstreamGarbled, match="Chat Completions, not of Anthropic's"):
        check_protocol(chunk, answer_reader.MESSAGES)
