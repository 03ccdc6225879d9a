"""What a refusal changes in a conversation, the same for every dialect."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.dialects.base import DIALECTS, Target, UpstreamRequest, write_request
from byok.dialects.chat_changes import CHAT_ROWS, pictures_of, shows_picture
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.remedies import RefusedRequest, Remedy, find_remedy, rewrite_chat
from tests.fakes import (
    messages_api,
    ollama_server,
    responses_server,
    strict,
    strict_gemini,
)
from tests.fakes.histories import PNG, histories, user

Judge = Callable[[Any], list[str]]
# What each API has against a body, by the name of its dialect.
JUDGES: Mapping[str, Judge] = {
    "anthropic": messages_api.broken_rules,
    "openai_chat": strict.broken_rules,
    "gemini": lambda body: strict_gemini.broken_rules(body, "m"),
    "ollama": ollama_server.broken_rules,
    "openai_responses": responses_server.broken_rules,
}
SYSTEM = Message(Role.SYSTEM, (TextPart("Be exact."),))
CALL = ToolCall("c1", "b", '{"n": 1}')
RESULT = Message(Role.TOOL, (ToolResult("c1", "b", "out"),))
SHOT = Message(
    Role.TOOL, (ToolResult("c1", "b", "see [image 1 below]", False, (PNG,)),)
)
NO_PICTURE = "[a picture stood here; this model sees none]"


def tool(name: str, description: str = "", **schema: Any) -> ToolDefinition:
    parameters = {"type": "object", "properties": {}, **schema}
    return ToolDefinition(name, description, parameters)


def said(*parts: Any) -> Message:
    return Message(
        Role.ASSISTANT, tuple(TextPart(p) if isinstance(p, str) else p for p in parts)
    )


def chat(
    *tools: ToolDefinition, messages: tuple[Message, ...] = (user("Hi?"),), **more: Any
) -> ChatRequest:
    return ChatRequest(messages, tools, **more)


def found(
    asked: ChatRequest, message: str, *known: Remedy, own: Any = ()
) -> Remedy | None:
    """Return the remedy for a refusal of a conversation in Chat Completions.

    `own` are tools that the user adds to the body.
    """
    extra = {"tools": [*own]} if own else {}
    _, sent = write_request(DIALECTS["openai_chat"](""), asked, Target("m", extra))
    error = refusal_of({"error": {"message": message}}, 400)
    refused = RefusedRequest(
        sent.body, error, (*extra,), known, chat=asked, tool_names=sent.tool_names
    )
    return find_remedy(CHAT_ROWS, refused)


def after(asked: ChatRequest, message: str) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the conversation as it is sent after a refusal, and the notices."""
    remedy = found(asked, message)
    assert remedy
    return rewrite_chat(CHAT_ROWS, asked, [remedy], new=[remedy])


def names(asked: ChatRequest) -> list[str]:
    return [tool.name for tool in asked.tools]


def texts(asked: ChatRequest) -> list[tuple[str, ...]]:
    return [
        (m.role.value, *(p.text for p in m.parts if isinstance(p, TextPart)))
        for m in asked.messages
    ]


# Tools


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for function 'b': In context=('properties', 'a'), array schema "
        "missing items.",
        "tools.1.custom.input_schema: JSON schema is invalid.",
        "invalid JSON schema for tool b, tools[1].function.parameters: no 'properties'",
        "Invalid value at 'request.tools[0].function_declarations[1].parameters'",
        "`b` functionDeclaration `parameters.a` schema specified a wrong type",
        "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ],
)
def test_remedy_leaves_out_a_named_tool(message: str) -> None:
    sent, (notice,) = after(chat(tool("a"), tool("b"), tool("c")), message)
    assert names(sent) == ["a", "c"]
    assert "left out: b." in notice


