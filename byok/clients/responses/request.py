"""Responses: read a body (OpenAI API reference, "Create a model response").

byok stores no responses. So the conversation must come with every request, and what
refers to a stored one is refused. `store` itself counts only where it is true.
"""

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
    text,
)
from byok.clients.openai_fields import read_format, read_use
from byok.clients.question import Question
from byok.clients.responses.items import add_items
from byok.clients.responses.reply import ResponseReply
from byok.clients.tools import ToolList
from byok.clients.turns import Turns

_STATEFUL = ("previous_response_id", "conversation", "prompt", "background", "store")
_STATELESS = "Send the whole conversation in input, with store set to false."
_IGNORED = ("max_tool_calls", "top_logprobs", "context_management")


def decode_response(body: Json) -> Question:
    """Decode the body of a response.

    Raises:
        BadRequest: a field is wrong, or byok cannot do what it asks for.
    """
    for name in _STATEFUL:
        if body.get(name):
            raise feature_refusal(
                f"byok stores no responses: {name} is refused", _STATELESS
            )
    tools = read_tools(body)
    choice = _read_choice(body.get("tool_choice"), tools)
    turns = Turns()
    turns.add_system(text(body, "instructions"))
    left_out = add_items(turns, body.get("input"))
    chat = ChatRequest(
        turns.messages(),
        tools=tools.definitions,
        own_words=turns.own_words,
        user_texts=tuple(turns.user_texts),
        question=turns.own_words,
        agent=bool(tools.definitions),
        client_parallel_tools=flag(body, "parallel_tool_calls") is not False,
        sampling=Sampling(
            number(body, "temperature"),
            number(body, "top_p"),
            count(body, "max_output_tokens"),
            text(mapping(body, "reasoning"), "effort"),
        ),
        tool_choice=choice,
        json_answer=_read_format(body),
        cache_key=text(body, "prompt_cache_key"),
    )
    reply = partial(
        ResponseReply,
        chat,
        freeform=tools.freeform,
        namespaces=tools.namespaces,
        asked=_shown_fields(body),
    )
    ignored = (name for name in _IGNORED if body.get(name))
    every = (*tools.left_out, *left_out, *ignored)
    return Question(chat, flag(body, "stream") is True, reply, every)


def read_tools(body: Json) -> ToolList:
    """Read the definitions of the tools; those that run at the vendor are left out."""
    tools = ToolList()
    for row in objects(body, "tools"):
        if text(row, "type") == "namespace":
            for inner in objects(row, "tools"):
                _add_tool(tools, inner, text(row, "name"))
        else:
            _add_tool(tools, row)
    return tools


def _add_tool(tools: ToolList, row: Json, namespace: str = "") -> None:
    match text(row, "type"):
        case "function":
            name = tools.whole_name(namespace, text(row, "name"))
            tools.add(name, text(row, "description"), mapping(row, "parameters"))
        case "custom":
            tools.add_freeform(row, namespace)
        case kind:
            tools.leave_out(kind)


def _read_choice(choice: Any, tools: ToolList) -> ToolChoice:
    """Read `tool_choice`: a mode, a tool, or the tools that are allowed."""
    if not isinstance(choice, dict):
        return tools.choose(read_use(choice))
    if text(choice, "type") == "allowed_tools":
        tools.keep_only(text(row, "name") for row in objects(choice, "tools"))
        return tools.choose(read_use(text(choice, "mode") or None))
    name = text(choice, "name") or text(choice, "type")
    return tools.choose(ToolUse.REQUIRED, name)


def _read_format(body: Json) -> JsonAnswer | None:
    return read_format(mapping(mapping(body, "text"), "format"))


def _shown_fields(body: Json) -> dict[str, Any]:
    """Return what a response repeats of its request; not what may be long."""
    effort = text(mapping(body, "reasoning"), "effort") or None
    choice = body.get("tool_choice")
    return {
        "max_output_tokens": count(body, "max_output_tokens"),
        "parallel_tool_calls": flag(body, "parallel_tool_calls") is not False,
        "reasoning": {"effort": effort, "summary": None},
        "temperature": number(body, "temperature"),
        "text": {"format": {"type": "text"}},
        "tool_choice": choice if isinstance(choice, str) else "auto",
        "top_p": number(body, "top_p"),
    }
