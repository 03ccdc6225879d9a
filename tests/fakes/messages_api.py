"""Anthropic's Messages API: requests, pieces of answers, a strict judge, and a server.

The server thinks, signs and calls tools.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from aiohttp import web

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.anthropic.dialect import AnthropicMessages
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts
from tests.fakes.strict import is_base64
from tests.fakes.upstream import FakeUpstream, Script, play

HERE = Origin("anthropic", "box", "m")
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "EqQB"}
CALL = ToolCall("toolu_1", "view", '{"path": "a"}')
ADAPTIVE = ModelFacts("m", thinking=True, adaptive_thinking=True)
BUDGET = ModelFacts("m", thinking=True, adaptive_thinking=False, max_output=64_000)


def said(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts))


def user(*parts: Part | str) -> Message:
    return said(Role.USER, *parts)


def assistant(*parts: Part | str) -> Message:
    return said(Role.ASSISTANT, *parts)


def result(call: ToolCall = CALL, content: str = "ok", **fields: Any) -> Message:
    return said(Role.TOOL, ToolResult(call.id, call.name, content, **fields))


def thought(block: Any = THOUGHT, origin: Origin = HERE) -> ThinkingPart:
    """The reasoning of a model, with the block that came."""
    return ThinkingPart("Hm.", ProviderData(origin, {"block": block}))


def encode(
    *messages: Message,
    facts: ModelFacts = UNKNOWN_MODEL,
    cache: bool = False,
    long_cache: bool = False,
    extra: dict[str, Any] | None = None,
    **fields: Any,
) -> UpstreamRequest:
    """Encode a conversation; more than one call at a time is accepted."""
    target = Target("m", extra or {}, facts, HERE, cache, long_cache)
    fields = {"client_parallel_tools": True, **fields}
    return write_request(AnthropicMessages(), ChatRequest(messages, **fields), target)[
        1
    ]


def sse(event: dict[str, Any]) -> bytes:
    """Write one event as the API does, with its name."""
    name, data = event["type"], json.dumps(event)
    return f"event: {name}\ndata: {data}\n\n".encode()


def start(**usage: Any) -> bytes:
    """Begin an answer."""
    usage = usage or {"input_tokens": 10, "output_tokens": 1}
    return sse({"type": "message_start", "message": {"content": [], "usage": usage}})


def block(index: int, begun: dict[str, Any], deltas: Iterable[Any] = ()) -> bytes:
    """Write a whole block: its start, its deltas and its end."""
    at = {"index": index}
    events = [
        {"type": "content_block_start", **at, "content_block": begun},
        *({"type": "content_block_delta", **at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", **at},
    ]
    return b"".join(map(sse, events))


def text_block(index: int, *texts: str) -> bytes:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return block(index, {"type": "text", "text": ""}, deltas)


def thinking_block(index: int, *texts: str, signature: str = "c2ln") -> bytes:
    deltas: list[Any] = [{"type": "thinking_delta", "thinking": t} for t in texts]
    deltas += [{"type": "signature_delta", "signature": signature}] if signature else []
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    return block(index, begun, deltas)


def call_block(index: int, name: str, *pieces: str, call_id: str = "toolu_1") -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in ("", *pieces)]
    begun = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, begun, deltas)


def end(reason: str = "end_turn", *, usage: Any = None, **fields: Any) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None, **fields}
    usage = usage or {"output_tokens": 5}
    last = {"type": "message_delta", "delta": delta, "usage": usage}
    return sse(last) + sse({"type": "message_stop"})


def answer(*texts: str) -> bytes:
    """Write a whole answer of one text."""
    return start() + text_block(0, *texts) + end()


_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")
_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MOST_POINTS, _MOST_UNIONS = 4, 16
_BODY_KEYS = """
    model max_tokens messages cache_control container inference_geo metadata
    output_config service_tier speed stop_sequences stream system temperature thinking
    tool_choice tools top_k top_p anthropic_version