@pytest.mark.parametrize(
    "message",
    [
        "Failed to initialize samplers: failed to parse grammar",
        'JSON schema conversion failed:\nUnrecognized schema: {"description":"Any."}',
        "Grammar error: Unknown format: uri",
        "The provided JSON schema contains features not supported by xgrammar.",
    ],
)
def test_remedy_leaves_constraints_out_that_no_grammar_can_be_written_for(
    message: str,
) -> None:
    odd = {
        "pattern": {"type": "string", "pattern": "\\d", "format": "uri"},
        "list": {"type": "array", "items": {"enum": ["a"], "maxLength": 9}},
        "either": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": 0}]},
        "any": {"description": "Whatever."},
    }
    plain = {
        "pattern": {"type": "string"},
        "list": {"type": "array", "items": {"enum": ["a"]}},
        "either": {"anyOf": [{"type": "integer"}, {"const": 0}]},
    }
    asked = chat(tool("a", properties=odd, required=["any"]), tool("b"))
    sent, notices = after(asked, message)
    parameters = {**sent.tools[0].parameters}
    anything = parameters["properties"].pop("any")
    assert anything["description"] == "Whatever." and "string" in anything["type"]
    assert parameters["properties"] == plain
    assert parameters["required"] == ["any"]
    assert (names(sent), notices) == (["a", "b"], ())
    assert found(asked, message, Remedy("simple schemas")) is None
    form = chat(json_answer=JsonAnswer({"type": "object"}))
    remedy = found(form, message)
    assert remedy and remedy.change == "json"


def test_remedy_knows_a_tool_by_the_name_that_was_sent() -> None:
    sent, (notice,) = after(
        chat(tool("a"), tool("my tool")),
        f"Invalid schema for function '{_alias('my tool')}'",
    )
    assert names(sent) == ["a"]
    assert "left out: my tool." in notice


def _alias(name: str) -> str:
    _, sent = write_request(DIALECTS["openai_chat"](""), chat(tool(name)), Target("m"))
    (alias,) = sent.tool_names
    return alias


def test_remedy_finds_a_tool_by_a_path_that_only_it_has() -> None:
    message = (
        "tools.function.parameters is not a valid moonshot flavored json schema, "
        "details: <At path 'properties.x.items': type is not defined>"
    )
    odd = tool("odd", properties={"x": {"items": {}}})
    plain = tool("plain", properties={"x": {}})
    assert names(after(chat(plain, odd), message)[0]) == ["plain"]
    assert found(chat(odd, replace(odd, name="b")), message) is None


def test_remedy_needs_one_tool_that_was_sent() -> None:
    messages = [
        "Invalid schema for function 'gone'",
        "tools.7.custom.input_schema: wrong",
        "Say 'a' more politely",
        "tools[0].function_declarations: Duplicate function declaration found.",
        "GenerateContentRequest.tools[0].function_declarations: Invalid schema.",
    ]
    asked = chat(tool("a"), tool("b"))
    assert [message for message in messages if found(asked, message)] == []


def test_a_refusal_beside_tools_of_the_users_own_is_of_its_tool_alone() -> None:
    own = [{"type": "function", "function": {"name": "mine"}}]
    asked = chat(tool("a"), tool("b"), tool("c"))
    for which in ("function 'mine'", "tools[3].function: no such schema"):
        assert found(asked, f"Invalid schema for {which}", own=own) is None
    remedy = found(asked, "Invalid schema for function 'b'", own=own)
    assert remedy and (remedy.change, remedy.what) == ("tool", "b")
    remedy = found(asked, "It takes at most 3 functions.", own=own)
    assert remedy and (remedy.change, remedy.what) == ("most tools", "2")


def test_remedy_drops_the_demand_for_a_tool_with_it() -> None:
    asked = chat(tool("a"), tool("b"), tool_choice=ToolChoice(ToolUse.REQUIRED, "b"))
    assert after(asked, "Invalid schema for function 'b'")[0] == chat(tool("a"))


def test_remedy_notice_lists_left_out_tools_in_the_first_turn() -> None:
    asked = chat(tool("a"), tool("b"), tool("c"))
    remedies = [
        remedy
        for name in "ab"
        if (remedy := found(asked, f"Invalid schema for function '{name}'"))
    ]
    _, (notice,) = rewrite_chat(CHAT_ROWS, asked, remedies)
    assert "left out: a, b." in notice
    later = replace(asked, messages=(user("?"), said("Hi."), user("?")))
    assert rewrite_chat(CHAT_ROWS, later, remedies)[1] == ()


@pytest.mark.parametrize(
    ("message", "most"),
    [
        (
            "Invalid 'tools': array too long. Expected an array with maximum length "
            "128, but got an array with length 150 instead.",
            128,
        ),
        ("'tools' : maximum number of items is 64", 64),
        (
            "tools[0].function_declarations: [FIELD_INVALID] At most 140 function "
            "declarations can be specified.",
            140,
        ),
        ("Too many tools.", 128),
        ("claude-3-5-haiku supports up to 64 tools, o3 more.", 64),
    ],
)
def test_remedy_offers_as_many_tools_as_are_taken(message: str, most: int) -> None:
    sent, (notice,) = after(chat(*(tool(f"t{n}") for n in range(150))), message)
    assert names(sent) == [f"t{n}" for n in range(most)]
    assert f"takes {most} tools" in notice


