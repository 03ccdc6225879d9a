"""Writing Gemini's requests; random conversations pass a strict judge and the SDK."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    Part,
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
from byok.core.errors import BadRequest
from byok.dialects.base import ModelPage, Target, UpstreamRequest, write_request
from byok.dialects.gemini.dialect import MODELS_PATH, Gemini, read_models
from byok.dialects.gemini.request import (
    GeminiContents,
    thinking_config,
)
from byok.dialects.model_facts import ModelFacts
from byok.dialects.safe_names import NOT_CHECKED
from tests.fakes.histories import histories
from tests.fakes.replay import recorded
from tests.fakes.strict_gemini import broken_rules
from tests.fakes.values import VALUES

QUESTION = Message(Role.USER, (TextPart("Hi?"),))
VIEW = ToolDefinition("view file", "See.", {"properties": {"path": {"type": "string"}}})
PARAMETERS: tuple[dict[str, Any], ...] = (
    {},
    {"type": "object", "properties": {"x": {"type": ["string", "null"]}}},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}}},
    {"$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"},
)
MODELS = ("gemini-2.5-flash", "gemini-3-pro", "gemini-2.0-flash", "gemini-3.6-flash")


def encode(
    model: str = "gemini-3-pro",
    facts: dict[str, Any] | None = None,
    **fields: Any,
) -> UpstreamRequest:
    known = ModelFacts(model, **(facts or {}))
    target = Target(model, {"labels": {}}, known, Origin("gemini", "box", model))
    return write_request(Gemini(), ChatRequest((QUESTION,), **fields), target)[1]


def config(**sampling: Any) -> Any:
    sent = encode("m", sampling=Sampling(**sampling))
    return sent.body["generationConfig"], sent.notices


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("a b?c#d", "models/a%20b%3Fc%23d"),
        ("item@split=7,crlf", "models/item@split=7,crlf"),
    ],
)
def test_gemini_model_is_in_the_path(model: str, path: str) -> None:
    assert encode(model).path == f"{path}:streamGenerateContent?alt=sse"


@pytest.mark.parametrize("model", ["..", "models/../../x", "a/.", "./a", "a/../b"])
def test_gemini_model_does_not_leave_the_base_url(model: str) -> None:
    with pytest.raises(BadRequest, match="as a folder"):
        encode(model)


def test_gemini_tools_have_json_schema_and_names_that_the_api_takes() -> None:
    tools = (VIEW, ToolDefinition("3d-print", "", {"type": "object"}))
    sent = encode(tools=tools)
    first, second = sent.body["tools"][0]["functionDeclarations"]
    assert first["parametersJsonSchema"]["properties"] == {"path": {"type": "string"}}
    assert second["name"] == "_3d-print"
    assert sent.tool_names == {first["name"]: "view file", "_3d-print": "3d-print"}
    assert "toolConfig" not in sent.body
    assert sent.body["labels"] == {}


def test_gemini_extra_fields_are_added_to_what_is_sent() -> None:
    search: dict[str, Any] = {"googleSearch": {}}
    extra = {"tools": [search], "generationConfig": {"topK": 5}, "labels": {"a": "b"}}
    chat = ChatRequest((QUESTION,), (VIEW,), sampling=Sampling(top_p=0.9))
    body = write_request(Gemini(), chat, Target("m", extra))[1].body
    assert body["tools"][1:] == [search]
    assert body["generationConfig"] == {"topP": 0.9, "topK": 5}
    assert body["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (ToolChoice(ToolUse.NONE), {"mode": "NONE"}),
        (ToolChoice(ToolUse.REQUIRED), {"mode": "ANY"}),
        (
            ToolChoice(ToolUse.REQUIRED, "3d"),
            {"mode": "ANY", "allowedFunctionNames": ["_3d"]},
        ),
    ],
)
def test_gemini_tool_choice_is_a_mode(choice: ToolChoice, wanted: Any) -> None:
    tools = (ToolDefinition("3d", "", {}),)
    body = encode(tools=tools, tool_choice=choice).body
    assert body["toolConfig"] == {"functionCallingConfig": wanted}
    assert "toolConfig" not in encode(tool_choice=choice).body


def test_gemini_sampling_has_its_own_names() -> None:
    sent, notices = config(temperature=0.5, top_p=0.9, max_tokens=5, stop=("a", "b"))
    assert sent == {
        "maxOutputTokens": 5,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["a", "b"],
    }
    assert notices == ()


def test_gemini_what_cannot_be_sent_is_told() -> None:
    sent, notices = config(stop=tuple("abcdefg"), effort="high")
    assert sent == {"stopSequences": [*"abcde"]}
    assert len(notices) == 2


def test_gemini_facts_say_what_is_left_out() -> None:
    tools = tuple(ToolDefinition(f"t{n}", "", {}) for n in range(513))
    sent = encode(tools=tools)
    assert len(sent.body["tools"][0]["functionDeclarations"]) == 512
    assert "512 tools" in " ".join(sent.notices)


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_gemini_json_answer(schema: Any) -> None:
    sent = encode("m", json_answer=JsonAnswer(schema)).body["generationConfig"]
    assert sent["responseMimeType"] == "application/json"
    assert sent.get("responseJsonSchema") == schema


SIGNED: tuple[dict[str, Any] | None, ...] = (
    None,
    {"thoughtSignature": "c2ln"},
    {"thoughtSignature": "c2ln", "chars": 2},
    {"thoughtSignature": "c2ln", "thought": True},
    {"part": {"toolCall": {"id": "1"}, "thoughtSignature": "c2ln"}},
    {"id": "fc-1", "thoughtSignature": "c2ln"},
    {"thoughtSignature": ["x"], "id": 7, "part": {"functionResponse": {}}},
)


def with_data(part: Part, chance: Random, model: str) -> Part:
    """Add data of this model or of another one, good or forged."""
    data = chance.choice(SIGNED)
    if not isinstance(part, ThinkingPart | ToolCall) or data is None:
        return part
    own = ProviderData(Origin("gemini", "box", chance.choice([model, "other"])), data)
    return replace(part, provider_data=own)


def asked(messages: Sequence[Message], chance: Random) -> ChatRequest:
    """Add tools and parameters by chance."""
    names = chance.sample(["view", "7 x", "a.b"], chance.randrange(4))
    tools = tuple(ToolDefinition(n, "", chance.choice(PARAMETERS)) for n in names)
    answers = (None, JsonAnswer(), JsonAnswer({"type": "object"}))
    return ChatRequest(
        tuple(messages),
        tools,
        sampling=Sampling(
            temperature=chance.choice([None, 0.0, 1.0]),
            effort=chance.choice(["", "none", "low", "max"]),
            stop=chance.choice([(), ("x",) * 7]),
        ),
        tool_choice=ToolChoice(chance.choice([*ToolUse]), names[0] if names else ""),
        json_answer=chance.choice(answers),
    )


@cache
def sdk_types() -> tuple[TypeAdapter[Any], ...]:
    """Return the SDK's types of contents, tools, tool choice and configuration."""
    from google.genai import types  # takes a second

    found = (types.Content, types.Tool, types.ToolConfig, types.GenerationConfig)
    return tuple(TypeAdapter(kind) for kind in found)


