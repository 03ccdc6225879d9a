"""Messages API: encoding the request."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from byok.core.chat import (
    ChatRequest,
    Json,
    Sampling,
    TextPart,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.dialects.anthropic.messages import Conversation, ask_for_cache
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.chat_changes import ask_for_json
from byok.dialects.model_facts import ModelFacts, Replay, nearest_effort, unsent_effort
from byok.dialects.schemas import change_inside, write_parameters

# Messages API: the parameters for reasoning, and those that exclude it.
#
# Newer models decide themselves how much to think (`adaptive`, steered by `effort`),
# older ones get a budget of tokens (the API's guide, "Thinking"). With thinking, the
# API refuses sampling parameters and a forced tool; with a budget also a turn of tool
# calls that does not begin with a thinking block. From Claude 5 on, a request without
# the field `thinking` thinks: where no thinking is wanted, it must be `disabled`. So do
# the models of other makers that speak this API, and DeepSeek's want their thinking
# back then.


_BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 31_999,
}
_SMALLEST_BUDGET = 1024  # tokens that the API accepts
_LEAST_ANSWER_BESIDE_THINKING = (
    2048  # tokens; with fewer, thinking would leave no answer
)
_THOUGHTS = ("thinking", "redacted_thinking")
_RESULTS = {"tool_result"}
_TOO_MUCH = ("xhigh", "max")  # efforts with which thinking cannot be disabled
_NO_ROOM = "The model did not think, because max_tokens leaves no room for it."
_FORCED = "The model did not think, because a tool call was demanded."
UNSIGNED = (
    "The model does not think in this turn, because the turn began without its own "
    "reasoning."
)


class Reasoning(Struct, frozen=True):
    """The body's fields for reasoning; `is_off` if the model is not to think.

    Why a wish for it is not met is told once in the conversation (`unsent`), or at the
    beginning of a turn (`notices`).
    """

    fields: Json
    unsent: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    is_off: bool = False

    @property
    def thinks(self) -> bool:
        """Whether the model is asked to think."""
        return self.fields.get("thinking", {}).get("type") in ("adaptive", "enabled")


_DISABLED = {"thinking": {"type": "disabled"}}


def encode_reasoning(
    chat: ChatRequest, facts: ModelFacts, most: int, messages: Sequence[Json]
) -> Reasoning:
    """Return the parameters for a model; `most` is the `max_tokens` of the request.

    `messages` are the encoded ones with all thinking blocks.
    """
    effort = chat.sampling.effort
    if not facts.thinking:
        is_lost = effort not in ("", "none")
        return Reasoning({}, (unsent_effort(effort),) if is_lost else ())
    if facts.adaptive_thinking:
        return _adaptive(chat, facts, most)
    off = _DISABLED if facts.adaptive_thinking is None else {}
    return _budget(chat, most, messages, _graded(effort, facts.efforts), off)


def _graded(effort: str, efforts: Iterable[str]) -> Json:
    """Return the parameter for the nearest accepted effort, if one is wanted."""
    graded = nearest_effort(effort, efforts) if effort != "none" else ""
    return {"output_config": {"effort": graded}} if graded else {}


def _adaptive(chat: ChatRequest, facts: ModelFacts, most: int) -> Reasoning:
    """Let the model decide; without a wish for effort, wishes that exclude it count."""
    sampling = chat.sampling
    is_forced = chat.tool_choice.use is ToolUse.REQUIRED
    is_sampled = (sampling.temperature, sampling.top_p) != (None, None)
    is_unasked = chat.silent or is_sampled
    is_off = (
        is_forced
        or most < _LEAST_ANSWER_BESIDE_THINKING
        or (is_unasked and not sampling.effort)
    )
    if is_off or sampling.effort == "none":
        is_lost = is_forced and sampling.effort not in ("", "none")
        output = _graded(sampling.effort, set(facts.efforts).difference(_TOO_MUCH))
        told = (_FORCED,) if is_lost else ()
        return Reasoning({**_DISABLED, **output}, told, is_off=True)
    # Newer models leave the text out unless it is asked for.
    thinking = {"type": "adaptive", "display": "summarized"}
    return Reasoning({"thinking": thinking, **_graded(sampling.effort, facts.efforts)})


def _budget(
    chat: ChatRequest, most: int, messages: Sequence[Json], output: Json, off: Json
) -> Reasoning:
    """Give a budget of tokens, where an effort is wanted and the API takes one.

    `off` are the fields that a model needs so that it does not think; none are needed
    where it thinks only when it is asked to.
    """
    effort, is_forced = chat.sampling.effort, chat.tool_choice.use is ToolUse.REQUIRED
    if off and not effort and not is_forced:
        return Reasoning({})  # it thinks by itself
    if effort not in _BUDGETS:
        return Reasoning({**off, **output}, is_off=True)
    budget = min(_BUDGETS[effort], most * 3 // 4)
    off = {**off, **output}
    if is_forced:
        return Reasoning(off, (_FORCED,), is_off=True)
    if budget < _SMALLEST_BUDGET:
        return Reasoning(off, (_NO_ROOM,), is_off=True)
    if not all(is_thought(m["content"][0]) for m in _turn_starts(messages)):
        so_far = sum(m["role"] == "assistant" for m in _open_turn(messages))
        told = (UNSIGNED,) if so_far == 1 else ()
        return Reasoning(off, notices=told, is_off=True)
    thinking = {"type": "enabled", "budget_tokens": budget}
    return Reasoning({"thinking": thinking, **output})


def _open_turn(messages: Sequence[Json]) -> list[Json]:
    """Return the messages from the last one of the user without tool results on."""
    turn: list[Json] = []
    for message in reversed(messages):
        turn.insert(0, message)
        if message["role"] == "user" and not _kinds(message) & _RESULTS:
            break
    return turn


def _turn_starts(messages: Sequence[Json]) -> Iterator[Json]:
    """Yield the assistant's messages that must begin with thinking.

    These are the first one of the open turn and, as the API may see a new turn there,
    each one after words beside tool results.
    """
    for one, other in pairwise(_open_turn(messages)):
        if other["role"] == "assistant" and _kinds(one) != _RESULTS:
            yield other


def _kinds(message: Json) -> set[str]:
    return {block["type"] for block in message["content"]}


def is_thought(block: Json) -> bool:
    """Tell whether a block is reasoning."""
    return block["type"] in _THOUGHTS


def without_thinking(messages: Iterable[Json]) -> list[dict[str, Any]]:
    """Return messages without thinking blocks, and without those left empty."""
    kept = (
        {
            **message,
            "content": [b for b in message["content"] if not is_thought(b)],
        }
        for message in messages
    )
    return [message for message in kept if message["content"]]


def encode_sampling(
    sampling: Sampling, thinks: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body's sampling fields, and what was left out as sentences.

    Temperatures end at 1, and newer models take one of both parameters.
    """
    wanted = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    given = {name: value for name, value in wanted.items() if value is not None}
    if thinks:
        told = (f"This model takes no {name} while it thinks." for name in given)
        return {}, tuple(told)
    notices: list[str] = []
    if len(given) > 1:
        del given["top_p"]
        notices.append("This API takes temperature or top_p: top_p was left out.")
    if given.get("temperature", 0) > 1:
        given["temperature"] = 1.0
        notices.append("Temperatures of this API end at 1, so 1 was sent.")
    return given, tuple(notices)