def test_remedy_for_too_many_tools_keeps_the_called_ones_in_their_order() -> None:
    asked = chat(
        *map(tool, "xybz"), messages=(user("?"), said(CALL), RESULT), agent=True
    )
    sent, _ = after(asked, "At most 2 tools are taken.")
    assert names(sent) == ["x", "b"]


def test_remedy_truncates_long_tool_descriptions() -> None:
    message = (
        "Invalid 'tools[0].function.description': string too long. Expected a string "
        "with maximum length 1024, but got a string with length 1440 instead."
    )
    sent, notices = after(chat(tool("a", "x" * 1440), tool("b", "short")), message)
    long, short = (tool.description for tool in sent.tools)
    assert len(long) <= 1024 and long.startswith("xxx")
    assert (short, notices) == ("short", ())


def test_remedy_for_a_model_without_tools() -> None:
    asked = chat(tool("b"), messages=(user("Hi?"), said(CALL), RESULT), agent=True)
    sent, (notice,) = after(asked, "gemma does not support tools")
    assert sent.tools == ()
    assert [role for role, *_ in texts(sent)] == ["system", "user"]
    assert "without tools" in notice
    assert "Choose a model that can call tools" in notice
    quiet = replace(asked, agent=False)
    assert after(quiet, "gemma does not support tools")[1] == ()


def test_remedy_keeps_tools_where_only_a_field_beside_them_is_refused() -> None:
    message = "No endpoints found that support the provided 'tool_choice' value."
    assert found(chat(tool("b")), message) is None
    sent = {"model": "m", "messages": [], "tools": [{}]}  # without that field
    error = refusal_of({"error": {"message": message}}, 400)
    remedy = find_remedy(CHAT_ROWS, RefusedRequest(sent, error, chat=chat(tool("b"))))
    assert remedy and remedy.change == "no tools"


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
    asked = chat(messages=(user("Hi?"), said(CALL), RESULT))
    sent, notices = after(asked, message)
    assert [role for role, *_ in texts(sent)] == ["system", "user"]
    assert notices == ()
    idle = replace(asked, tools=(tool("b"),), tool_choice=ToolChoice(ToolUse.NONE))
    assert rewrite_chat(CHAT_ROWS, idle, [Remedy("calls")])[0] != idle


def test_calls_and_results_become_records_in_the_users_words() -> None:
    thought = ThinkingPart("Hm.")
    asked = chat(
        messages=(
            SYSTEM,
            user("Go."),
            said(thought, "I look.", CALL),
            RESULT,
            user("?"),
        )
    )
    sent, _ = after(asked, "It does not support tools")
    (_, system), *rest = texts(sent)
    assert system.startswith("Be exact.\n\n")
    assert "not a format to imitate" in system
    assert rest == [
        ("user", "Go."),
        ("assistant", "I look."),
        ("user", '[earlier tool call]\nb {"n": 1}\nresult:\nout\n\n?'),
    ]
    assert all(thought not in message.parts for message in sent.messages)


def test_the_picture_of_a_result_stays_beside_its_record() -> None:
    sent, _ = after(
        chat(messages=(user("Go."), said(CALL), SHOT)), "It does not support tools"
    )
    (_, asked) = sent.messages
    assert asked.parts[1:] == (PNG,)


NAMES = [
    ("tools.0.custom.name: String should match pattern '^[a-zA-Z0-9-]{1,128}$'",
     ("a-view", "b-save")),
    ("tool name 'a-view' must match [A-Za-z0-9_]{1,64}", ("a_view", "b_save")),
    ("Value 'a-view' at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy "
     "constraint: Member must satisfy regular expression pattern: "
     "[a-zA-Z][a-zA-Z0-9_]*", ("a_view", "b_save")),
    ("tool names can only contain letters and digits: [A-Za-z0-9]",
     ("aview", "bsave")),
]  # fmt: skip