"""
_EFFORTS = (None, "low", "medium", "high", "xhigh", "max")
_BLOCK_KEYS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context", "citations"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {"id", "name", "input", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error"},
}
_BY_ROLE = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
}
_THOUGHTS = ("thinking", "redacted_thinking")


def broken_rules(body: Any) -> list[str]:
    """Return every rule that a request body breaks; none of a good one."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    shape = [*_envelope(body), *_options(body), *_tools(body.get("tools", []))]
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*shape, "messages is empty or no array"]
    shape += [rule for message in messages for rule in _message(message)]
    if shape:
        return shape
    turns = [(m["role"], _blocks(m["content"])) for m in messages]
    return [*_order(turns), *_thinking(body, turns), *_points(body)]


def _envelope(body: dict[str, Any]) -> Iterator[str]:
    for key in sorted(body.keys() - set(_BODY_KEYS.split())):
        yield f"{key}: Extra inputs are not permitted"
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    if not isinstance(body.get("model", "m"), str):
        yield "model is no string"
    system = body.get("system")
    if system is not None and not isinstance(system, str):
        for block in system:
            yield from _block(block, ("text",))
    yield from _output(body.get("output_config", {}))
    yield from _tool_choice(body)


def _options(body: dict[str, Any]) -> Iterator[str]:
    if "temperature" in body and not 0 <= body["temperature"] <= 1:
        yield "temperature: range: 0..1"
    if "temperature" in body and "top_p" in body:
        yield "`temperature` and `top_p` cannot both be specified for this model."
    if any(not text.strip() for text in body.get("stop_sequences", ())):
        yield "stop_sequences: each stop sequence must contain non-whitespace"


def _output(output: dict[str, Any]) -> Iterator[str]:
    if output.keys() - {"effort", "format"} or output.get("effort") not in _EFFORTS:
        yield f"output_config: {output}"
    if "format" in output:
        yield from _open_objects(output["format"]["schema"])


def _tool_choice(body: dict[str, Any]) -> Iterator[str]:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind, names = choice.get("type"), [t.get("name") for t in body.get("tools", ())]
    if not names:
        yield "tool_choice may only be specified while providing `tools`."
    if kind not in ("auto", "any", "none", "tool"):
        yield f"tool_choice.type: {kind}"
    if kind == "none" and "disable_parallel_tool_use" in choice:
        yield "tool_choice.none.disable_parallel_tool_use: Extra inputs"
    if kind == "tool" and choice.get("name") not in names:
        yield f"Tool '{choice.get('name')}' not found in provided tools"


