"""Responses: encoding the request.

Nothing is stored at the vendor (`store: false`). So the whole conversation is sent each
time, with reasoning as the encrypted items that the model wrote. Items have no ids,
because ids name stored items (OpenAI's Codex sends none either). The order of messages
and the pairing of calls with results come from `protocols/augment/history.py`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolUse,
    data_of,
    text_of,
)
from byok.core.wire.json_fields import objects_in, read_objects, read_text
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.cache_points import key_fields
from byok.dialects.model_facts import ModelFacts, Replay, effort_for
from byok.dialects.safe_names import result_text, spell_name, without_none
from byok.dialects.schemas import write_parameters

# Calls of tools other than functions, which the client would have to run. They come if
# the user adds tools of the API.
_FOREIGN_CALLS = {
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "mcp_approval_request": "mcp",
    "shell_call": "shell",
}
# Fields of a reasoning item that are not sent back: its id names an item that is not
# stored, and the API refuses the status of an input item.
_UNSENT_FIELDS = frozenset({"id", "status"})
# Fields of signatures; the last two are OpenRouter's, for models of other vendors.
_SEAL_FIELDS = ("encrypted_content", "signature", "format")
_PHASES = ("commentary", "final_answer")
ENCRYPTED = "reasoning.encrypted_content"
_MIN_OUTPUT = 16  # tokens; the API refuses less
_NO_STOP = "This API has no texts that stop an answer, so yours were not sent."


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode the body of `POST responses`."""
    system = _system(chat)
    body: dict[str, Any] = {"model": target.model, **system}
    body["input"] = [*_items(chat.messages[len(system) :], target)]
    body |= {"stream": True, "store": False}
    if tools := [*map(_tool, chat.tools)]:
        body["tools"] = tools
        body["tool_choice"] = chat.tool_choice.use.value
        if chat.tool_choice.use is ToolUse.REQUIRED and chat.tool_choice.name:
            body["tool_choice"] = {"type": "function", "name": chat.tool_choice.name}
        if not chat.client_parallel_tools:
            body["parallel_tool_calls"] = False
    effort, notice = effort_for(chat.sampling.effort, target.facts)
    body |= _reasoning(effort, target.facts)
    sampling, answer = chat.sampling, chat.json_answer
    most = (
        None if sampling.max_tokens is None else max(sampling.max_tokens, _MIN_OUTPUT)
    )
    body |= without_none(
        {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_output_tokens": most,
        }
    )
    if answer is not None:
        form: dict[str, Any] = {"type": "json_object"}
        if answer.schema is not None:
            name, schema = spell_name(answer.name, 0), dict(answer.schema)
            form = {
                "type": "json_schema",
                "name": name,
                "schema": schema,
                "strict": False,
            }
        body["text"] = {"format": form}
    body |= key_fields(chat, target)
    unsent = (_NO_STOP if chat.sampling.stop else "", notice)
    return UpstreamRequest("responses", body, unsent=(*filter(None, unsent),))


def _system(chat: ChatRequest) -> Json:
    """Return the field for the system prompt.

    For an answer in JSON without a schema, the prompt stays in the input, because the
    input must contain the word JSON.
    """
    wants_json = chat.json_answer is not None and chat.json_answer.schema is None
    if wants_json or not chat.messages or chat.messages[0].role is not Role.SYSTEM:
        return {}
    return {"instructions": text_of(chat.messages[0].parts)}


def _items(messages: Iterable[Message], target: Target) -> Iterator[dict[str, Any]]:
    for message in messages:
        match message.role:
            case Role.ASSISTANT:
                yield from assistant_items(message.parts, target)
            case Role.TOOL:
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        yield _result(part)
            case Role.SYSTEM | Role.USER:
                role, content = message.role.value, _content(message.parts)
                yield {"type": "message", "role": role, "content": content}


def _result(result: ToolResult) -> dict[str, Any]:
    """Return a result; its output is a plain string if there is no picture."""
    text = result_text(result)
    output: str | list[Json] = text
    if result.images:
        output = [{"type": "input_text", "text": text}, *map(_image, result.images)]
    call = {"type": "function_call_output", "call_id": result.call_id}
    return {**call, "output": output}


def _content(parts: Iterable[Part]) -> str | list[Json]:
    """Return a plain string if there is no picture: all servers accept strings."""
    parts = list(parts)
    if not any(isinstance(part, ImagePart) for part in parts):
        return text_of(parts)
    return [
        _image(part)
        if isinstance(part, ImagePart)
        else {"type": "input_text", "text": part.text}
        for part in parts
        if isinstance(part, (ImagePart, TextPart))
    ]


def _image(image: ImagePart) -> Json:
    url = f"data:{image.media_type};base64,{image.data}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": write_parameters(tool.parameters),
        "strict": False,  # the default would refuse most schemas
    }


