"""A body: its tools, and calls and pictures as text."""

from typing import Any

from byok.dialects.openai_responses import remedies
from tests.fakes.strict_responses import broken_rules

USER = {"type": "message", "role": "user", "content": "Hi?"}
SAID = {"type": "message", "role": "assistant", "content": "I look."}
SHOWN = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
PICTURE = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Look."}, SHOWN],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "view", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "out"}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "g"}
VIEW = {
    "type": "function",
    "name": "view",
    "description": "",
    "parameters": {"type": "object"},
}


def body(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **fields}


def test_reasoning_is_removed_up_to_a_place() -> None:
    request = body(USER, SEALED, SAID, SEALED, CALL, RESULT)
    assert remedies.without_reasoning(request, 1)["input"][2:] == [
        SEALED,
        CALL,
        RESULT,
    ]
    assert SEALED not in remedies.without_reasoning(request)["input"]


def test_the_system_prompt_may_be_an_item() -> None:
    sent = remedies.instructions_as_item(body(USER, instructions="Be exact."))
    system = {"type": "message", "role": "system", "content": "Be exact."}
    assert sent == body(system, USER)
    assert remedies.instructions_as_item(sent) == sent
    assert broken_rules(sent) == []