def _open_objects(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _open_objects(item)
    if isinstance(schema, dict):
        is_object = schema.get("type") == "object"
        if is_object and schema.get("additionalProperties") is not False:
            yield "output_config.format.schema: additionalProperties must be false"
        for value in schema.values():
            yield from _open_objects(value)


def _tools(tools: list[Any]) -> Iterator[str]:
    names = [tool.get("name") for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for place, tool in enumerate(tools):
        if not isinstance(tool.get("name"), str) or not _NAME.match(tool["name"]):
            yield f"tools.{place}.custom.name: {tool.get('name')!r}"
        if tool.get("type", "custom") != "custom":
            continue
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            yield f"tools.{place}.custom.input_schema: does not match the shape"
            continue
        if schema.get("type") != "object":
            yield f"tools.{place}.custom.input_schema.type: Field required"
        if schema.keys() & {"anyOf", "oneOf", "allOf"}:
            yield f"tools.{place}.custom.input_schema: anyOf at the top level"
        if any(not _KEY.match(key) for key in schema.get("properties", ())):
            yield f"tools.{place}.custom.input_schema.properties: property keys"
        if tool.get("strict"):
            yield from _strict(schema)


def _strict(schema: dict[str, Any]) -> Iterator[str]:
    unions = sum(
        "anyOf" in part or isinstance(part.get("type"), list)
        for part in schema.get("properties", {}).values()
    )
    if unions > _MOST_UNIONS:
        yield f"Schemas contains too many parameters with union types ({unions})"
    for name, part in schema.get("$defs", {}).items():
        if f"#/$defs/{name}'" in str(part):
            yield f"Circular reference detected in schema definitions: {name}"


def _message(message: Any) -> Iterator[str]:
    if not isinstance(message, dict) or message.get("role") not in _BY_ROLE:
        yield "messages: Input does not match the expected shape."
        return
    if unknown := message.keys() - {"role", "content"}:
        yield f"messages: {sorted(unknown)}: Extra inputs are not permitted"
    content = message.get("content")
    if not content or not isinstance(content, (str, list)):
        yield "messages: all messages must have non-empty content"
    for block in content if isinstance(content, list) else ():
        yield from _block(block, _BY_ROLE[message["role"]])


def _block(block: Any, allowed: tuple[str, ...]) -> Iterator[str]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in allowed:
        yield f"a block of the type {kind!r} does not belong here"
        return
    if unknown := block.keys() - _BLOCK_KEYS[kind] - {"type", "cache_control"}:
        yield f"{kind}: {sorted(unknown)}: Extra inputs are not permitted"
    yield from _FIELDS[kind](block)


def _text(block: dict[str, Any]) -> Iterator[str]:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        yield "text content blocks must contain non-whitespace text"


def _thought(block: dict[str, Any]) -> Iterator[str]:
    needed = ("thinking", "signature") if block["type"] == "thinking" else ("data",)
    if not all(isinstance(block.get(name), str) for name in needed):
        yield f"{block['type']}: {needed}: Field required"
    elif not block[needed[-1]] or "cache_control" in block:
        yield f"{block['type']}: Invalid `{needed[-1]}`"


def _call(block: dict[str, Any]) -> Iterator[str]:
    if not _ID.match(block.get("id", "")) or not _NAME.match(block.get("name", "")):
        yield f"tool_use: {block.get('id')!r} {block.get('name')!r}"
    if not isinstance(block.get("input"), dict):
        yield "tool_use.input: Input should be a valid dictionary"


def _result(block: dict[str, Any]) -> Iterator[str]:
    content = block.get("content")
    if not _ID.match(block.get("tool_use_id", "")):
        yield f"tool_result.tool_use_id: {block.get('tool_use_id')!r}"
    if block.get("is_error") and not content:
        yield "tool_result: content cannot be empty if `is_error` is true"
    for part in content if isinstance(content, list) else ():
        yield from _block(part, ("text", "image", "document"))


def _picture(block: dict[str, Any]) -> Iterator[str]:
    source = block["source"]
    if source.get("type") != "base64":
        return
    if source.get("media_type") not in _IMAGES:
        yield f"image.source.media_type: {source.get('media_type')!r}"
    if not is_base64(source.get("data", "")):
        yield "image.source.base64.data: invalid base64 data"


def _document(block: dict[str, Any]) -> Iterator[str]:
    if "source" not in block:
        yield "document.source: Field required"


_FIELDS = {
    "text": _text,
    "image": _picture,
    "document": _document,
    "thinking": _thought,
    "redacted_thinking": _thought,
    "tool_use": _call,
    "tool_result": _result,
}


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _order(turns: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    if turns[0][0] != "user":
        yield "messages: first message must use the user role"
    if any(one == other for (one, _), (other, _) in pairwise(turns)):
        yield "messages: roles must alternate between user and assistant"
    role, last = turns[-1]
    if role == "assistant" and last[-1].get("text", "").endswith((" ", "\n", "\t")):
        yield "messages: final assistant content cannot end with trailing whitespace"
    ids = [b["id"] for _, blocks in turns for b in blocks if b["type"] == "tool_use"]
    if len(set(ids)) < len(ids):
        yield "messages: `tool_use` ids must be unique"
    for (_, before), (_, blocks) in pairwise([("", []), *turns, ("", [])]):
        calls = {b["id"] for b in before if b["type"] == "tool_use"}
        kinds = [b["type"] for b in blocks]
        found = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if set(found) - calls:
            yield "messages: unexpected `tool_use_id` found in `tool_result` blocks"
        if calls - set(found):
            yield "messages: `tool_use` ids were found without `tool_result` blocks"
        if len(set(found)) < len(found):
            yield "messages: each tool_use must have a single result"
        if kinds[: len(found)] != ["tool_result"] * len(found):
            yield "messages: `tool_result` blocks come first"


def _thinking(
    body: dict[str, Any], turns: list[tuple[str, list[dict[str, Any]]]]
) -> Iterator[str]:
    thinking = body.get("thinking", {})
    kind, choice = thinking.get("type"), body.get("tool_choice", {}).get("type")
    if kind not in (None, "adaptive", "enabled", "disabled"):
        yield f"thinking.type: {kind}"
    if kind not in ("adaptive", "enabled"):
        return
    if body.get("temperature", 1) != 1 or body.get("top_p", 1) < 0.95:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if choice in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."
    if kind == "adaptive":
        return
    budget = thinking.get("budget_tokens", 0)
    if not 1024 <= budget < body["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if not _begins_with_thinking(turns):
        yield (
            "Expected `thinking` or `redacted_thinking`, but found another block. When "
            "`thinking` is enabled, a final `assistant` message must start with a "
            "thinking block"
        )


def _begins_with_thinking(turns: list[tuple[str, list[dict[str, Any]]]]) -> bool:
    """Look at the first of the assistant's messages in the open turn of calls."""
    first = None
    for role, blocks in reversed(turns):
        if role == "assistant":
            first = blocks[0]["type"]
        elif not any(block["type"] == "tool_result" for block in blocks):
            break
    return first is None or first in _THOUGHTS


def _points(body: dict[str, Any]) -> Iterator[str]:
    places = [body, *body.get("tools", ()), *_blocks(body.get("system") or [])]
    places += [b for m in body["messages"] for b in _blocks(m["content"])]
    points = sum("cache_control" in place for place in places)
    if points > _MOST_POINTS:
        yield f"A maximum of 4 blocks with cache_control may be provided: {points}."


Block = dict[str, Any]


class AnthropicAgent(FakeUpstream):
    """Calls the first tool once a question, then says "Done."; each answer is thought.

    It refuses what the judge refuses, and thinking that it did not say so. `lost` are
    ids of its calls before which the thinking was missing, although it was thinking.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.lost: list[str] = []
        self._thoughts: dict[str, Block] = {}  # by signature
        self._calls: dict[str, Block] = {}  # the thought before each call, by its id

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if reasons := [*broken_rules(body), *self._unfaithful(body)]:
            self.refusals += reasons
            error = {"type": "invalid_request_error", "message": "; ".join(reasons)}
            return web.json_response({"type": "error", "error": error}, status=400)
        return await play(request, Script(self._answer(body)))

    def _unfaithful(self, body: Any) -> Iterator[str]:
        is_thinking = "thinking" in body
        for message in body["messages"]:
            before: Block = {}
            for block in _blocks(message["content"]):
                if block["type"] == "thinking":
                    if block != self._thoughts.get(block["signature"]):
                        yield "Invalid `signature` in `thinking` block"
                    before = block
                wanted = self._calls.get(block.get("id", ""), before)
                if is_thinking and wanted != before:
                    self.lost.append(block["id"])

    def _answer(self, body: Any) -> list[bytes]:
        number = len(self.requests)
        last = [block["type"] for block in _blocks(body["messages"][-1]["content"])]
        pieces, thought = [start()], Block()
        if body.get("thinking", {}).get("type") in ("adaptive", "enabled"):
            words, signature = f"Thought {number}: é.", f"S{number}+/=="
            thought = {"type": "thinking", "thinking": words, "signature": signature}
            self._thoughts[signature] = thought
            pieces.append(thinking_block(0, words, signature=signature))
        place = len(pieces) - 1
        if not body.get("tools") or "tool_result" in last:
            return [*pieces, text_block(place, "Done."), end()]
        call_id, name = f"toolu_{number}", body["tools"][0]["name"]
        if thought:
            self._calls[call_id] = thought
        return [
            *pieces,
            call_block(place, name, "{}", call_id=call_id),
            end("tool_use"),
        ]