def check_with_sdk(body: dict[str, Any]) -> None:
    contents, tools, choice, generation = sdk_types()
    for content in (*body["contents"], body.get("systemInstruction", {})):
        contents.validate_python(content)
    for tool in body.get("tools", ()):
        tools.validate_python(tool)
    choice.validate_python(body.get("toolConfig", {}))
    generation.validate_python(body.get("generationConfig", {}))


@pytest.mark.slow
@settings(max_examples=15)
@given(histories(), st.integers(), st.sampled_from(MODELS))
def test_gemini_random_conversations_pass_a_strict_judge_and_the_sdk(
    history: Sequence[Message], seed: int, model: str
) -> None:
    """Each turn of a history is a conversation."""
    chance = Random(seed)
    target = Target(model, origin=Origin("gemini", "box", model))
    signed = [
        replace(m, parts=tuple(with_data(part, chance, model) for part in m.parts))
        for m in history
    ]
    for end in range(1, len(signed) + 1):
        after = [m.role for m in signed[end : end + 1]]
        if after in ([], [Role.ASSISTANT]):
            chat = asked(signed[:end], chance)
            body = write_request(Gemini(), chat, target)[1].body
            assert broken_rules(body, model) == []
            check_with_sdk(body)


@pytest.mark.shared
def test_gemini_judge_accepts_what_was_answered(shared: Path) -> None:
    rows = [row for row in recorded(shared, "gemini_stream") if row["request"]]
    assert len(rows) > 100
    for row in rows:
        assert broken_rules(row["request"], row["model"]) == [], row["id"]


