"""Messages API: encoding the request."""

from typing import Any

from byok.chat import ChatRequest, Json, TextPart, ToolDefinition, ToolResult, ToolUse
from byok.dialects.anthropic.cache_points import ask_for_cache
from byok.dialects.anthropic.json_answers import encode_json_answer
from byok.dialects.anthropic.messages import Conversation
from byok.dialects.anthropic.thinking import (
    encode_reasoning,
    encode_sampling,
    without_thinking,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.safe_names import Aliases
from byok.dialects.schemas.common import write_schema
from byok.wire.json_body import write_json

_USUAL_ANSWER = 8192  # tokens, where the model's limit is unknown
_LEAST_ANSWER = 4096  # tokens that are asked for, however full the window is
_CHARS_A_TOKEN = 3


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode the body of `POST messages`."""
    facts, talk = target.facts, Conversation()
    tools = [_tool(tool, talk.names) for tool in chat.tools]
    talk.add_all(chat.messages, target.origin)
    most = _max_tokens(chat, facts)
    reasoning = encode_reasoning(chat, facts, most, talk.messages)
    if reasoning.is_off or facts.replay is Replay.NEVER:
        talk.messages = without_thinking(talk.messages)
    sampling, notices = encode_sampling(chat.sampling, facts, reasoning.thinks)
    output, instruction = encode_json_answer(chat.json_answer)
    body: dict[str, Any] = {"model": target.model, "max_tokens": most}
    if system := [*talk.system, *instruction]:
        body["system"] = system
    body |= {"messages": talk.messages, "stream": True}
    if tools:
        body |= {"tools": tools, **_tool_choice(chat, talk.names)}
    body |= {**sampling, **reasoning.fields, **_stops(chat)}
    if output:
        body["output_config"] = {**body.get("output_config", {}), **output}
    if target.cache:
        body = ask_for_cache(body, target.long_cache)
    body.update(target.extra_body)
    first = notices if chat.is_first_turn else ()
    return UpstreamRequest(
        "messages",
        body,
        tool_names=talk.names.originals,
        notices=(*first, *reasoning.notices),
    )


def _tool(tool: ToolDefinition, names: Aliases) -> dict[str, Any]:
    schema = write_json({**tool.parameters, "type": "object"})
    return {
        "name": names.alias(tool.name),
        **({"description": tool.description} if tool.description else {}),
        "input_schema": write_schema(schema, narrow=False, plain_keys=True),
    }


def _tool_choice(chat: ChatRequest, names: Aliases) -> Json:
    """Return the field `tool_choice` where the default, any number, is not wanted."""
    choice, one = chat.tool_choice, not chat.client_parallel_tools
    only_one = {"disable_parallel_tool_use": True} if one else {}
    match choice.use:
        case ToolUse.NONE:
            return {"tool_choice": {"type": "none"}}
        case ToolUse.REQUIRED if choice.name:
            name = names.alias(choice.name)
            return {"tool_choice": {"type": "tool", "name": name, **only_one}}
        case ToolUse.REQUIRED:
            return {"tool_choice": {"type": "any", **only_one}}
        case _:
            return {"tool_choice": {"type": "auto", **only_one}} if one else {}


def _stops(chat: ChatRequest) -> Json:
    """Return the texts before which to stop; the API refuses blank ones."""
    texts = [text for text in chat.sampling.stop if text.strip()]
    return {"stop_sequences": texts} if texts else {}


def _max_tokens(chat: ChatRequest, facts: ModelFacts) -> int:
    """Return the longest answer: the model's limit and the user's, within the window.

    Older models refuse a prompt and `max_tokens` that exceed the window together. The
    prompt is estimated, which a remedy corrects.
    """
    wanted = chat.sampling.max_tokens
    if wanted is not None:
        return min(wanted, facts.max_output or wanted)
    most = facts.max_output or _USUAL_ANSWER
    if not facts.window:
        return most
    room = facts.window - _weight(chat) // _CHARS_A_TOKEN
    return min(most, max(room, _LEAST_ANSWER))


def _weight(chat: ChatRequest) -> int:
    """Estimate the characters of a prompt, without pictures and tools."""
    return sum(
        len(part.text if isinstance(part, TextPart) else part.content)
        for message in chat.messages
        for part in message.parts
        if isinstance(part, (TextPart, ToolResult))
    )
