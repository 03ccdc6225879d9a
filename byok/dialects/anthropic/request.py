"""Messages API: encoding the request.

Newer models decide themselves how much to think (`adaptive`, steered by `effort`),
older ones get a budget of tokens (the API's guide, "Thinking"). With thinking, the API
refuses sampling parameters and a required tool; with a budget also a turn of tool calls
that does not begin with a thinking block. From Claude 5 on, a request without the field
`thinking` thinks, so it must be `disabled` if no thinking is wanted. Models of other
makers that speak this API think by default as well, and DeepSeek's then need their
thinking back.

Rules of the API for messages (its reference, "Messages" and "Handle tool calls"): roles
alternate; all results of a turn are in one user message, directly after the calls and
before any other block; no text is blank; images are JPEG, PNG, GIF or WebP; thinking
blocks come back unchanged.

For answers in JSON, `output_config.format` has the schema, in which every object must
be closed (the API's guide, "Structured outputs"). Without a schema, the system prompt
asks for JSON.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from msgspec import Struct, field

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolUse,
    data_of,
    parts_of,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.cache_points import (
    FIELD,
    ends_of_turns,
    mark_end,
    mark_messages,
    point,
)
from byok.dialects.chat_changes import ask_for_json
from byok.dialects.model_facts import ModelFacts, Replay, nearest_effort, unsent_effort
from byok.dialects.remedies import Body
from byok.dialects.safe_names import NO_OUTPUT, read_arguments, without_none
from byok.dialects.schemas import change_inside, write_parameters

Block: TypeAlias = dict[str, Any]
_LOOKBACK = 20  # blocks
_NO_WORDS = "(no text)"
_SEPARATOR = "\n\n"  # between texts of a user or a system prompt
# The fields of reasoning blocks to send back; the last one must not be empty.
_SIGNED_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
_BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 31_999,
}
_MIN_BUDGET = 1024  # tokens; the API refuses less
_MIN_TOKENS_TO_THINK = 2048  # of an answer; with fewer, thinking would use up all
_THOUGHT_TYPES = ("thinking", "redacted_thinking")
_RESULTS = {"tool_result"}
_THINKING_EFFORTS = ("xhigh", "max")  # with these, thinking cannot be disabled
_NO_ROOM = "The model did not think, because max_tokens leaves no room for it."
_FORCED = "The model did not think, because a tool call was demanded."
UNSIGNED = (
    "The model does not think in this turn, because the turn began without its own "
    "reasoning."
)
_DISABLED = {"thinking": {"type": "disabled"}}
_DEFAULT_MAX_TOKENS = 8192  # if the model's limit is unknown
_MIN_MAX_TOKENS = 4096  # however full the window is
_CHARS_PER_TOKEN = 3


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode the body of `POST messages`."""
    if chat.json_answer and chat.json_answer.schema is None:
        chat = ask_for_json(chat)
    facts, conversation = target.facts, Conversation()
    tools = [*map(_tool, chat.tools)]
    conversation.add_all(chat.messages)
    max_tokens = _max_tokens(chat, facts)
    reasoning = encode_reasoning(chat, facts, max_tokens, conversation.messages)
    if reasoning.is_off or facts.replay is Replay.NEVER:
        conversation.messages = without_thinking(conversation.messages)
    sampling, unsent = _encode_sampling(chat.sampling, reasoning.thinks)
    stops = [text for text in chat.sampling.stop if text.strip()]  # not blank ones
    body: dict[str, Any] = {"model": target.model, "max_tokens": max_tokens}
    if conversation.system:
        body["system"] = conversation.system
    body |= {"messages": conversation.messages, "stream": True}
    if tools:
        body |= {"tools": tools, **_tool_choice(chat)}
    body |= {**sampling, **reasoning.fields}
    if stops:
        body["stop_sequences"] = stops
    if chat.json_answer:
        schema = _close_objects(chat.json_answer.schema)
        json_format = {"type": "json_schema", "schema": schema}
        config = {**body.get("output_config", {}), "format": json_format}
        body["output_config"] = config
    if target.cache:
        body = ask_for_cache(body, target.long_cache)
    return UpstreamRequest(
        "messages",
        body,
        notices=reasoning.notices,
        unsent=(*unsent, *reasoning.unsent),
    )


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
        "input_schema": write_parameters(tool.parameters, plain_keys=True),
    }


