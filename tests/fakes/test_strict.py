"""The strict upstream really refuses: each of its rules, broken once."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.strict import broken_rules


def good() -> dict[str, Any]:
    """A body that uses everything and breaks nothing."""
    call = {"id": "c1", "type": "function"}
    function = {"name": "view", "arguments": "{}"}
    schema = {"type": "object", "properties": {}}
    picture = {"url": "data:image/png;base64,iVBORw0KGgo="}
    return {
        "model": "m",
        "stream": True,
        "tools": [
            {"type": "function", "function": {"name": "view", "parameters": schema}}
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "image_url", "image_url": picture}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**call, "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
        ],
    }


def _messages(change: Callable[[list[Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda body: change(body["messages"])


def _call(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda body: body["messages"][2]["tool_calls"][0].update(fields)


def _function(**fields: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda b: b["messages"][2]["tool_calls"][0]["function"].update(fields)


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown key": lambda b: b.update(silent=False),
    "no model": lambda b: b.pop("model"),
    "not streamed": lambda b: b.update(stream=False),
    "no tools but a choice": lambda b: b.pop("tools"),
    "an empty list of tools": lambda b: b.update(tools=[]),
    "the same tool twice": lambda b: b.update(tools=b["tools"] * 2),
    "a tool name with a dot": lambda b: b["tools"][0]["function"].update(name="a.b"),
    "no schema": lambda b: b["tools"][0]["function"].update(parameters={}),
    "properties of null": lambda b: b["tools"][0]["function"].update(
        parameters={"type": "object", "properties": None}
    ),
    "no messages": lambda b: b.update(messages=[]),
    "an unknown role": _messages(lambda m: m[0].update(role="human")),
    "an unknown key of a message": _messages(lambda m: m[3].update(name="view")),
    "null for a user": _messages(lambda m: m[1].update(content=None)),
    "an empty array": _messages(lambda m: m[1].update(content=[])),
    "an empty text": _messages(
        lambda m: m[1].update(content=[{"type": "text", "text": ""}])
    ),
    "a picture by address": _messages(
        lambda m: m[1]["content"][0].update(image_url={"url": "https://x/y.png"})
    ),
    "a number as content": _messages(lambda m: m[1].update(content=1)),
    "the assistant first": _messages(lambda m: m.pop(1)),
    "the assistant last": _messages(
        lambda m: m.append({"role": "assistant", "content": "x"})
    ),
    "two users in a row": _messages(
        lambda m: m.extend([{"role": "user", "content": "x"}] * 2)
    ),
    "a result that is missing": _messages(lambda m: m.pop(3)),
    "a result twice": _messages(lambda m: m.append(m[3])),
    "a result of nothing": _messages(lambda m: m[3].update(tool_call_id="c2")),
    "no calls in the list": _messages(lambda m: m[2].update(tool_calls=[])),
    "a call twice": _messages(lambda m: m[2].update(tool_calls=m[2]["tool_calls"] * 2)),
    "a long id": _call(id="x" * 41),
    "an empty id": _call(id=""),
    "an id in another script": _call(id="ид"),
    "a function name with a space": _function(name="a b"),
    "arguments that are a list": _function(arguments="[]"),
    "arguments that are an object": _function(arguments={}),
}


def test_a_good_body_breaks_no_rule() -> None:
    assert broken_rules(good()) == []


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_named(change: Callable[[dict[str, Any]], Any]) -> None:
    body = copy.deepcopy(good())
    change(body)
    assert broken_rules(body)
