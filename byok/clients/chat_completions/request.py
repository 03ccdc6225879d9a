"""Chat Completions: read a body (OpenAI API reference, "Create chat completion")."""

from functools import partial
from typing import Any

from byok.chat import (
    ChatRequest,
    Json,
    Sampling,
    ToolChoice,
    ToolUse,
)
from byok.clients.chat_completions.messages import add_message
from byok.clients.chat_completions.reply import CompletionReply
from byok.clients.fields import (
    count,
    feature_refusal,
    flag,
    mapping,
    number,
    objects,
    strings,
    text,
)
from byok.clients.openai_fields import read_format, read_use
from byok.clients.question import Question
from byok.clients.tools import ToolList
from byok.clients.turns import Turns

_REFUSED = ("functions", "function_call", "audio", "logprobs", "top_logprobs")
_IGNORED = (
    *("frequency_penalty", "presence_penalty", "logit_bias", "seed", "store"),
    *("prediction", "verbosity", "web_search_options"),
)


def decode_completion(body: Json) -> Question:
    """Decode the body of a chat completion.

    Raises:
        BadRequest: a field is wrong, or byok cannot do what it asks for.
    """
    for name in _REFUSED:
        if body.get(name):
            raise feature_refusal(f"byok does not translate {name}")
    if (count(body, "n") or 1) > 1:
        raise feature_refusal("byok asks for one answer only: n must be 1")
    tools = read_tools(body)
    choice = _read_choice(body.get("tool_choice"), tools)
    turns = Turns()
    for message in objects(body, "messages"):
        add_message(turns, message)
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
            count(body, "max_completion_tokens") or count(body, "max_tokens"),
            text(body, "reasoning_effort"),
            strings(body, "stop"),
        ),
        tool_choice=choice,
        json_answer=read_format(mapping(body, "response_format")),
        cache_key=text(body, "prompt_cache_key"),
    )
    options = mapping(body, "stream_options")
    reply = partial(
        CompletionReply,
        chat,
        freeform=tools.freeform,
        counts=flag(options, "include_usage") is True,
    )
    ignored = (name for name in _IGNORED if body.get(name))
    left_out = (*tools.left_out, *ignored)
    return Question(chat, flag(body, "stream") is True, reply, left_out)


def read_tools(body: Json) -> ToolList:
    """Read the definitions of the tools."""
    tools = ToolList()
    for row in objects(body, "tools"):
        match row.get("type", "function"):
            case "function":
                inner = mapping(row, "function")
                about = text(inner, "description")
                tools.add(text(inner, "name"), about, mapping(inner, "parameters"))
            case "custom":
                tools.add_freeform(mapping(row, "custom"))
            case kind:
                tools.leave_out(str(kind))
    return tools


def _read_choice(choice: Any, tools: ToolList) -> ToolChoice:
    """Read `tool_choice`: a mode, a tool, or the tools that are allowed."""
    if isinstance(choice, dict):
        kind = text(choice, "type")
        if kind == "allowed_tools":
            allowed = mapping(choice, kind)
            named = [_name_of(row) for row in objects(allowed, "tools")]
            tools.keep_only(named)
            choice = text(allowed, "mode") or None
        else:
            return tools.choose(ToolUse.REQUIRED, _name_of(choice))
    return tools.choose(read_use(choice))


def _name_of(row: Json) -> str:
    return text(mapping(row, text(row, "type")), "name")
