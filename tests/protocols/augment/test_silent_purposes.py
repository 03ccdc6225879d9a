"""Jobs that clients do by silent chats are told apart."""

from typing import Any

import pytest

from byok.core.purposes import Purpose
from byok.protocols.augment.chat_request import purpose_of_chat

ENHANCE = "Do not use tools. Reply with <augment-enhanced-prompt>..."


def node(content: Any) -> dict[str, Any]:
    return {"id": 1, "type": 0, "text_node": {"content": content}}


@pytest.mark.parametrize(
    ("body", "purpose"),
    [
        ({"message": ENHANCE}, Purpose.CHAT),
        ({"message": ENHANCE, "silent": False}, Purpose.CHAT),
        ({"message": ENHANCE, "silent": True}, Purpose.ENHANCE),
        ({"nodes": [node(ENHANCE)], "silent": True}, Purpose.ENHANCE),
        ({"message": "Summarise.", "silent": True}, Purpose.SUMMARY),
        ({"silent": True, "chat_history": [{"request_message": ENHANCE}]},
         Purpose.SUMMARY),
        ({"silent": True}, Purpose.SUMMARY),
        ({"silent": True, "message": [ENHANCE], "nodes": [node([ENHANCE]), 7, {}]},
         Purpose.SUMMARY),
    ],
    ids=str,
)  # fmt: skip
def test_a_silent_chat_has_a_purpose(body: dict[str, Any], purpose: Purpose) -> None:
    assert purpose_of_chat(body) is purpose
