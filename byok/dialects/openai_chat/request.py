"""Chat Completions: encoding the request.

The order of messages and the pairing of calls with results come from
`protocols/augment/history.py`; here each message is encoded.

Sources: the API references of OpenAI, OpenRouter, DeepSeek, Z.ai, Moonshot and
DashScope, and the servers' documents about `chat_template_kwargs`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolUse,
    data_of,
    text_of,
)
from byok.core.wire.json_body import write_json
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.cache_points import (
    FIELD,
    key_fields,
    mark_messages,
    point,
    prompt_cache_key,
)
from byok.dialects.model_facts import ModelFacts, Replay, effort_for, unsent_effort
from byok.dialects.openai_chat.reasoning import UNSIGNED, add_reasoning, replay_of
from byok.dialects.presets import OPENAI_CHAT, CacheForm, EffortForm, Quirks
from byok.dialects.remedies import set_parameter
from byok.dialects.safe_names import (
    move_images,
    result_text,
    spell_name,
    wants_signatures,
    without_none,
)
from byok.dialects.schemas import write_parameters, write_schema

_OFF = "none"
_GRADES = ("low", "medium", "high")
_ALL_GRADES = (_OFF, "minimal", *_GRADES, "xhigh", "max")  # a router maps them itself
# Tokens of reasoning; for other efforts, the model decides.
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384}
_NO_EFFORT = (
    "This model calls tools in this API only without reasoning, so it was asked not to "
    "reason."
)


def encode_request(
    chat: ChatRequest, target: Target, quirks: Quirks
) -> UpstreamRequest:
    """Encode the body of `POST chat/completions`."""
    body: dict[str, Any] = {"model": target.model}
    body["messages"] = [*_messages(chat.messages, target, quirks)]
    body["stream"] = True
    if quirks.stream_options:
        body["stream_options"] = {"include_usage": True}
    if tools := [_tool(tool, quirks) for tool in chat.tools]:
        body["tools"] = tools
    notice = add_options(body, chat, target, quirks)
    headers = add_caching(body, chat, target, quirks)
    return UpstreamRequest(
        "chat/completions",
        body,
        headers,
        unsent=(notice,) if notice else (),
    )


def effort_fields(
    wanted: str, facts: ModelFacts, form: EffortForm
) -> tuple[dict[str, Any], str]:
    """Return the body fields for an effort, and a notice if it cannot be sent."""
    if form is EffortForm.NONE:
        return {}, "" if wanted in ("", _OFF) else unsent_effort(wanted)
    usual = _ALL_GRADES if form is EffortForm.OBJECT else (_OFF, *_GRADES)
    effort, notice = effort_for(wanted, facts, usual)
    return (_write_effort(effort, wanted, facts, form) if effort else {}), notice


def _write_effort(
    effort: str, wanted: str, facts: ModelFacts, form: EffortForm
) -> dict[str, Any]:
    is_off = effort == _OFF
    is_graded = bool(facts.efforts) and not is_off
    level = {"reasoning_effort": effort} if is_graded else {}
    match form:
        case EffortForm.OBJECT:
            return {"reasoning": {"effort": effort}}
        case EffortForm.SWITCH:
            return {"thinking": {"type": "disabled" if is_off else "enabled"}, **level}
        case EffortForm.BUDGET:
            budget = _BUDGETS.get(wanted)
            limit = {"thinking_budget": budget} if budget else {}
            return {"enable_thinking": not is_off, **limit}
        case EffortForm.TEMPLATE:
            flags = {"enable_thinking": not is_off, "thinking": not is_off}
            return {"chat_template_kwargs": {**flags, **level}, **level}
        case _:
            return {"reasoning_effort": effort}


def add_options(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> str:
    """Add parameters for tools, sampling, effort and JSON to a body.

    Returns a notice if the effort cannot be sent, else "".
    """
    if body.get("tools") and target.facts.thinking:
        body.update(quirks.with_tools)
    is_qwen = target.facts.family == "qwen"
    if (
        quirks.preserve_thinking
        and is_qwen
        and replay_of(target, quirks) is Replay.EVERY_TURN
    ):
        body.update(set_parameter(body, quirks.preserve_thinking, True))
    _add_tool_choice(body, chat, quirks)
    sampling = chat.sampling
    fields = {
        quirks.output_cap: sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    body |= without_none(fields)
    notice = _add_effort(body, chat, target, quirks)
    _add_json(body, chat.json_answer, quirks)
    return notice


def _add_tool_choice(body: dict[str, Any], chat: ChatRequest, quirks: Quirks) -> None:
    if not body.get("tools"):
        return
    choice = chat.tool_choice
    if choice.use is not ToolUse.AUTO:
        body["tool_choice"] = choice.use.value
        if choice.use is ToolUse.REQUIRED and choice.name:
            function = {"name": choice.name}
            body["tool_choice"] = {"type": "function", "function": function}
    elif quirks.tool_choice:
        body["tool_choice"] = "auto"
    if quirks.parallel_tool_calls and not chat.client_parallel_tools:
        body["parallel_tool_calls"] = False


def _add_effort(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> str:
    facts, wanted = target.facts, chat.sampling.effort
    # A model of another API takes tools here only without reasoning.
    is_guest = quirks.tools_without_effort and facts.dialect not in ("", OPENAI_CHAT)
    if is_guest and body.get("tools") and "none" in facts.efforts:
        wanted, notice = "none", _NO_EFFORT if wanted != "none" else ""
        fields, _ = effort_fields(wanted, facts, quirks.effort)
    else:
        fields, notice = effort_fields(wanted, facts, quirks.effort)
    for name, value in fields.items():
        old = body.get(name)
        body[name] = {**old, **value} if isinstance(old, dict) else value
    return notice


def _add_json(body: dict[str, Any], answer: JsonAnswer | None, quirks: Quirks) -> None:
    if answer is None:
        return
    if answer.schema is None:
        body["response_format"] = {"type": "json_object"}
        return
    schema = write_schema(
        write_json(answer.schema),
        narrow=quirks.narrow_schemas,
        plain_keys=quirks.plain_keys,
    )
    inner = {"name": spell_name(answer.name, 0), "schema": schema}
    body["response_format"] = {"type": "json_schema", "json_schema": inner}


def add_caching(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> dict[str, str]:
    """Add requests for prompt caching to a body; return further headers.

    For Claude behind OpenRouter, there is a cache point at the top of the body and one
    after the system message; for Qwen at DashScope, one there and one at the end. Other
    vendors cache without being asked: a key of the conversation routes its requests to
    the same server.
    """
    if not target.cache:
        return {}
    is_claude = quirks.cache is CacheForm.CLAUDE and "claude" in target.model.lower()
    if is_claude or quirks.cache is CacheForm.PARTS:
        mark = point(is_long=is_claude and target.long_cache)
        messages = body["messages"]
        ends = [n for n, m in enumerate(messages) if m["role"] == "system"][-1:]
        if is_claude:
            body[FIELD] = mark
        else:
            ends.append(len(messages) - 1)
        body.update(mark_messages(body, ends, mark))
    if quirks.cache_key:
        body.update(key_fields(chat, target))
    key = prompt_cache_key(chat) if quirks.cache_header else ""
    return {quirks.cache_header: key} if key else {}


def _tool(tool: ToolDefinition, quirks: Quirks) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": write_parameters(
                tool.parameters,
                narrow=quirks.narrow_schemas,
                plain_keys=quirks.plain_keys,
            ),
        },
    }


def _messages(
    messages: Iterable[Message], target: Target, quirks: Quirks
) -> Iterable[dict[str, Any]]:
    for message in move_images(messages):
        match message.role:  # not by Role.TOOL: Python 3.11 takes .1 µs to look it up
            case "tool":
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        yield {
                            "role": "tool",
                            "tool_call_id": part.call_id,
                            "content": result_text(part),
                        }
            case "assistant":
                yield _assistant(message, target, quirks)
            case role:
                yield {"role": str(role), "content": _content(message.parts)}


def _assistant(message: Message, target: Target, quirks: Quirks) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            call = {"id": part.id, "type": "function", "function": function}
            # The signature of a Gemini model.
            extra = data_of(part).get("extra_content")
            has_extra = isinstance(extra, dict)
            calls.append({**call, "extra_content": extra} if has_extra else call)
    text = "".join(texts)
    sent: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        if wants_signatures(target.model) and not quirks.details:
            calls[0] = {**UNSIGNED, **calls[0]}
        empty = None if quirks.null_content else ""
        sent |= {"content": text or empty, "tool_calls": calls}
    add_reasoning(sent, message, target, quirks)
    return sent


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Return a plain string if there is no picture: all servers accept strings."""
    if not any(isinstance(part, ImagePart) for part in parts):
        return text_of(parts)
    return [encoded for part in parts if (encoded := _content_part(part))]


def _content_part(part: Part) -> dict[str, Any] | None:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(media_type=media_type, data=data):
            url = f"data:{media_type};base64,{data}"
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return None