@pytest.mark.parametrize(("message", "spelled"), NAMES)
@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic", "gemini", "ollama"])
def test_tools_whose_names_are_refused_are_renamed_both_ways(
    dialect: str, message: str, spelled: tuple[str, str]
) -> None:
    call, result = replace(CALL, name="b/save"), ToolResult("c1", "b/save", "out")
    asked = chat(
        tool("a-view"),
        tool("b/save"),
        messages=(user("?"), said(call), Message(Role.TOOL, (result,))),
        tool_choice=ToolChoice(ToolUse.REQUIRED, "a-view"),
    )
    remedy = found(asked, message)
    assert remedy and remedy.change == "names"
    codec = DIALECTS[dialect]("")
    rewritten, sent = write_request(codec, asked, Target("m"), [remedy], [remedy])
    presumed = codec.presumed_remedies(ModelFacts("m"))
    assert rewritten == rewrite_chat(codec.remedies, asked, presumed)[0]
    assert sent.tool_names == dict(zip(spelled, ("a-view", "b/save"), strict=True))
    written = str(sent.body)
    assert all(name in written for name in spelled)
    assert not any(f"'{name}'" in written for name in {"a-view", "b/save"} - {*spelled})


@given(st.lists(st.text(max_size=90), unique=True, max_size=30), st.sampled_from("_-"))
def test_renamed_tools_are_told_apart(names: list[str], sign: str) -> None:
    asked = chat(*map(tool, names))
    remedy = Remedy("names", sign, "40")
    sent, _ = rewrite_chat(CHAT_ROWS, asked, [remedy])
    spelled = [tool.name for tool in sent.tools]
    assert len(set(spelled)) == len(names)
    pattern = f"[A-Za-z][A-Za-z0-9{sign}]{{0,39}}"
    assert all(re.fullmatch(pattern, name) for name in spelled), spelled


# Pictures


def test_remedy_replaces_images_for_a_text_model() -> None:
    look = Message(Role.USER, (TextPart("Look."), PNG, TextPart("Well?")))
    asked = chat(messages=(look, said(CALL), SHOT))
    sent, (notice,) = after(asked, "image input is not supported")
    assert texts(sent)[0] == ("user", f"Look.\n\n{NO_PICTURE}\n\nWell?")
    (result,) = sent.messages[-1].parts
    assert isinstance(result, ToolResult) and result.images == ()
    assert result.content == f"see [image 1 below]\n\n{NO_PICTURE}"
    assert "does not support images" in notice
    assert found(sent, "image input is not supported") is None
    made = Remedy("pictures")
    assert found(asked, "image input is not supported", made) is None


def test_remedy_notice_of_an_old_image_is_not_repeated() -> None:
    look = Message(Role.USER, (PNG,))
    told = {
        (look, said("A cat."), user("Sure?")): 0,
        (user("?"), said("A cat."), look): 1,
        (user("?"), said(CALL), SHOT): 1,
        (user("?"), said(CALL), SHOT, said("So."), user("?")): 0,
    }
    for messages, number in told.items():
        asked = chat(messages=messages)
        notices = rewrite_chat(CHAT_ROWS, asked, [Remedy("pictures")])[1]
        assert len(notices) == number, messages


@pytest.mark.parametrize(
    "message",
    [
        "At most 2 image(s) may be provided in one request.",
        "Model 'm' supports at most 2 images per prompt.",
        "messages: too many images and documents: 4 + 0 > 2",
    ],
)
def test_remedy_keeps_as_many_of_the_newest_images_as_are_taken(message: str) -> None:
    one, two, three = (ImagePart("image/png", data) for data in ("YQ", "Yg", "Yw"))
    shot = ToolResult("c1", "b", "see", False, (two,))
    asked = chat(
        messages=(
            Message(Role.USER, (one, TextPart("Look."), one)),
            said(CALL),
            Message(Role.TOOL, (shot,)),
            said("So."),
            Message(Role.USER, (three,)),
        )
    )
    sent, (notice,) = after(asked, message)
    left = [image for m in sent.messages for image in pictures_of(m)]
    assert left == [two, three]
    assert "takes 2 images" in notice
    (_, words), *_ = texts(sent)
    assert words.count("picture stood here") == 2
    assert found(sent, message) is None


# A choice of tools, and forms of an answer, that are refused


