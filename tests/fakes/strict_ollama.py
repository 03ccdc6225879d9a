"""A judge of bodies for Ollama's own API: what its server would not read.

It checks bodies as the server's types do: a wrong type anywhere is a 400, and so is an
effort that it does not know. Other fields are ignored by the server, so they are
refused here: what is ignored may be misspelt. Sources: Ollama's API reference and the
source of its server.
"""

from typing import Any

_ANY = (str, int, float, bool, list, dict, type(None))
_NUMBER = (int, float)
_CHAT: dict[str, Any] = {
    "model": str, "messages": list, "tools": list, "stream": bool, "truncate": bool,
    "shift": bool, "think": (bool, str), "format": (str, dict), "options": dict,
    "keep_alive": (str, int),
}  # fmt: skip
_GENERATE = {
    **{k: v for k, v in _CHAT.items() if k not in ("messages", "tools")},
    "prompt": str,
    "suffix": str,
    "raw": bool,
}
_OPTIONS = {
    "num_ctx": int, "num_predict": int, "temperature": _NUMBER, "top_p": _NUMBER,
    "stop": list,
}  # fmt: skip
_MESSAGE = {
    "role": str, "content": str, "thinking": str, "images": list, "tool_calls": list,
    "tool_name": str, "tool_call_id": str,
}  # fmt: skip
_PROPERTY = {
    "type": (str, list), "description": str, "enum": list, "items": _ANY,
    "properties": dict, "required": list, "anyOf": list,
}  # fmt: skip
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_THINK = (True, False, "low", "medium", "high", "max")


def broken_rules(body: Any) -> list[str]:
    """Return why a body of `/api/chat` would be refused, or read wrongly."""
    found = [*_type_rules("", body, _CHAT)]
    if found:
        return found
    found += _type_rules("options.", body.get("options", {}), _OPTIONS)
    if body.get("think", True) not in _THINK:
        found.append("invalid think value")
    if body.get("format", "json") != "json" and not isinstance(body["format"], dict):
        found.append("format is no schema")
    for tool in body.get("tools", ()):
        found += _tool_rules(tool)
    names = {tool["function"]["name"] for tool in body.get("tools", ())}
    return [*found, *_message_rules(body["messages"], names)]


def broken_prompt_rules(body: Any) -> list[str]:
    """Return the same for a body of `/api/generate`."""
    return [
        *_type_rules("", body, _GENERATE),
        *_type_rules("", body.get("options", {}), _OPTIONS),
    ]


def _type_rules(at: str, value: Any, fields: dict[str, Any]) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: cannot unmarshal into an object"]
    unknown = [f"{at}{name} is ignored" for name in value if name not in fields]
    return unknown + [
        f"cannot unmarshal into {at}{name}"
        for name, item in value.items()
        if name in fields and not _is(item, fields[name])
    ]


def _is(value: Any, kinds: Any) -> bool:
    if isinstance(value, bool) and kinds in (int, _NUMBER):
        return False
    return isinstance(value, kinds)


def _tool_rules(tool: Any) -> list[str]:
    function = tool.get("function", {})
    found = _type_rules("tool.", tool, {"type": str, "function": dict})
    fields = {"name": str, "description": str, "parameters": dict}
    found += _type_rules("function.", function, fields)
    schema = function.get("parameters", {})
    if schema.get("type") != "object" or "properties" not in schema:
        found.append("parameters are no object")
    return found + _schema_rules(schema)


def _schema_rules(schema: Any) -> list[str]:
    """Only types are checked: unknown keywords are the user's, and are ignored."""
    if not isinstance(schema, dict):
        return ["cannot unmarshal a schema"]
    found = [
        f"cannot unmarshal into schema.{name}"
        for name, item in schema.items()
        if name in _PROPERTY and not _is(item, _PROPERTY[name])
    ]
    if "$ref" in schema:
        found.append("a reference is ignored")
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    return found + [rule for part in inner for rule in _schema_rules(part)]


def _message_rules(messages: list[Any], names: set[str]) -> list[str]:
    found: list[str] = []
    open_calls: list[tuple[str, str]] = []
    for place, message in enumerate(messages):
        found += _type_rules(f"messages[{place}].", message, _MESSAGE)
        if message.get("role") not in _ROLES or "content" not in message:
            found.append(f"messages[{place}] has no role or content")
        if message.get("role") == "tool":
            call = (message.get("tool_call_id"), message.get("tool_name"))
            if call in open_calls:
                open_calls.remove(call)
            else:
                found.append(f"messages[{place}] answers no call")
        elif open_calls:
            found.append(f"messages[{place}] comes before the results of calls")
            open_calls = []
        open_calls += _calls(message, found)
    return found + (["a call has no result"] if open_calls else [])


def _calls(message: dict[str, Any], found: list[str]) -> list[tuple[str, str]]:
    calls = []
    for call in message.get("tool_calls", ()):
        found += _type_rules("call.", call, {"id": str, "function": dict})
        function = call.get("function", {})
        found += _type_rules("call.", function, {"name": str, "arguments": dict})
        calls.append((call.get("id"), function.get("name")))
    return calls
