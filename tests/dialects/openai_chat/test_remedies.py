"""Refusals and their remedies: what is left out, renamed, or said in words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.remedies import REMEDIES
from byok.dialects.remedies import RefusedRequest, Remedy, change_body, find_remedy

USER = {"role": "user", "content": "Hi?"}


def tool(name: str, description: str = "", **schema: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, **schema}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def body(*tools: Any, messages: Any = (USER,), **fields: Any) -> dict[str, Any]:
    offered = {"tools": list(tools), "tool_choice": "auto"} if tools else {}
    return {"model": "m", "messages": list(messages), **offered, **fields}


BODY = {
    "model": "m",
    "messages": [],
    "stream": True,
    "stream_options": {},
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 1,
    "seed": 7,
}


def found(
    request: Any, message: str, *known: Remedy, status: int = 400, extra: Any = ()
) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, status)
    refused = RefusedRequest(request, error, tuple(extra), known)
    return find_remedy(REMEDIES, refused)


class Sent(NamedTuple):
    """A body as it is sent, and what the user hears of its changes."""

    body: dict[str, Any]
    notices: tuple[str, ...] = ()


def mended(request: Any, remedies: Iterable[Remedy], **options: Any) -> Sent:
    return Sent(*change_body(REMEDIES, request, remedies, **options))


def after(request: Any, message: str, **options: Any) -> Sent:
    """The request as it is sent after a refusal."""
    remedy = found(request, message)
    assert remedy
    return mended(request, [remedy], new=[remedy], **options)


# Parameters


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("Unsupported value: 'Temperature' does not support 0.5", "temperature"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("Unknown field seed", "seed"),
        ("Argument not supported on this model: maxTokens", "max_tokens"),
    ],
)
def test_remedy_finds_the_named_parameter(message: str, name: str) -> None:
    remedy = found(BODY, message, extra=["seed", "missing"])
    assert remedy and remedy.what == name


@pytest.mark.parametrize(
    "message",
    [
        "Unknown field seeds",
        "tools are not supported",
        "frequency_penalty is not supported",
    ],
)
def test_remedy_needs_a_name_in_the_refusal(message: str) -> None:
    assert found(BODY, message, extra=["seed", "missing"]) is None


def test_remedy_for_a_context_overflow_does_not_drop_max_tokens() -> None:
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum "
        "context length is 8192 tokens and your request has 8190 input tokens"
    )
    assert found(BODY, message) is None


def test_remedy_drops_max_tokens_after_renaming_it() -> None:
    once = found(BODY, "max_tokens is not supported")
    assert once == Remedy("cap", "max_tokens")
    renamed = mended(BODY, [once]).body
    assert found(renamed, "Unknown max_completion_tokens", once) == Remedy(
        "parameter", "max_completion_tokens"
    )


# Reasoning, caching and limits


def test_remedy_for_tools_without_reasoning_says_so() -> None:
    request = body(tool("a"))
    sent = after(
        request,
        "Function tools with reasoning_effort are not supported. Use /v1/responses "
        "or set reasoning_effort to 'none'.",
    )
    assert sent.body["reasoning_effort"] == "none"
    assert "without reasoning" in sent.notices[0]


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.reasoning_content: Extra inputs are not permitted",
        "'messages.1' : for 'role:assistant' the following must be satisfied"
        "[('messages.1' : property 'reasoning_content' is unsupported)]",
        "messages[1].reasoning: reasoning is not supported with this model",
        "reasoning_content is not allowed in the messages of this model",
    ],
)
def test_remedy_for_refused_reasoning_removes_it_from_the_history(
    message: str,
) -> None:
    said = {"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}
    request = {"messages": [USER, said, USER]}
    sent = after(request, message)
    assert sent.body["messages"][1] == {"role": "assistant", "content": "Yes."}
    assert found({"messages": [USER]}, message) is None


def test_remedy_for_missing_reasoning_sends_a_space() -> None:
    said = {"role": "assistant", "content": "Yes.", "reasoning_content": ""}
    missing = "reasoning_content is missing in assistant tool call message at index 2"
    sent = after({"messages": [USER, said, USER]}, missing)
    assert sent.body["messages"][1]["reasoning_content"] == " "
    step = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    sent = after({"messages": [USER, step]}, "`reasoning_content` must be passed back")
    assert sent.body["messages"][1] == {**step, "reasoning_content": " "}
    assert found({"messages": [USER, step]}, "Unknown field reasoning") is None
    known = {**said, "reasoning_content": "hm"}
    assert found({"messages": [USER, known]}, missing) is None


@pytest.mark.parametrize(
    "fields", [{"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}]
)
def test_remedy_for_a_refused_effort_is_told(fields: dict[str, Any]) -> None:
    request = {"messages": [USER], **fields}
    name = "reasoning.effort" if "reasoning" in fields else "reasoning_effort"
    sent = after(request, f"Unsupported parameter: '{name}'")
    assert sent.body == {"messages": [USER]}
    assert "effort" in sent.notices[0]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this "
        "model. Supported values are: 'low', 'medium', and 'high'.",
        "('body', 'reasoning_effort'): Input should be 'low', 'medium' or 'high', "
        "'input': 'xhigh'",
    ],
)
def test_remedy_for_an_effort_sends_the_nearest_that_is_taken(message: str) -> None:
    sent = after({"messages": [USER], "reasoning_effort": "xhigh"}, message)
    assert sent == ({"messages": [USER], "reasoning_effort": "high"}, ())


def test_remedy_does_not_take_the_least_answer_for_the_longest() -> None:
    request = {"messages": [USER], "max_tokens": 9000}
    for least in ("must be at least 1, got 0", "should be greater than or equal to 9"):
        remedy = found(request, f"max_tokens {least}.")
        assert remedy is None or remedy.change != "lower cap"


CALLED = {"role": "assistant", "tool_calls": [{"id": "c"}]}


@pytest.mark.parametrize(
    ("message", "before", "after"),
    [
        ("InternalError.Algo.InvalidParameter: The content field is a required field.",
         None, ""),
        ("The parameter is invalid. Please check again.", None, ""),
        ("Invalid value for 'content': expected a string, got null.", None, ""),
        ("Invalid 'content': 'content' field must be a string or an array of objects.",
         None, ""),
        ("None is not of type 'string' - 'messages.1.content'", None, ""),
        ("invalid message content type: <nil>", None, ""),
        ("body.messages.1.content.str: Input should be a valid string", None, ""),
        ("messages: text content blocks must be non-empty", "", None),
        ("messages: text content blocks must be non-empty", "I look.", "I look."),
    ],
)  # fmt: skip
def test_remedy_for_the_content_beside_tool_calls(
    message: str, before: str | None, after: str | None
) -> None:
    step = {**CALLED, "content": before}
    request = {"messages": [USER, step, {**CALLED, "content": "Words."}]}
    remedy = found(request, message)
    if before == after:
        assert remedy is None
        return
    assert remedy
    first, changed, last = mended(request, [remedy]).body["messages"]
    assert (changed["content"], last["content"]) == (after, "Words.")
    assert first == USER