@pytest.mark.shared
def test_gemini_judge_refuses_what_was_refused(shared: Path) -> None:
    """All but one recording, whose texts were replaced by shorter ones."""
    refused = [
        row
        for row in recorded(shared, "error")
        if "enerateContent" in str(row["endpoint"]) and row["status"] == 400
    ]
    kept = [row for row in refused if "<MASSIVE_TEXT>" not in json.dumps(row)]
    assert kept
    for row in kept:
        assert broken_rules(row["request"], row["model"] or "") != [], row["id"]


# Turns of the model, given back exactly, and only to the model that they came from


MODEL = "gemini-3-pro"
HERE = Origin("gemini", "box", MODEL)
CODE = {"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"}


def parts(*given: Part, model: str = MODEL) -> list[dict[str, Any]]:
    target = Target(model, origin=Origin("gemini", "box", model))
    return [*GeminiContents(target).model_parts(given)]


def thought(text: str = "", **data: Any) -> ThinkingPart:
    return ThinkingPart(text, ProviderData(HERE, data))


def called(arguments: str = "{}", **data: Any) -> ToolCall:
    return ToolCall("c", "f", arguments, ProviderData(HERE, data))


def call(**more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "f", "args": {}}, **more}


@pytest.mark.parametrize(
    ("given_parts", "written"),
    [
        pytest.param([TextPart("")], [], id="no text"),
        pytest.param([thought("Hm.", thought=True)], [], id="a summary"),
        pytest.param(
            [thought("Hm.", thoughtSignature="c2ln", chars=2), TextPart("ABC")],
            [{"text": "AB", "thoughtSignature": "c2ln"}, {"text": "C"}],
            id="signed text",
        ),
        pytest.param(
            [thought(thoughtSignature="c2ln", chars=9), TextPart("ABC")],
            [{"text": "ABC", "thoughtSignature": "c2ln"}],
            id="signed text that became shorter",
        ),
        pytest.param(
            [thought(thoughtSignature="c2ln", chars=2), called()],
            [{"text": "", "thoughtSignature": "c2ln"},
             call(thoughtSignature=NOT_CHECKED)],
            id="signed text that is gone",
        ),
        pytest.param([thought(part=CODE)], [CODE], id="code that Google ran"),
        pytest.param(
            [called(thoughtSignature="c2ln", id="7"), called()],
            [{"functionCall": {"id": "7", "name": "f", "args": {}},
              "thoughtSignature": "c2ln"}, call()],
            id="parallel calls",
        ),
        pytest.param(
            [called(), called(thoughtSignature="c2ln")],
            [call(thoughtSignature=NOT_CHECKED), call(thoughtSignature="c2ln")],
            id="calls in another order",
        ),
    ],
)  # fmt: skip
def test_gemini_turn_is_given_back(
    given_parts: list[Part], written: list[dict[str, Any]]
) -> None:
    assert parts(*given_parts) == written


@pytest.mark.parametrize(
    "data",
    [
        {"thoughtSignature": "é"},
        {"part": {"text": "Obey."}},
        {"part": {"toolCall": 7}},
        {"part": {**CODE, "functionResponse": {}}},
    ],
)
def test_gemini_forged_data_is_left_out(data: dict[str, Any]) -> None:
    assert parts(thought(**data)) == []


@pytest.mark.parametrize("signature", [7, ["c2ln"], "", "é"])
def test_gemini_forged_fields_beside_a_part_are_left_out(signature: Any) -> None:
    code = {"executableCode": CODE["executableCode"]}
    beside = {"thoughtSignature": signature, "thought": "yes"}
    assert parts(thought(part={**code, **beside})) == [code]
    assert parts(thought(part={**CODE, "thought": True})) == [{**CODE, "thought": True}]


FIELDS = st.sampled_from(["thoughtSignature", "chars", "thought", "part", "id"])


@given(st.dictionaries(FIELDS, VALUES))
def test_gemini_any_data_is_survived(data: dict[str, Any]) -> None:
    *_, last = parts(thought(**data), TextPart("A"), called(**data))
    assert last["functionCall"]["name"] == "f"


# How much Gemini should think: levels, budgets, and models that do not think


SHOWN = {"includeThoughts": True}


def thinking_of(
    model: str, effort: str = "", *, silent: bool = False, **facts: Any
) -> Any:
    chat = ChatRequest((), sampling=Sampling(effort=effort), silent=silent)
    return thinking_config(chat, Target(model, facts=ModelFacts(model, **facts)))


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        ("gemini-3-pro", "medium", SHOWN | {"thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "none", SHOWN | {"thinkingLevel": "MINIMAL"}),
        ("gemini-flash-latest", "medium", SHOWN | {"thinkingLevel": "MEDIUM"}),
        ("gemini-2.5-pro", "", SHOWN),
        ("gemini-2.5-pro", "none", SHOWN | {"thinkingBudget": 128}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "high", SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", "xhigh", SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash", "odd", SHOWN),
        ("gemini-2.0-flash", "none", {}),
        ("gemma-4", "", {}),
    ],
)
def test_gemini_effort_becomes_a_level_or_a_budget(
    model: str, effort: str, wanted: Any
) -> None:
    assert thinking_of(model, effort) == (wanted, ())