def _reasoning(effort: str, facts: ModelFacts) -> Json:
    """Return the fields about reasoning; none for a model that does not reason."""
    if facts.thinking is False:
        return {}
    body: dict[str, Any] = {"include": [ENCRYPTED]}
    reasoning = {"effort": effort} if effort else {}
    if facts.thinking:
        reasoning["summary"] = "auto"  # for the user to see
    return {**body, "reasoning": reasoning} if reasoning else body


def assistant_items(parts: Iterable[Part], target: Target) -> list[dict[str, Any]]:
    """Return the input items of one turn, in the order of its parts.

    A reasoning item stands directly before the message or call that followed it; alone
    it would be refused.
    """
    items: list[dict[str, Any]] = []
    reasoning: list[dict[str, Any]] = []  # for the next message or call
    phase = ""
    for part in parts:
        match part:
            case ThinkingPart():
                data = data_of(part)
                reasoning += _reasoning_item(data.get("item"), target)
                phase = data["phase"] if data.get("phase") in _PHASES else phase
            case TextPart(text=text) if text:
                items += reasoning
                message = {"type": "message", "role": "assistant", "content": text}
                items.append({**message, "phase": phase} if phase else message)
                reasoning, phase = [], ""
            case ToolCall():
                if phase and items and items[-1].get("role"):
                    # The data of the message were restored beside the call.
                    items[-1].setdefault("phase", phase)
                items += reasoning
                call = {"type": "function_call", "call_id": part.id}
                items.append({**call, "name": part.name, "arguments": part.arguments})
                reasoning, phase = [], ""
            case _:
                pass
    return items


def _reasoning_item(item: Any, target: Target) -> list[dict[str, Any]]:
    """Return a reasoning item, [] if it is damaged or not needed.

    An item without an encrypted form is text that only some models need back.
    """
    if not isinstance(item, dict) or item.get("type") != "reasoning":
        return []
    encrypted = item.get("encrypted_content")
    if encrypted is not None and not isinstance(encrypted, str):
        return []
    if not encrypted and target.facts.replay in (None, Replay.NEVER):
        return []
    summary, content = item.get("summary", []), item.get("content", [])
    if not _are_texts(summary) or not _are_texts(content):
        return []
    sent: dict[str, Any] = {"type": "reasoning", "summary": _copy_texts(summary)}
    if "content" in item:
        sent["content"] = _copy_texts(content)
    seals = {name: item.get(name) for name in _SEAL_FIELDS}
    return [sent | {k: v for k, v in seals.items() if v and isinstance(v, str)}]


def _copy_texts(parts: list[Json]) -> list[Json]:
    return [{"type": part["type"], "text": part["text"]} for part in parts]


def _are_texts(parts: Any) -> bool:
    return isinstance(parts, list) and all(
        isinstance(part, dict)
        and isinstance(part.get("type"), str)
        and isinstance(part.get("text"), str)
        for part in parts
    )


def reasoning_data(item: Json) -> dict[str, Any]:
    """Return the fields of a reasoning item to send back, {} if it is a summary."""
    if not (item.get("encrypted_content") or item.get("content")):
        return {}
    return {
        key: v for key, v in item.items() if key not in _UNSENT_FIELDS and v is not None
    }


def reasoning_text(item: Json) -> str:
    """Return the text of a reasoning item: its summary, else the reasoning itself."""
    return join_texts(item.get("summary")) or join_texts(item.get("content"))


def join_texts(parts: Any) -> str:
    """Return the texts of parts, separated by line breaks."""
    texts = (read_text(part, "text") for part in objects_in(parts))
    return "\n".join(filter(None, texts))


def message_text(item: Json) -> str:
    """Return the text of a message, or the model's refusal in it."""
    return "".join(
        read_text(part, "text") or read_text(part, "refusal")
        for part in read_objects(item, "content")
    )


def citations(item: Json) -> list[tuple[str, str]]:
    """Return the URL and the title of each source that a message names."""
    return [
        (url, read_text(note, "title"))
        for part in read_objects(item, "content")
        for note in read_objects(part, "annotations")
        if (url := read_text(note, "url"))
    ]


def foreign_tool(item: Json) -> str:
    """Return the name of the tool that the client would have to run, or ""."""
    kind = read_text(item, "type")
    if kind == "custom_tool_call":
        return read_text(item, "name") or "custom"
    if kind == "shell_call":
        environment = item.get("environment")
        if isinstance(environment, dict) and environment.get("type") != "local":
            return ""  # it runs at the vendor
    if kind == "tool_search_call":
        return "tool_search" if item.get("execution") == "client" else ""
    return _FOREIGN_CALLS.get(kind, "")
