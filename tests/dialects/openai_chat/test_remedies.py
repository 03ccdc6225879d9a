"""Refusals and their remedies: what is left out, renamed, or said in words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts
from byok.dialects.openai_chat.quirks import DEFAULT, QUIRKS
from byok.dialects.openai_chat.remedies import REMEDIES, known_remedies
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    apply_remedies,
    find_remedy,
)
from tests.fakes.openai_bodies import CALLED, PICTURE, USER, body, tool

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
    return Sent(*apply_remedies(REMEDIES, request, remedies, **options))


def names(request: Any) -> list[str]:
    return [offered["function"]["name"] for offered in request.get("tools", ())]


def after(request: Any, message: str, **options: Any) -> Sent:
    """The request as it is sent after a refusal."""
    remedy = found(request, message)
    assert remedy
    return mended(request, [remedy], new=[remedy], **options)


# Parameters


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unsupported parameter: 'parallel_tool_calls'.", "parallel_tool_calls"),
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("`temperature` and `top_p` cannot both be specified", "temperature"),
        ("Unsupported value: 'Temperature' does not support 0.5", "temperature"),
        ("top_p must be 1", "top_p"),
        ("body.tool_choice: Input should be 'none'", "tool_choice"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("Unknown field seed", "seed"),
    ],
)
def test_remedy_finds_the_named_parameter(message: str, name: str) -> None:
    remedy = found(BODY, message, extra=["seed", "missing"])
    assert remedy and remedy.what == name


@pytest.mark.parametrize(
    "message",
    [
        "Unknown field seeds",
        "messages: at least one is required",
        "tools are not supported",
        "model not found",
        "stream must be true",
        "frequency_penalty is not supported",
        "",
    ],
)
def test_remedy_needs_a_name_in_the_refusal(message: str) -> None:
    assert found(BODY, message, extra=["seed", "missing"]) is None


def test_remedy_names_only_what_was_sent() -> None:
    assert found({"messages": []}, "temperature is not supported") is None


def test_remedy_may_also_drop_extra_body_fields() -> None:
    assert found(BODY, "Unknown field seed") is None


def test_remedy_needs_a_refusal_that_blames_the_request() -> None:
    assert found(BODY, "temperature sensor failed", status=500) is None


def test_remedy_for_a_context_overflow_does_not_drop_max_tokens() -> None:
    message = (
        "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum "
        "context length is 8192 tokens and your request has 8190 input tokens"
    )
    assert found(BODY, message) is None


@pytest.mark.parametrize(
    ("remedies", "gone", "added"),
    [
        pytest.param([], [], {}, id="nothing"),
        pytest.param(
            [("parameter", "temperature"), ("parameter", "top_p")],
            ["temperature", "top_p"],
            {},
            id="two",
        ),
        pytest.param([("parameter", "unknown")], [], {}, id="what was not there"),
        pytest.param(
            [("cap", "max_tokens")],
            ["max_tokens"],
            {"max_completion_tokens": 9},
            id="a cap",
        ),
        pytest.param(
            [("cap", "max_tokens"), ("parameter", "max_completion_tokens")],
            ["max_tokens"],
            {},
            id="both caps",
        ),
        pytest.param([("cap", "max_completion_tokens")], [], {}, id="a cap not sent"),
    ],
)
def test_remedy_drops_refused_parameters(
    remedies: list[tuple[str, str]], gone: list[str], added: dict[str, Any]
) -> None:
    before = dict(BODY)
    kept = {key: value for key, value in BODY.items() if key not in gone}
    sent = mended(BODY, [Remedy(*remedy) for remedy in remedies])
    assert sent == Sent({**kept, **added})
    assert before == BODY


def test_remedy_drops_max_tokens_after_renaming_it() -> None:
    once = found(BODY, "max_tokens is not supported")
    assert once == Remedy("cap", "max_tokens")
    renamed = mended(BODY, [once]).body
    assert found(renamed, "Unknown max_completion_tokens", once) == Remedy(
        "parameter", "max_completion_tokens"
    )


# Tools


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for function 'b': In context=('properties', 'a'), array schema "
        "missing items.",
        "tools.1.custom.input_schema: JSON schema is invalid.",
        "tools.1.custom: Invalid schema: Circular reference detected",
        "invalid JSON schema for tool b, tools[1].function.parameters: no 'properties'",
        "Invalid value at 'request.tools[0].function_declarations[1].parameters'",
        "`b` functionDeclaration `parameters.a` schema specified a wrong type",
        "tools[1].function.parameters must be valid JSON",
        "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ],
)
def test_remedy_leaves_out_a_named_tool(message: str) -> None:
    sent = after(body(tool("a"), tool("b"), tool("c")), message)
    assert names(sent.body) == ["a", "c"]
    (notice,) = sent.notices
    assert "left out: b." in notice


def test_remedy_finds_a_tool_by_a_path_that_only_it_has() -> None:
    message = (
        "tools.function.parameters is not a valid moonshot flavored json schema, "
        "details: <At path 'properties.x.items': type is not defined>"
    )
    odd = tool("odd", properties={"x": {"items": {}}})
    plain = tool("plain", properties={"x": {}})
    assert names(after(body(plain, odd), message).body) == ["plain"]
    assert (
        found(body(odd, {**odd, "function": odd["function"] | {"name": "b"}}), message)
        is None
    )


@pytest.mark.parametrize(
    "message",
    [
        "tools[0].function_declarations: Duplicate function declaration found.",
        "GenerateContentRequest.tools[0].function_declarations: Invalid schema.",
    ],
)
def test_remedy_does_not_read_tool_names_from_a_list_of_all_tools(message: str) -> None:
    assert found(body(tool("a"), tool("b")), message) is None


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("Invalid schema for function 'a'", None),
        ("It takes at most 1 functions.", None),
        ("Invalid schema: tools.0.description: at most 10", "tools"),
    ],
)
def test_remedy_drops_tools_of_extra_body_only_as_a_field(
    message: str, remedy: str | None
) -> None:
    own = {"type": "web_search"}
    request = {**body(), "tools": [own, own]}
    wanted = remedy and Remedy("parameter", remedy)
    assert found(request, message, extra=("tools",)) == wanted


def test_remedy_keeps_a_tool_that_nobody_names() -> None:
    request = body(tool("a"))
    assert found(request, "Invalid schema for function 'gone'") is None
    assert found(request, "tools.7.custom.input_schema: wrong") is None
    assert found(request, "Say 'a' more politely") is None


def test_remedy_offers_a_changed_tool_again() -> None:
    remedy = found(body(tool("a"), tool("b")), "Invalid schema for function 'b'")
    assert remedy
    changed = body(tool("a"), tool("b", required=["x"]))
    assert mended(changed, [remedy]) == Sent(changed)


def test_remedy_drops_tool_fields_with_the_only_tool() -> None:
    request = body(tool("b"), parallel_tool_calls=False)
    assert after(request, "Invalid schema for function 'b'").body == body()


def test_remedy_notice_lists_left_out_tools_in_the_first_turn() -> None:
    request = body(tool("a"), tool("b"), tool("c"))
    remedies = [
        remedy
        for name in "ab"
        if (remedy := found(request, f"Invalid schema for function '{name}'"))
    ]
    (notice,) = mended(request, remedies).notices
    assert "left out: a, b." in notice
    later = [USER, {"role": "assistant", "content": "Hi."}, USER]
    assert mended({**request, "messages": later}, remedies).notices == ()


@pytest.mark.parametrize(
    ("message", "most"),
    [
        (
            "Invalid 'tools': array too long. Expected an array with maximum length "
            "128, but got an array with length 150 instead.",
            128,
        ),
        ("'tools' : maximum number of items is 64", 64),
        ("You may not include more than 100 tools in your request.", 100),
        (
            "tools[0].function_declarations: [FIELD_INVALID] At most 140 function "
            "declarations can be specified.",
            140,
        ),
        ("Too many tools.", 128),
        ("claude-3-5-haiku supports up to 64 tools, o3 more.", 64),
        ("gpt-4.1 takes at most 64 tools, see error 3.", 64),
    ],
)
def test_remedy_offers_as_many_tools_as_are_taken(message: str, most: int) -> None:
    request = body(*(tool(f"t{n}") for n in range(150)))
    sent = after(request, message)
    assert names(sent.body) == [f"t{n}" for n in range(most)]
    (notice,) = sent.notices
    assert f"takes {most} tools" in notice


def test_remedy_for_a_known_tool_limit_is_presumed() -> None:
    (limit,) = known_remedies(UNKNOWN_MODEL, QUIRKS["openai"])
    assert limit == Remedy("most tools", "128")
    assert known_remedies(UNKNOWN_MODEL, DEFAULT) == ()
    request = body(*(tool(f"t{n}") for n in range(129)))
    assert len(mended(request, [limit]).body["tools"]) == 128
    few = body(tool("a"))
    assert mended(few, [limit]) == Sent(few)


def test_remedies_for_known_facts_are_presumed() -> None:
    facts = ModelFacts("m", most_tools=20, tools=False, images=False)
    assert known_remedies(facts, QUIRKS["openai"]) == (
        Remedy("most tools", "20"),
        Remedy("no tools"),
        Remedy("pictures"),
    )


def test_remedy_truncates_long_tool_descriptions() -> None:
    message = (
        "Invalid 'tools[0].function.description': string too long. Expected a string "
        "with maximum length 1024, but got a string with length 1440 instead."
    )
    sent = after(body(tool("a", "x" * 1440), tool("b", "short")), message)
    said = [offered["function"]["description"] for offered in sent.body["tools"]]
    assert len(said[0]) <= 1024
    assert said[0].startswith("xxx")
    assert said[1] == "short"
    assert sent.notices == ()


def test_remedy_for_a_model_without_tools() -> None:
    request = body(tool("b"), messages=CALLED, parallel_tool_calls=False)
    sent = after(request, "gemma does not support tools", agent=True)
    assert sent.body.keys() == {"model", "messages"}
    assert [message["role"] for message in sent.body["messages"]] == ["system", "user"]
    assert "out" in sent.body["messages"][1]["content"]
    (notice,) = sent.notices
    assert "without tools" in notice
    assert "Choose a model that can call tools" in notice


def test_remedy_keeps_tools_where_only_a_field_beside_them_is_refused() -> None:
    request = body(tool("b"))
    message = "No endpoints found that support the provided 'tool_choice' value."
    sent = after(request, message)
    assert names(sent.body) == ["b"] and "tool_choice" not in sent.body
    remedy = found(sent.body, message)  # and if that was no help
    assert remedy and names(mended(sent.body, [remedy]).body) == []


def test_remedy_notice_of_missing_tools_is_for_agents_only() -> None:
    assert after(body(tool("b")), "It does not support tools").notices == ()


@pytest.mark.parametrize(
    "message",
    [
        "tools: Field required when messages contain tool_use blocks.",
        "Anthropic expects the `tools=` param to be passed in",
        "The toolConfig field must be defined when using toolUse",
        "It does not support tools",
    ],
)
def test_remedy_without_tools_writes_old_tool_calls_as_text(message: str) -> None:
    sent = after(body(messages=CALLED), message)
    assert not any(m.get("tool_calls") for m in sent.body["messages"])
    assert sent.notices == ()


def test_remedy_with_tools_keeps_old_tool_calls() -> None:
    request = body(tool("b"), messages=CALLED)
    assert mended(request, [Remedy("calls")]) == Sent(request)
    assert found(request, "tools: Field required") is None


# Pictures


def test_remedy_replaces_images_for_a_text_model() -> None:
    sent = after(body(messages=[PICTURE]), "image input is not supported")
    (message,) = sent.body["messages"]
    assert message["content"].startswith("Look.\n\n[a picture stood here")
    assert len(sent.notices) == 1
    assert found(sent.body, "image input is not supported") is None


def test_remedy_notice_of_an_old_image_is_not_repeated() -> None:
    said = {"role": "assistant", "content": "A cat."}
    remedies = [Remedy("pictures")]
    assert mended(body(messages=[PICTURE, said, USER]), remedies).notices == ()
    assert mended(body(messages=[USER, said, PICTURE]), remedies).notices


def test_remedy_is_not_applied_twice() -> None:
    made = Remedy("pictures")
    assert found(body(messages=[PICTURE]), "image input is not supported", made) is None


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


def test_remedy_for_refused_reasoning_removes_it_from_the_history() -> None:
    said = {"role": "assistant", "content": "Yes.", "reasoning_content": "hm"}
    request = {"messages": [USER, said, USER]}
    sent = after(
        request, "messages.1.reasoning_content: Extra inputs are not permitted"
    )
    assert sent.body["messages"][1] == {"role": "assistant", "content": "Yes."}
    assert found({"messages": [USER]}, "unknown reasoning_content") is None


def test_remedy_for_missing_reasoning_sends_a_space() -> None:
    said = {"role": "assistant", "content": "Yes.", "reasoning_content": ""}
    missing = "reasoning_content is missing in assistant tool call message at index 2"
    sent = after({"messages": [USER, said, USER]}, missing)
    assert sent.body["messages"][1]["reasoning_content"] == " "
    known = {**said, "reasoning_content": "hm"}
    assert found({"messages": [USER, known]}, missing) is None


def test_remedy_for_refused_cache_points_removes_all() -> None:
    point = {"cache_control": {"type": "ephemeral"}}
    parts = [{"type": "text", "text": "x", **point}]
    request = {"messages": [{"role": "user", "content": parts}], **point}
    sent = after(request, "Unknown field cache_control")
    plain = [{"type": "text", "text": "x"}]
    assert sent.body == {"messages": [{"role": "user", "content": plain}]}


@pytest.mark.parametrize(
    "fields", [{"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}]
)
def test_remedy_for_a_refused_effort_is_told(fields: dict[str, Any]) -> None:
    request = {"messages": [USER], **fields}
    name = "reasoning.effort" if "reasoning" in fields else "reasoning_effort"
    sent = after(request, f"Unsupported parameter: '{name}'")
    assert sent.body == {"messages": [USER]}
    assert "effort" in sent.notices[0]


def test_remedy_for_a_cap_that_is_too_large_lowers_it() -> None:
    request = {"messages": [USER], "max_tokens": 200_000}
    sent = after(request, "max_tokens is too large: 200000. It supports at most 128000")
    assert sent.body["max_tokens"] == 128_000
