from typing import Any

import pytest

from byok.dialects import protocols
from byok.dialects.protocols import check_protocol, protocol_of
from byok.errors import UpstreamGarbled


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        ({"choices": []}, protocols.CHAT_COMPLETIONS),
        ({"type": "message_start"}, protocols.MESSAGES),
        ({"type": "response.created"}, protocols.RESPONSES),
        ({"object": "response"}, protocols.RESPONSES),
        ([{"candidates": []}], protocols.GEMINI),
        ({"done": False, "message": {}}, protocols.OLLAMA),
        ({"type": 7}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_first_chunk_names_the_protocol(chunk: Any, name: str) -> None:
    assert protocol_of(chunk) == name


def test_another_protocol_is_an_error_that_names_it() -> None:
    chunk: dict[str, list[object]] = {"choices": []}
    check_protocol(chunk, protocols.CHAT_COMPLETIONS)
    check_protocol({}, protocols.MESSAGES)
    with pytest.raises(UpstreamGarbled, match="Chat Completions, not of Anthropic's"):
        check_protocol(chunk, protocols.MESSAGES)