def sent_after(dialect: str, asked: ChatRequest, message: str) -> UpstreamRequest:
    """Return what is sent after a refusal in an API's own words."""
    codec, target = DIALECTS[dialect](""), Target("m")
    rewritten, refused = write_request(codec, asked, target)
    error = refusal_of({"error": {"message": message}}, 400)
    remedy = find_remedy(
        codec.remedies, RefusedRequest(refused.body, error, chat=rewritten)
    )
    assert remedy
    _, sent = write_request(codec, asked, target, [remedy], [remedy])
    assert JUDGES[dialect](sent.body) == []
    return sent


FORMS = [
    ("anthropic", "output_config.format: structured outputs are not supported"),
    ("openai_chat", "This response_format type is unavailable now"),
    ("gemini", "Function calling with a response mime type: 'application/json' is "
     "unsupported"),
    ("ollama", 'invalid format: expected "json" or a JSON schema'),
    ("openai_responses", "'text.format' of type 'json_schema' is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "message"), FORMS)
def test_json_that_no_parameter_can_ask_for_is_asked_for_in_words(
    dialect: str, message: str
) -> None:
    plain = chat(messages=(SYSTEM, user("?")))
    asked = replace(plain, json_answer=JsonAnswer({"type": "object"}))
    sent = sent_after(dialect, asked, message)
    assert len(sent.notices) == 1
    written = str(sent.body)
    assert "Be exact." in written and '{"type":"object"}' in written
    _, usual = write_request(DIALECTS[dialect](""), plain, Target("m"))
    prompt = ("system", "messages", "instructions", "systemInstruction")
    others = {k: v for k, v in sent.body.items() if k not in prompt}
    assert others == {k: v for k, v in usual.body.items() if k not in prompt}


CHOICES = [
    ("anthropic", "tool_choice: forced tool use is not supported"),
    ("openai_chat", "tool_choice is not supported in thinking mode"),
    ("gemini", "Forced function calling is not supported for this model"),
    ("openai_responses", "Unsupported parameter: 'tool_choice'"),
]


@pytest.mark.parametrize(("dialect", "message"), CHOICES)
def test_a_choice_of_tools_that_is_refused_is_left_to_the_model(
    dialect: str, message: str
) -> None:
    free = chat(tool("a"), tool("b"))
    forced = sent_after(
        dialect, replace(free, tool_choice=ToolChoice(ToolUse.REQUIRED)), message
    )
    _, usual = write_request(DIALECTS[dialect](""), free, Target("m"))
    assert (forced.body, len(forced.notices)) == (usual.body, 1)
    # Where no tool may be called, none is offered.
    none = sent_after(
        dialect, replace(free, tool_choice=ToolChoice(ToolUse.NONE)), message
    )
    _, bare = write_request(DIALECTS[dialect](""), chat(), Target("m"))
    assert (none.body, none.notices) == (bare.body, ())


# What chat templates refuse


ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
NINE = "Tool call IDs should be alphanumeric strings with length 9!"


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (NINE, "ids"),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            "ids",
        ),
        ("messages.1.content.0.tool_use_id: String should match pattern", "ids"),
        (ALTERNATE, "roles"),
        ("user and assistant roles should be alternating.", "roles"),
        ("Unexpected role 'user' after role 'tool'", "roles"),
        ("System message must be at the beginning.", "roles"),
        ("messages 参数非法。请检查文档。", "roles"),
        ("This model only supports single tool-calls at once!", "one call"),
        ("System role not supported", "system"),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", "system"),
        (
            "Cannot pass both content and thinking in an assistant message with tool "
            "calls! Put the analysis message in one or the other, but not both.",
            "reasoning beside text",
        ),
        (
            "Assistant message must have either content or tool_calls, but not both.",
            "text beside calls",
        ),
        ("Unsupported parameter: 'parallel_tool_calls'", ""),
        ("Unknown role 'wizard'", ""),
    ],
)
def test_remedy_for_what_a_template_raises(message: str, change: str) -> None:
    others = (replace(CALL, id="a:" * 25), replace(CALL, id="call_2"))
    step = said(ThinkingPart("Hm."), "I look.", CALL, *others)
    results = [
        Message(Role.TOOL, (ToolResult(call.id, "b", "out"),))
        for call in (CALL, *others)
    ]
    late = Message(Role.SYSTEM, (TextPart("Stop."),))
    asked = chat(messages=(SYSTEM, user("Go."), step, *results, user("No."), late))
    remedy = found(asked, message)
    assert (remedy.change if remedy else "") == change