def _tool_choice(chat: ChatRequest) -> Json:
    """Return the field `tool_choice`, unless its default is right.

    By default, the model may call any number of tools.
    """
    choice, is_single = chat.tool_choice, not chat.client_parallel_tools
    only_one = {"disable_parallel_tool_use": True} if is_single else {}
    match choice.use:
        case ToolUse.NONE:
            return {"tool_choice": {"type": "none"}}
        case ToolUse.REQUIRED if choice.name:
            tool = {"type": "tool", "name": choice.name}
            return {"tool_choice": {**tool, **only_one}}
        case ToolUse.REQUIRED:
            return {"tool_choice": {"type": "any", **only_one}}
        case _:
            return {"tool_choice": {"type": "auto", **only_one}} if is_single else {}


def _max_tokens(chat: ChatRequest, facts: ModelFacts) -> int:
    """Return the user's `max_tokens`, or the model's limit within the window.

    Older models refuse a prompt and `max_tokens` that exceed the window together. The
    size of the prompt is an estimate; if it is wrong, a remedy corrects `max_tokens`.
    """
    if (requested := chat.sampling.max_tokens) is not None:
        return requested
    limit = facts.max_output or _DEFAULT_MAX_TOKENS
    if not facts.window:
        return limit
    chars = sum(  # without pictures and tools
        len(part.text if isinstance(part, TextPart) else part.content)
        for part in parts_of(chat.messages)
        if isinstance(part, (TextPart, ToolResult))
    )
    space = facts.window - chars // _CHARS_PER_TOKEN
    return min(limit, max(space, _MIN_MAX_TOKENS))


