"""Ollama: encoding the request of `POST /api/chat`.

Sources: Ollama's API reference and the types of its server. Three fields matter most:

- `options.num_ctx` is the window with which the server loads the model. The default is
  4,096 tokens on most machines.
- `truncate: false`: the server refuses a prompt that exceeds the window. By default it
  silently drops the oldest messages.
- `shift: false`: the answer ends when the window is full. By default the server then
  drops half of the prompt and continues.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Role,
    Sampling,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    text_of,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.model_facts import Replay, effort_for
from byok.dialects.safe_names import (
    move_images,
    read_arguments,
    result_text,
    without_none,
)
from byok.dialects.schemas import write_parameters

CHAT_PATH = "/api/chat"
_LEVELS = ("none", "low", "medium", "high")  # accepted by all versions with levels


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode the body; an effort that cannot be sent becomes a notice."""
    body: dict[str, Any] = {"model": target.model}
    body["messages"] = [*_messages(chat.messages, target)]
    if tools := [*map(_tool, chat.tools)]:
        body["tools"] = tools
    body |= {"stream": True, "truncate": False, "shift": False}
    effort, notice = effort_for(chat.sampling.effort, target.facts, _LEVELS)
    if effort:  # without the field, a model that can reason does so
        body["think"] = False if effort == "none" else effort
    if (answer := chat.json_answer) is not None:
        body["format"] = "json" if answer.schema is None else dict(answer.schema)
    return UpstreamRequest(
        CHAT_PATH,
        with_options(body, chat.sampling, target),
        unsent=(notice,) if notice else (),
    )


def with_options(
    body: dict[str, Any], sampling: Sampling, target: Target
) -> dict[str, Any]:
    """Add the options, if there are any."""
    fields = {
        "num_ctx": target.num_ctx or None,
        "num_predict": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": list(sampling.stop) or None,
    }
    options = without_none(fields)
    return {**body, "options": options} if options else body


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    """Encode a tool; references are resolved, because the server drops them."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": write_parameters(tool.parameters, narrow=True),
    }
    return {"type": "function", "function": function}


def _messages(messages: Iterable[Message], target: Target) -> Iterator[dict[str, Any]]:
    for message in move_images(messages):
        match message.role:
            case Role.TOOL:
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        yield {
                            "role": "tool",
                            "content": result_text(part),
                            "tool_name": part.name,
                            "tool_call_id": part.call_id,
                        }
            case Role.ASSISTANT:
                yield _assistant(message, target)
            case role:
                sent = {"role": role.value, "content": text_of(message.parts)}
                # Pictures are plain base64.
                images = [p.data for p in message.parts if isinstance(p, ImagePart)]
                yield {**sent, "images": images} if images else sent


def _assistant(message: Message, target: Target) -> dict[str, Any]:
    text = text_of(message.parts, "")
    sent: dict[str, Any] = {"role": "assistant", "content": text}
    calls = [
        {
            "id": part.id,
            "function": {
                "name": part.name,
                "arguments": read_arguments(part.arguments),
            },
        }
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    if thoughts := _thoughts(message, target, has_calls=bool(calls)):
        sent["thinking"] = thoughts
    return {**sent, "tool_calls": calls} if calls else sent


def _thoughts(message: Message, target: Target, *, has_calls: bool) -> str:
    """Return the reasoning to send back, if it is of this model.

    If the facts do not tell, it goes beside tool calls; the template of each model
    drops reasoning that the model does not need.
    """
    replay = target.facts.replay or Replay.TOOL_TURNS
    if replay is Replay.NEVER or (replay is Replay.TOOL_TURNS and not has_calls):
        return ""
    return "".join(
        part.text
        for part in message.parts
        if isinstance(part, ThinkingPart) and part.provider_data is not None
    )