def test_roles_alternate_after_results_without_an_answer() -> None:
    late = Message(Role.SYSTEM, (TextPart("Stop."),))
    asked = chat(messages=(SYSTEM, user("Go."), said(CALL), SHOT, user("No."), late))
    sent, _ = rewrite_chat(CHAT_ROWS, asked, [Remedy("roles")])
    roles = [message.role.value for message in sent.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    *_, words = sent.messages
    assert PNG in words.parts
    assert texts(sent)[-1][-1] == "No.\n\nStop."
    assert rewrite_chat(CHAT_ROWS, sent, [Remedy("roles")])[0] == sent


@pytest.mark.parametrize(
    "message",
    [
        "This model does not support assistant message prefill. The conversation must "
        "end with a user message.",
        "It included an `assistant` message in the final position, which would "
        "pre-fill the `assistant` response.",
        "Assistant response prefill is incompatible with enable_thinking.",
        "Please ensure that single turn requests end with a user role or the role "
        "field is empty.",
        "Please ensure that multiturn requests ends with a user role or a function "
        "response.",
        "Expected last role User or Tool (or Assistant with prefix True) for serving "
        "but got assistant",
        "The last message of deepseek-reasoner must be a user message, or an assistant "
        "message with prefix mode on",
        "The messages parameter is illegal. Please check the documentation.",
    ],
)
def test_the_rest_of_a_begun_answer_is_asked_for(message: str) -> None:
    begun = chat(messages=(user("?"), said("So:")))
    sent, notices = after(begun, message)
    assert sent.messages[:-1] == begun.messages
    assert sent.messages[-1].role is Role.USER
    assert not notices
    # What one such answer taught changes no other conversation.
    assert rewrite_chat(CHAT_ROWS, chat(), [Remedy("last role")])[0] == chat()


def test_roles_that_alternate_and_are_refused_all_the_same_leave_no_calls() -> None:
    """As with Gemma 2, whose template knows neither tools nor a system message."""
    asked = chat(tool("b"), messages=(SYSTEM, user("Go."), said(CALL), RESULT))
    alternating = rewrite_chat(CHAT_ROWS, asked, [Remedy("roles")])[0]
    assert (
        found(alternating, "messages 参数非法。请检查文档。") is None
    )  # as Z.ai says it
    first = found(asked, "System role not supported")
    second = found(asked, ALTERNATE)
    assert first and second and second.change == "records"
    sent, _ = rewrite_chat(CHAT_ROWS, asked, [first, second])
    ((role, words),) = texts(sent)
    assert role == "user"
    assert words.startswith("Be exact.\n\n") and "result:\nout" in words
    assert names(sent) == ["b"]


def test_parallel_calls_become_turns_of_one_call_each() -> None:
    calls = [replace(CALL, id=f"c{n}") for n in range(3)]
    outs = [Message(Role.TOOL, (ToolResult(call.id, "b", call.id),)) for call in calls]
    asked = chat(messages=(user("Go."), said("I look.", *calls), *outs, said("So.")))
    sent, _ = rewrite_chat(CHAT_ROWS, asked, [Remedy("one call")])
    assert sent.messages == (
        user("Go."),
        said("I look.", calls[0]),
        outs[0],
        said(calls[1]),
        outs[1],
        said(calls[2]),
        outs[2],
        said("So."),
    )


@given(st.lists(st.text(max_size=12), unique=True, min_size=1, max_size=20))
def test_ids_of_nine_characters_stay_the_same_and_apart(ids: list[str]) -> None:
    def spelled(count: int) -> list[str]:
        messages = [
            m
            for call_id in ids[:count]
            for m in (
                said(replace(CALL, id=call_id)),
                Message(Role.TOOL, (ToolResult(call_id, "b", "out"),)),
            )
        ]
        remedy = Remedy("ids", "9", "exact")
        sent, _ = rewrite_chat(CHAT_ROWS, chat(messages=(*messages,)), [remedy])
        parts = [part for message in sent.messages for part in message.parts]
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert calls == [p.call_id for p in parts if isinstance(p, ToolResult)]
        return calls

    whole = spelled(len(ids))
    assert len(set(whole)) == len(ids)
    assert all(len(i) == 9 and i.isascii() and i.isalnum() for i in whole)
    assert spelled(len(ids) // 2) == whole[: len(ids) // 2]


CALLING = {
    "anthropic": r'"tool_use", "id": "([^"]+)|"tool_use_id": "([^"]+)',
    "openai_responses": r'"call_id": "([^"]+)',
    "openai_chat": r'"tool_calls": \[\{"id": "([^"]+)|"tool_call_id": "([^"]+)',
    "ollama": r'"tool_calls": \[\{"id": "([^"]+)|"tool_call_id": "([^"]+)',
    "gemini": r'"id": "([^"]+)',
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_names_and_ids_of_calls_are_spelled_for_the_api(dialect: str) -> None:
    """Some models number the calls of each turn anew."""
    turn = (
        said(ToolCall("call 1|x", "view file", "{}")),
        Message(Role.TOOL, (ToolResult("call 1|x", "view file", "ok"),)),
    )
    asked = chat(tool("view file"), messages=(user("Go."), *turn, user("On."), *turn))
    _, sent = write_request(DIALECTS[dialect](""), asked, Target("m"))
    assert JUDGES[dialect](sent.body) == []
    (name,) = sent.tool_names
    written = json.dumps(sent.body)
    assert sent.tool_names[name] == "view file"
    assert written.count(name) >= 3 and "view file" not in written
    ids = ["".join(found) for found in re.findall(CALLING[dialect], written)]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == {"gemini": 0, "openai_chat": 1, "ollama": 1}.get(dialect, 2)


# What holds for every dialect


def sent_to(dialect: str, asked: ChatRequest, **target: Any) -> UpstreamRequest:
    sent = write_request(DIALECTS[dialect](""), asked, Target("m", **target))[1]
    assert JUDGES[dialect](sent.body) == []
    return sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_longer_answer_is_asked_for_than_the_model_gives(dialect: str) -> None:
    asked = chat(sampling=Sampling(max_tokens=9000))
    written = str(sent_to(dialect, asked, facts=ModelFacts("m", max_output=4000)).body)
    assert "4000" in written and "9000" not in written
    assert "9000" in str(sent_to(dialect, asked).body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_facts_exclude_is_told_in_the_first_turn(dialect: str) -> None:
    facts = ModelFacts("m", images=False, most_tools=1, sampling=False, thinking=False)
    sampling = Sampling(temperature=0.51, top_p=0.91, effort="high")
    shown = Message(Role.USER, (TextPart("Look."), PNG))
    asked = chat(tool("first"), tool("second"), messages=(shown,), sampling=sampling)
    sent = sent_to(dialect, asked, facts=facts)
    written = str(sent.body)
    left_out = ("0.51", "0.91", "high", PNG.data, "second")
    assert [words for words in left_out if words in written] == []
    assert "first" in written and NO_PICTURE in written
    assert len(sent.notices) == 4
    later = replace(asked, messages=(shown, said("A cat."), user("Well?")))
    assert sent_to(dialect, later, facts=facts).notices == ()
    assert sent_to(dialect, chat(), facts=facts).notices == ()
    bare = sent_to(dialect, asked, facts=ModelFacts("m", tools=False))
    assert "tools" not in bare.body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_effort_that_cannot_be_sent_is_told_unless_it_is_none(dialect: str) -> None:
    facts = ModelFacts("m", thinking=False)

    def notices(effort: str) -> tuple[str, ...]:
        asked = chat(sampling=Sampling(effort=effort))
        return sent_to(dialect, asked, facts=facts).notices

    assert len(notices("high")) == 1
    assert notices("none") == notices("") == ()


# What each API wants back with a thought, and with a call.
OWN: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anthropic": (
        {"block": {"type": "thinking", "thinking": "SECRET", "signature": "SECRET"}},
        {},
    ),
    "openai_chat": (
        {"field": "reasoning_content"},
        {"extra_content": {"google": {"thought_signature": "SECRET"}}},
    ),
    "gemini": ({"thoughtSignature": "SECRET", "thought": True},
               {"thoughtSignature": "SECRET", "id": "SECRET"}),
    "ollama": ({"thinking": True}, {}),
    "openai_responses": (
        {"item": {"type": "reasoning", "encrypted_content": "SECRET", "summary": []}},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", ["", "dialect", "upstream", "model"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_goes_back_to_its_origin_alone(dialect: str, place: str) -> None:
    here = Origin(dialect, "box", "gemini-3-pro")
    origin = replace(here, **{place: "other"}) if place else here
    with_thought, with_call = (ProviderData(origin, data) for data in OWN[dialect])
    call = replace(CALL, provider_data=with_call)
    asked = chat(
        tool("b"),
        messages=(
            user("Go."),
            said(ThinkingPart("SECRET", with_thought), call),
            RESULT,
        ),
    )
    facts = ModelFacts("m", thinking=True, replay=Replay.EVERY_TURN)
    codec = DIALECTS[dialect]("")
    target = Target("gemini-3-pro", facts=facts, origin=here)
    body = str(write_request(codec, asked, target)[1].body)
    assert ("SECRET" in body) == (not place)


@pytest.mark.parametrize("text", ["[1]", "{", "7", "[" * 9999])
@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "ollama"])
def test_arguments_that_are_no_object_stay_a_text(dialect: str, text: str) -> None:
    call = replace(CALL, arguments=text)
    asked = chat(tool("b"), messages=(user("Go."), said(call), RESULT))
    sent = sent_to(dialect, asked)
    assert json.dumps({"arguments": text}) in json.dumps(sent.body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_of_the_users_own_stand_beside_those_of_the_agent(dialect: str) -> None:
    own = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    codec, asked = DIALECTS[dialect](""), chat(tool("view"))
    plain = write_request(codec, asked, Target("m"))[1].body["tools"]
    both = write_request(codec, asked, Target("m", own))[1].body["tools"]
    assert both == [*plain, *own["tools"]]


@pytest.mark.parametrize("dialect", ["anthropic", "gemini"])
def test_words_stand_for_pictures_of_other_kinds_than_the_api_takes(
    dialect: str,
) -> None:
    odd = ImagePart("image/tiff", "aGk=")
    look = Message(Role.USER, (TextPart("Look."), odd))
    shot = Message(Role.TOOL, (ToolResult("c1", "b", "out", images=(odd, PNG)),))
    asked = chat(tool("b"), messages=(look, said(CALL), shot))
    sent = sent_to(dialect, asked)
    written = json.dumps(sent.body)
    assert "aGk=" not in written and PNG.data in written
    assert written.count("a picture stood here") == 2
    assert len(sent.notices) == 1
    later = replace(asked, messages=(*asked.messages, said("So."), user("Well?")))
    assert sent_to(dialect, later).notices == ()


# All of them


# Of those that need no more, and of one that does.
CHANGES = [
    change
    for change in CHAT_ROWS
    if change not in ("tool", "most tools", "descriptions", "names", "most pictures")
]
IDS = Remedy("ids", "9", "exact")


@settings(max_examples=60)
@given(histories(), st.sets(st.sampled_from(CHANGES)))
def test_rewritten_conversations_break_no_rule(
    history: tuple[Message, ...], changes: set[str]
) -> None:
    asked = chat(tool("view"), messages=(SYSTEM, *history))
    remedies = [IDS if change == "ids" else Remedy(change) for change in changes]
    sent, _ = rewrite_chat(CHAT_ROWS, asked, remedies)
    assert sent.own_words == asked.own_words
    broken = {
        name: judge(DIALECTS[name]("").encode(sent, Target("m")).body)
        for name, judge in JUDGES.items()
    }
    assert not any(broken.values()), broken


def test_remedy_with_tools_keeps_old_tool_calls() -> None:
    asked = chat(tool("b"), messages=(user("Hi?"), said(CALL), RESULT))
    assert rewrite_chat(CHAT_ROWS, asked, [Remedy("calls")]) == (asked, ())
    assert found(asked, "tools: Field required") is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_dialect_has_all_rows(dialect: str) -> None:
    table = DIALECTS[dialect]("").remedies
    assert all(table.get(change) is row for change, row in CHAT_ROWS.items())


def test_a_system_message_joins_the_question_where_there_is_one() -> None:
    late = Message(Role.SYSTEM, (TextPart("Be brief."),))
    asked = chat(messages=(SYSTEM, user("Hi?"), said("Yes?"), late))
    joined, _ = rewrite_chat(CHAT_ROWS, asked, [Remedy("system")])
    assert texts(joined) == [
        ("user", "Be exact.\n\nHi?"),
        ("assistant", "Yes?"),
        ("user", "Be brief."),
    ]
    assert rewrite_chat(CHAT_ROWS, chat(), [Remedy("system")])[0] == chat()


def test_a_picture_counts_until_the_assistant_has_answered() -> None:
    shown = Message(Role.USER, (PNG,))
    assert shows_picture(chat(messages=(shown, user("Well?"))))
    assert not shows_picture(chat(messages=(shown, said("A cat."), user("Well?"))))
    assert not shows_picture(chat())