def _close_objects(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    closed = change_inside(schema, _close_objects)
    if closed.get("type") == "object" or "properties" in closed:
        closed["additionalProperties"] = False
    return closed


class Reasoning(Struct, frozen=True):
    """The body's fields for reasoning; `is_off` if the model must not think.

    If a wanted effort cannot be met, `unsent` tells why, for the conversation's first
    turn, or `notices`, for the beginning of any turn.
    """

    fields: Json
    unsent: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    is_off: bool = False

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think."""
        return self.fields.get("thinking", {}).get("type") in ("adaptive", "enabled")


def encode_reasoning(
    chat: ChatRequest, facts: ModelFacts, max_tokens: int, messages: Sequence[Json]
) -> Reasoning:
    """Return the parameters for a model.

    `messages` are the encoded ones with all thinking blocks.
    """
    effort = chat.sampling.effort
    if not facts.thinking:
        is_lost = effort not in ("", "none")
        return Reasoning({}, (unsent_effort(effort),) if is_lost else ())
    if facts.adaptive_thinking:
        return _encode_adaptive(chat, facts, max_tokens)
    off = _DISABLED if facts.adaptive_thinking is None else {}
    output = _effort_field(effort, facts.efforts)
    return _encode_budget(chat, max_tokens, messages, output, off)


def _effort_field(effort: str, efforts: Iterable[str]) -> Json:
    """Return the parameter for the nearest accepted effort, if one is wanted."""
    nearest = nearest_effort(effort, efforts) if effort != "none" else ""
    return {"output_config": {"effort": nearest}} if nearest else {}


def _encode_adaptive(
    chat: ChatRequest, facts: ModelFacts, max_tokens: int
) -> Reasoning:
    """Let the model decide how much to think, unless the request excludes thinking.

    If an effort is requested, it counts more than sampling parameters.
    """
    sampling = chat.sampling
    is_forced = chat.tool_choice.use is ToolUse.REQUIRED
    is_sampled = (sampling.temperature, sampling.top_p) != (None, None)
    is_unneeded = chat.silent or is_sampled
    is_off = (
        is_forced
        or max_tokens < _MIN_TOKENS_TO_THINK
        or (is_unneeded and not sampling.effort)
    )
    if is_off or sampling.effort == "none":
        is_lost = is_forced and sampling.effort not in ("", "none")
        output = _effort_field(
            sampling.effort, set(facts.efforts).difference(_THINKING_EFFORTS)
        )
        unsent = (_FORCED,) if is_lost else ()
        return Reasoning({**_DISABLED, **output}, unsent, is_off=True)
    # Newer models omit the text unless it is requested.
    thinking = {"type": "adaptive", "display": "summarized"}
    effort = _effort_field(sampling.effort, facts.efforts)
    return Reasoning({"thinking": thinking, **effort})


def _encode_budget(
    chat: ChatRequest,
    max_tokens: int,
    messages: Sequence[Json],
    output: Json,
    off: Json,
) -> Reasoning:
    """Set a budget of tokens, if an effort is wanted and the API accepts one.

    `off` are the fields that disable thinking; it is empty for a model that thinks only
    on request.
    """
    effort, is_forced = chat.sampling.effort, chat.tool_choice.use is ToolUse.REQUIRED
    if off and not effort and not is_forced:
        return Reasoning({})  # it thinks by default
    if effort not in _BUDGETS:
        return Reasoning({**off, **output}, is_off=True)
    budget = min(_BUDGETS[effort], max_tokens * 3 // 4)
    off = {**off, **output}
    if is_forced:
        return Reasoning(off, (_FORCED,), is_off=True)
    if budget < _MIN_BUDGET:
        return Reasoning(off, (_NO_ROOM,), is_off=True)
    if not all(is_thought(m["content"][0]) for m in _turn_starts(messages)):
        steps = sum(m["role"] == "assistant" for m in _open_turn(messages))
        notices = (UNSIGNED,) if steps == 1 else ()
        return Reasoning(off, notices=notices, is_off=True)
    thinking = {"type": "enabled", "budget_tokens": budget}
    return Reasoning({"thinking": thinking, **output})


def _open_turn(messages: Sequence[Json]) -> list[Json]:
    """Return the last message of the user without tool results, and all after it."""
    turn: list[Json] = []
    for message in reversed(messages):
        turn.insert(0, message)
        if message["role"] == "user" and not _block_types(message) & _RESULTS:
            break
    return turn


def _turn_starts(messages: Sequence[Json]) -> Iterator[Json]:
    """Yield the assistant's messages that must begin with thinking.

    These are the first one of the open turn, and each one after a message with text
    beside tool results, which the API may regard as a new turn.
    """
    for previous, message in pairwise(_open_turn(messages)):
        if message["role"] == "assistant" and _block_types(previous) != _RESULTS:
            yield message


def _block_types(message: Json) -> set[str]:
    return {block["type"] for block in message["content"]}


def is_thought(block: Json) -> bool:
    """Tell whether a block is reasoning."""
    return block["type"] in _THOUGHT_TYPES


def without_thinking(messages: Iterable[Json]) -> list[dict[str, Any]]:
    """Return messages without thinking blocks; empty ones are dropped."""
    bare = (
        {
            **message,
            "content": [b for b in message["content"] if not is_thought(b)],
        }
        for message in messages
    )
    return [message for message in bare if message["content"]]


def _encode_sampling(
    sampling: Sampling, thinks: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body's sampling fields, and notices about those left out.

    Temperatures end at 1, and newer models accept only one of both parameters.
    """
    fields = without_none(
        {"temperature": sampling.temperature, "top_p": sampling.top_p}
    )
    if thinks:
        left_out = (f"This model takes no {name} while it thinks." for name in fields)
        return {}, tuple(left_out)
    notices: list[str] = []
    if len(fields) > 1:
        del fields["top_p"]
        notices.append("This API takes temperature or top_p: top_p was left out.")
    if fields.get("temperature", 0) > 1:
        fields["temperature"] = 1.0
        notices.append("Temperatures of this API end at 1, so 1 was sent.")
    return fields, tuple(notices)


# --- The conversation ---


class Conversation(Struct):
    """An encoded conversation; `system` are the blocks of the system prompt."""

    system: list[Block] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def add_all(self, messages: Iterable[Message]) -> None:
        """Add messages."""
        for message in messages:
            match message.role:
                case Role.SYSTEM:
                    self.system += _texts(message.parts)
                case Role.ASSISTANT:
                    self._add("assistant", self._assistant(message.parts))
                case Role.USER:
                    parts = _join_texts(message.parts, _SEPARATOR)
                    self._add("user", [*map(_user_block, parts)])
                case Role.TOOL:
                    self._add("user", self._results(message.parts))
        if not self.messages:
            self._add("user", [_text(_NO_WORDS)])
        blocks = self.messages[-1]["content"]
        if self.messages[-1]["role"] == "assistant" and blocks[-1]["type"] == "text":
            # The API refuses white space at the end of a prefilled answer.
            blocks[-1] = _text(blocks[-1]["text"].rstrip())

    def _add(self, role: str, blocks: list[Block]) -> None:
        if blocks and self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        elif blocks:
            self.messages.append({"role": role, "content": blocks})

    def _assistant(self, parts: Iterable[Part]) -> list[Block]:
        blocks: list[Block] = []
        for part in _join_texts(parts):
            match part:
                case ThinkingPart():
                    blocks += _thinking(part)
                case ToolCall(id=call_id, name=name, arguments=arguments):
                    call = {"type": "tool_use", "id": call_id, "name": name}
                    blocks.append({**call, "input": read_arguments(arguments)})
                case TextPart(text=text):
                    blocks.append(_text(text))
                case _:
                    pass  # an assistant has no pictures and no results
        return blocks

    def _results(self, parts: Iterable[Part]) -> list[Block]:
        blocks: list[Block] = []
        for part in parts:
            if isinstance(part, ToolResult):
                # The API refuses errors without content.
                text = part.content if part.content.strip() else NO_OUTPUT
                images = [*map(_image, part.images)]
                block: Block = {"type": "tool_result", "tool_use_id": part.call_id}
                block["content"] = [_text(text), *images] if images else text
                blocks.append(block | ({"is_error": True} if part.is_error else {}))
        return blocks


def _texts(parts: Iterable[Part]) -> list[Block]:
    joined = _join_texts(parts, _SEPARATOR)
    return [_text(part.text) for part in joined if isinstance(part, TextPart)]


def _join_texts(parts: Iterable[Part], separator: str = "") -> Iterator[Part]:
    """Join adjacent texts, and drop blank ones.

    Without a separator, blank pieces of a text that is not blank are kept.
    """
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            pieces += [part.text] if part.text.strip() or not separator else []
            continue
        if (text := separator.join(pieces)).strip():
            yield TextPart(text)
        pieces = []
        yield part
    if (text := separator.join(pieces)).strip():
        yield TextPart(text)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _user_block(part: Part) -> Block:
    match part:
        case TextPart(text=text):
            return _text(text)
        case ImagePart():
            return _image(part)
        case _:
            return _text(_NO_WORDS)


def _image(image: ImagePart) -> Block:
    source = {"media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": {"type": "base64", **source}}


def _thinking(part: ThinkingPart) -> list[Block]:
    """Return the block of reasoning that the model wrote, unchanged, if it is valid.

    The data come from the client and may be damaged: an invalid block is dropped.
    """
    block = data_of(part).get("block")
    if not isinstance(block, dict):
        return []
    kind = block.get("type")
    names = _SIGNED_FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    fields = {name: block[name] for name in names if name in block}
    is_whole = len(fields) == len(names) and bool(names) and fields[names[-1]]
    if not is_whole or not all(isinstance(value, str) for value in fields.values()):
        return []
    return [{"type": kind, **fields}]


def ask_for_cache(body: Json, is_long: bool = False) -> Body:
    """Set the cache points of a body that has none; the API allows four.

    The first point is the field at the top. The second one is after the tools and the
    system prompt, which other conversations share. From a point, the API looks back 20
    blocks for a prefix in the cache. So a turn that added more blocks gets a third
    point at its beginning, where the previous request ended.
    """
    mark = point(is_long=is_long)
    # The system prompt comes after the tools.
    body = mark_end(body, "system" if body.get("system") else "tools", mark)
    messages = body["messages"]
    previous = ends_of_turns(messages)[-2:-1]  # the index where the last request ended
    new = messages[previous[0] + 1 :] if previous else ()
    if sum(len(message["content"]) for message in new) >= _LOOKBACK:
        body = mark_messages(body, previous, mark)
    return {**body, FIELD: mark}
