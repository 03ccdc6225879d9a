"""Fields that both protocols of OpenAI share."""

from typing import Any

from byok.chat import Json, JsonAnswer, ToolUse
from byok.clients.fields import feature_refusal, mapping, text, wrong_field


def read_use(choice: Any) -> ToolUse:
    """Read whether tools may, must or must not be called."""
    try:
        return ToolUse.AUTO if choice is None else ToolUse(choice)
    except ValueError:
        raise wrong_field("tool_choice", "auto, none, required or a tool") from None


def read_format(form: Json) -> JsonAnswer | None:
    """Read `response_format`."""
    match text(form, "type"):
        case "" | "text":
            return None
        case "json_object":
            return JsonAnswer()
        case "json_schema":
            inner = mapping(form, "json_schema") or form
            schema = mapping(inner, "schema")
            return JsonAnswer(schema, text(inner, "name") or JsonAnswer().name)
        case kind:
            raise feature_refusal(f"byok does not know the format {kind[:60]!r}")


def write_source(url: str, title: str) -> dict[str, Any]:
    """Write a source of an answer; which words it is for is not known."""
    return {"url": url, "title": title or url, "start_index": 0, "end_index": 0}