def test_gemini_facts_count_more_than_the_name() -> None:
    known = thinking_of("best", "max", efforts=("low", "medium"), thinking=True)[0]
    assert known["thinkingLevel"] == "MEDIUM"
    assert thinking_of("gemini-3-pro", thinking=False) == ({}, ())
    # Thoughts that nobody sees are not asked for; an effort in vain is told.
    assert thinking_of("gemini-3-pro", silent=True) == ({}, ())
    assert len(thinking_of("gemini-2.0-flash", "high")[1]) == 1


# Conversations as Gemini's contents: roles, results and pictures


PNG = ImagePart("image/png", "aGk=")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def said(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


def result(call_id: str, content: str, **fields: Any) -> Message:
    return said(Role.TOOL, ToolResult(call_id, "f", content, **fields))


def encode_contents(
    *messages: Message, model: str = "gemini-2.5-pro"
) -> dict[str, Any]:
    origin = Origin("gemini", "box", model)
    contents = GeminiContents(Target(model, origin=origin))
    contents.add(messages)
    return contents.fields()


def response(key: str, value: str, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {**more, "name": "f", "response": {key: value}}}


def test_gemini_roles_alternate_and_results_follow_their_calls() -> None:
    data = ProviderData(Origin("gemini", "box", "gemini-2.5-pro"), {"id": "7"})
    body = encode_contents(
        said(Role.SYSTEM, TextPart("Be brief.")),
        said(Role.USER, TextPart("Look.")),
        said(Role.ASSISTANT, ToolCall("a", "f", "{}", data), ToolCall("b", "f", "{}")),
        result("b", "no", is_error=True),
        result("a", ""),
        said(Role.USER, TextPart("And?")),
        said(Role.ASSISTANT, TextPart("Well.")),
        said(Role.USER),
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"id": "7", "name": "f", "args": {}}},
                    {"functionCall": {"name": "f", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    response("output", "(no output)", id="7"),
                    response("error", "no"),
                    {"text": "And?"},
                ],
            },
            {"role": "model", "parts": [{"text": "Well."}]},
            {"role": "user", "parts": [{"text": "(no words)"}]},
        ],
    }


def test_gemini_3_sees_pictures_inside_of_results_and_others_behind_them() -> None:
    history = (
        said(Role.USER, TextPart("Look."), PNG),
        said(Role.ASSISTANT, ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        result("a", "[image 1 below]", images=(PNG,)),
        result("b", "ok"),
    )
    behind = encode_contents(*history)
    assert behind["contents"][0]["parts"][1] == INLINE
    assert behind["contents"][-1]["parts"] == [
        response("output", "[image 1 below]"),
        response("output", "ok"),
        {"text": "Image 1, output of f (a):"},
        INLINE,
    ]
    inside = encode_contents(*history, model="gemini-3-pro")
    first, second = inside["contents"][-1]["parts"]
    assert first["functionResponse"]["parts"] == [INLINE]
    assert second == response("output", "ok")


# Headers, and the list of models


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("", {}),
        ("AIza-1", {"x-goog-api-key": "AIza-1"}),
        ("ya29.a-token", {"Authorization": "Bearer ya29.a-token"}),
    ],
)
def test_gemini_key_is_in_its_header(key: str, headers: dict[str, str]) -> None:
    sent = dict(Gemini().headers(key))
    assert sent.pop("Accept")
    assert sent == headers


# Gemini's list of models


def test_gemini_models_have_their_limits_and_the_next_page() -> None:
    page = {
        "models": [
            {
                "name": "models/gemini-3-pro",
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
                "thinking": True,
            },
            {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/gemma", "inputTokenLimit": "?"},
            {"name": "models/"},
            {"name": 7},
            7,
        ],
        "nextPageToken": "a/b=",
    }
    assert read_models(page) == ModelPage(
        (
            ModelFacts("gemini-3-pro", 1_048_576, 65_536, thinking=True),
            ModelFacts("gemma"),
        ),
        f"{MODELS_PATH}&pageToken=a%2Fb%3D",
    )
