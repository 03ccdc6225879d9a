"""Anthropic's Messages for clients: decoding bodies, writing answers."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from byok.core.chat import (
    NO_ORIGIN,
    ImagePart,
    Json,
    JsonAnswer,
    ProviderData,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolUse,
)
from byok.core.conversation_builder import make_result
from byok.core.errors import ByokError
from byok.core.events import FinishReason, Usage
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.core.wire.json_body import parse_json, write_json
from byok.protocols.v1.block_reply import BlockReply, Question, ReplyHead, make_question
from byok.protocols.v1.fields import (
    anthropic_error,
    count,
    feature_refusal,
    flag,
    mapping,
    number,
    objects,
    read_data_url,
    read_file,
    read_image,
    refuse_fields,
    strings,
    text,
    titled_text,
    wrong_field,
)
from byok.protocols.v1.turns import ToolList, Turns

_UNSUPPORTED = ("container", "mcp_servers")
_IGNORED = ("top_k", "context_management", "service_tier")
# Efforts for budgets of reasoning below so many tokens.
_BUDGETS = ((4096, "low"), (16384, "medium"))
_USES = {
    "auto": ToolUse.AUTO,
    "any": ToolUse.REQUIRED,
    "none": ToolUse.NONE,
    "tool": ToolUse.REQUIRED,
}
_STOPS = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
}
_UNSIGNED = ProviderData(NO_ORIGIN, {})  # clients drop reasoning without a signature


def decode_message(body: Json) -> Question:
    """Decode the body of a message; `max_tokens` may be missing, as for counting.

    Raises:
        BadRequest: a field is invalid, or byok does not support it.
    """
    refuse_fields(body, _UNSUPPORTED)
    tools = read_tools(body)
    choice = mapping(body, "tool_choice")
    turns = Turns()
    turns.add_system(_join_texts(_blocks(body, "system")))
    for message in objects(body, "messages"):
        add_message(turns, message)
    thinking = mapping(body, "thinking")
    chat = replace(
        turns.request(tools),
        client_parallel_tools=not flag(choice, "disable_parallel_tool_use"),
        sampling=Sampling(
            number(body, "temperature"),
            number(body, "top_p"),
            count(body, "max_tokens"),
            _read_effort(body, thinking),
            strings(body, "stop_sequences"),
        ),
        tool_choice=_read_choice(choice, tools),
        json_answer=_read_format(body),
        cache_key=text(mapping(body, "metadata"), "user_id"),
    )
    shows_thinking = text(thinking, "type") in ("enabled", "adaptive")
    reply = partial(MessageReply, shows_thinking=shows_thinking)
    left_out = (*tools.left_out, *turns.left_out)
    return make_question(body, chat, reply, left_out, _IGNORED)


def read_tools(body: Json) -> ToolList:
    """Return the tools that the client defines; those of Anthropic are left out."""
    tools = ToolList()
    for row in objects(body, "tools"):
        kind = text(row, "type")
        if kind in ("", "custom"):
            description = text(row, "description")
            tools.add(text(row, "name"), description, mapping(row, "input_schema"))
        else:
            tools.leave_out(kind)
    return tools


def _read_choice(choice: Json, tools: ToolList) -> ToolChoice:
    kind = text(choice, "type") or "auto"
    if kind not in _USES:
        raise wrong_field("tool_choice", "auto, any, tool or none")
    return tools.choose(_USES[kind], text(choice, "name") if kind == "tool" else "")


def _read_effort(body: Json, thinking: Json) -> str:
    """Return the requested effort, or one that suits the budget in tokens."""
    if effort := text(mapping(body, "output_config"), "effort"):
        return effort
    if text(thinking, "type") == "disabled":
        return "none"
    if (budget := count(thinking, "budget_tokens")) is None:
        return ""
    efforts = (effort for limit, effort in _BUDGETS if budget < limit)
    return next(efforts, "high")


def _read_format(body: Json) -> JsonAnswer | None:
    form: dict[str, Any] = mapping(mapping(body, "output_config"), "format")
    form = form or mapping(body, "output_format")
    if not form:
        return None
    if text(form, "type") != "json_schema":
        raise wrong_field("the format", "a json_schema")
    return JsonAnswer(mapping(form, "schema"))


def add_message(turns: Turns, message: Json) -> None:
    """Add one message.

    Raises:
        BadRequest: the message is invalid.
    """
    blocks = _blocks(message, "content")
    match text(message, "role"):
        case "user":
            _add_user(turns, blocks)
        case "assistant":
            _add_answer(turns, blocks)
        case "system":
            turns.add_system(_join_texts(blocks))
        case role:
            raise wrong_field("role", f"user or assistant, not {role[:60]!r}")


def _join_texts(blocks: list[Json]) -> str:
    return "\n\n".join(text(block, "text") for block in blocks)


def _blocks(body: Json, name: str) -> list[Json]:
    """Return the blocks in a field; a string is one block of text."""
    if isinstance(content := body.get(name), str):
        return [{"type": "text", "text": content}]
    return [*objects(body, name)]


def _add_user(turns: Turns, blocks: list[Json]) -> None:
    """Add a message of the user: results of tools, then text and images."""
    parts: list[TextPart | ImagePart] = []
    for block in blocks:
        if text(block, "type") == "tool_result":
            content = [_read_part(part) for part in _blocks(block, "content")]
            is_error = flag(block, "is_error") is True
            call_id = text(block, "tool_use_id")
            turns.add_result(make_result(call_id, content, is_error=is_error))
        else:
            parts.append(_read_part(block))
    turns.add_user(parts)


def _read_part(block: Json) -> TextPart | ImagePart:
    match text(block, "type"):
        case "text":
            return TextPart(text(block, "text"))
        case "image":
            return _read_image(mapping(block, "source"))
        case "document":
            return _read_document(mapping(block, "source"), text(block, "title"))
        case "search_result":
            texts = (text(part, "text") for part in objects(block, "content"))
            return titled_text(text(block, "title"), text(block, "source"), *texts)
        case "tool_reference":
            return TextPart(text(block, "tool_name"))
        case kind:
            raise feature_refusal(f"byok does not translate a block {kind[:60]!r}")


def _read_document(source: Json, title: str) -> TextPart | ImagePart:
    match text(source, "type"):
        case "text":
            return titled_text(title, text(source, "data"))
        case "base64":
            return read_file(text(source, "media_type"), text(source, "data"), title)
        case kind:
            raise feature_refusal(f"byok does not translate a document {kind[:60]!r}")


def _read_image(source: Json) -> ImagePart:
    match text(source, "type"):
        case "base64":
            return read_image(text(source, "media_type"), text(source, "data"))
        case "url":
            return read_data_url(text(source, "url"))
        case kind:
            raise feature_refusal(f"byok does not translate a source {kind[:60]!r}")


def _add_answer(turns: Turns, blocks: list[Json]) -> None:
    """Add blocks of the model; those of tools that ran at Anthropic are left out."""
    parts: list[TextPart | ThinkingPart | ToolCall] = []
    for block in blocks:
        match text(block, "type"):
            case "text":
                parts.append(TextPart(text(block, "text")))
            case "thinking":
                data = read_encrypted(text(block, "signature"))
                parts.append(ThinkingPart(text(block, "thinking"), data))
            case "redacted_thinking":
                parts.append(ThinkingPart("", read_encrypted(text(block, "data"))))
            case "tool_use":
                parts.append(_read_call(block))
            case kind:
                turns.left_out.append(f"the block {kind[:60]!r}")
    turns.add_answer(parts)


def _read_call(block: Json) -> ToolCall:
    if not (call_id := text(block, "id")):
        raise wrong_field("the id of a tool_use", "a string")
    arguments = write_json(mapping(block, "input")).decode()
    return ToolCall(call_id, text(block, "name"), arguments)


class MessageReply(BlockReply):
    """A writer of a message; `shows_thinking`: the client requested the reasoning.

    Anthropic sends reasoning only on request, and simple clients use the first block as
    the answer. So other clients get no reasoning.
    """

    def __init__(self, head: ReplyHead, *, shows_thinking: bool = False) -> None:
        super().__init__(head)
        self._shows_thinking = shows_thinking
        self._content: list[Json] = []

    def _write_beginning(self) -> Iterator[Json]:
        """Write the empty message; the final token counts come at the end."""
        usage = write_usage(self.usage or Usage())
        message = {**self._message(), "content": [], "stop_reason": None}
        yield {"type": "message_start", "message": {**message, "usage": usage}}

    def _open_text(self) -> Iterator[Json]:
        yield self._start({"type": "text", "text": ""})

    def _write_text(self, text: str) -> Json:
        return self._delta({"type": "text_delta", "text": text})

    def _close_text(self, text: str) -> Iterator[Json]:
        yield self._stop({"type": "text", "text": text})

    def _open_thinking(self) -> Iterator[Json]:
        if self._shows_thinking:
            yield self._start({"type": "thinking", "thinking": "", "signature": ""})

    def _write_thinking(self, text: str) -> Iterator[Json]:
        if self._shows_thinking:
            yield self._delta({"type": "thinking_delta", "thinking": text})

    def _close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterator[Json]:
        """Close a block of reasoning; its signature contains the provider's data."""
        if self._shows_thinking:
            signature = write_encrypted(provider_data or _UNSIGNED)
            yield self._delta({"type": "signature_delta", "signature": signature})
            block = {"type": "thinking", "thinking": text, "signature": signature}
            yield self._stop(block)

    def _write_call(self, call: ToolCall) -> Iterator[Json]:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield self._start(block)
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        yield self._delta(delta)
        arguments = parse_json(call.arguments.encode("utf-8", "surrogatepass"))
        yield self._stop({**block, "input": arguments})

    def _write_end(self) -> Iterator[Json]:
        delta = {"stop_reason": _STOPS[self.finish], "stop_sequence": None}
        usage = write_usage(self.usage or Usage())
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def _write_failure(self, error: ByokError) -> Iterable[Json]:
        return (anthropic_error(error, self.head.id),)

    def whole(self) -> dict[str, Any]:
        """Return the message."""
        return {
            **self._message(),
            "content": self._content,
            "stop_reason": _STOPS[self.finish],
            "usage": write_usage(self.usage or Usage()),
        }

    def _message(self) -> dict[str, Any]:
        return {
            "id": f"msg_{self.head.id}",
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "stop_sequence": None,
        }

    def _start(self, block: Json) -> Json:
        index = len(self._content)
        return {"type": "content_block_start", "index": index, "content_block": block}

    def _delta(self, delta: Json) -> Json:
        index = len(self._content)
        return {"type": "content_block_delta", "index": index, "delta": delta}

    def _stop(self, block: Json) -> Json:
        index = len(self._content)
        self._content.append(block)
        return {"type": "content_block_stop", "index": index}


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts; `input_tokens` excludes those of the cache."""
    cached = usage.cache_read_tokens + usage.cache_creation_tokens
    return {
        "input_tokens": max(usage.input_tokens - cached, 0),
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }
