"""Bodies of chat/completions requests as byok sends them, and their parts."""

from typing import Any

USER = {"role": "user", "content": "Hi?"}

CALL = {"id": "c1", "type": "function", "function": {"name": "b", "arguments": "{}"}}

CALLED = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "out"},
]

PICTURE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ],
}


def tool(name: str, description: str = "", **schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, **schema}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def body(*tools: Any, messages: Any = (USER,), **fields: Any) -> dict[str, Any]:
    offered = {"tools": list(tools), "tool_choice": "auto"} if tools else {}
    return {"model": "m", "messages": list(messages), **offered, **fields}
