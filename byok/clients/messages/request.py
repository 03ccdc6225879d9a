"""Messages: read a body (Anthropic API reference, "Create a Message")."""

from functools import partial
from typing import Any

from byok.chat import ChatRequest, Json, JsonAnswer, Sampling, ToolChoice, ToolUse
from byok.clients.fields import (
    count,
    feature_refusal,
    flag,
    mapping,
    number,
    objects,
    strings,
    text,
    wrong_field,
)
from byok.clients.messages.blocks import add_message, read_system
from byok.clients.messages.reply import MessageReply
from byok.clients.question import Question
from byok.clients.tools import ToolList
from byok.clients.turns import Turns

_STATEFUL = ("container", "mcp_servers")
_IGNORED = ("top_k", "context_management", "service_tier")
_BUDGETS = ((4096, "low"), (16384, "medium"))  # of reasoning, below so many tokens
_USES = {
    "auto": ToolUse.AUTO,
    "any": ToolUse.REQUIRED,
    "none": ToolUse.NONE,
    "tool": ToolUse.REQUIRED,
}


def decode_message(body: Json) -> Question:
    """Decode the body of a message; `max_tokens` may be missing, as for counting.

    Raises:
        BadRequest: a field is wrong, or byok cannot do what it asks for.
    """
    for name in _STATEFUL:
        if body.get(name):
            raise feature_refusal(f"byok does not translate {name}")
    tools = read_tools(body)
    choice = mapping(body, "tool_choice")
    turns = Turns()
    turns.add_system(read_system(body))
    left_out: list[str] = []
    for message in objects(body, "messages"):
        left_out += add_message(turns, message)
    thinking = mapping(body, "thinking")
    chat = ChatRequest(
        turns.messages(),
        tools=tools.definitions,
        own_words=turns.own_words,
        user_texts=tuple(turns.user_texts),
        question=turns.own_words,
        agent=bool(tools.definitions),
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
    shows = text(thinking, "type") in ("enabled", "adaptive")
    reply = partial(MessageReply, chat, shows_thinking=shows)
    ignored = (name for name in _IGNORED if body.get(name))
    every = (*tools.left_out, *left_out, *ignored)
    return Question(chat, flag(body, "stream") is True, reply, every)


def read_tools(body: Json) -> ToolList:
    """Read the definitions of the tools; those that Anthropic defines are left out."""
    tools = ToolList()
    for row in objects(body, "tools"):
        kind = text(row, "type")
        if kind in ("", "custom"):
            about = text(row, "description")
            tools.add(text(row, "name"), about, mapping(row, "input_schema"))
        else:
            tools.leave_out(kind)
    return tools


def _read_choice(choice: Json, tools: ToolList) -> ToolChoice:
    kind = text(choice, "type") or "auto"
    if kind not in _USES:
        raise wrong_field("tool_choice", "auto, any, tool or none")
    return tools.choose(_USES[kind], text(choice, "name") if kind == "tool" else "")


def _read_effort(body: Json, thinking: Json) -> str:
    """Read how much the model should reason: its effort, else a budget in tokens."""
    if effort := text(mapping(body, "output_config"), "effort"):
        return effort
    if text(thinking, "type") == "disabled":
        return "none"
    if (budget := count(thinking, "budget_tokens")) is None:
        return ""
    found = (effort for most, effort in _BUDGETS if budget < most)
    return next(found, "high")


def _read_format(body: Json) -> JsonAnswer | None:
    form: dict[str, Any] = mapping(mapping(body, "output_config"), "format")
    form = form or mapping(body, "output_format")
    if not form:
        return None
    if text(form, "type") != "json_schema":
        raise wrong_field("the format", "a json_schema")
    return JsonAnswer(mapping(form, "schema"))