# Messages API: answers that must be JSON.
#
# With a schema, `output_config.format` holds the model to it (the API's guide,
# "Structured outputs"); every object of the schema must be closed. Without one the
# system prompt asks for JSON.


def _close_objects(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    closed = change_inside(schema, _close_objects)
    if closed.get("type") == "object" or "properties" in closed:
        closed["additionalProperties"] = False
    return closed


_USUAL_ANSWER = 8192  # tokens, where the model's limit is unknown
_LEAST_ANSWER = 4096  # tokens that are asked for, however full the window is
_CHARS_A_TOKEN = 3


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Encode the body of `POST messages`."""
    if chat.json_answer and chat.json_answer.schema is None:
        chat = ask_for_json(chat)
    facts, talk = target.facts, Conversation()
    tools = [*map(_tool, chat.tools)]
    talk.add_all(chat.messages)
    most = _max_tokens(chat, facts)
    reasoning = encode_reasoning(chat, facts, most, talk.messages)
    if reasoning.is_off or facts.replay is Replay.NEVER:
        talk.messages = without_thinking(talk.messages)
    sampling, unsent = encode_sampling(chat.sampling, reasoning.thinks)
    body: dict[str, Any] = {"model": target.model, "max_tokens": most}
    if talk.system:
        body["system"] = talk.system
    body |= {"messages": talk.messages, "stream": True}
    if tools:
        body |= {"tools": tools, **_tool_choice(chat)}
    body |= {**sampling, **reasoning.fields, **_stops(chat)}
    if chat.json_answer:
        schema = _close_objects(chat.json_answer.schema)
        format_ = {"format": {"type": "json_schema", "schema": schema}}
        body["output_config"] = {**body.get("output_config", {}), **format_}
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
    """Return the field `tool_choice` where the default, any number, is not wanted."""
    choice, one = chat.tool_choice, not chat.client_parallel_tools
    only_one = {"disable_parallel_tool_use": True} if one else {}
    match choice.use:
        case ToolUse.NONE:
            return {"tool_choice": {"type": "none"}}
        case ToolUse.REQUIRED if choice.name:
            named = {"type": "tool", "name": choice.name}
            return {"tool_choice": {**named, **only_one}}
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
    if (wanted := chat.sampling.max_tokens) is not None:
        return wanted
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
