"""What is changed after each refusal of Gemini."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, ToolDefinition
from byok.dialects.base import ErrorResponse
from byok.dialects.gemini.dialect import Gemini
from byok.dialects.gemini.remedies import REMEDIES, conversation_version
from byok.dialects.remedies import RefusedRequest, Remedy, change_body, find_remedy
from byok.dialects.safe_names import NOT_CHECKED

THINKING = "generationConfig.thinkingConfig"
SCHEMA = {"type": "object", "properties": {"x": {"const": "a"}}}
BODY: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "Go."}]},
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {"id": "1", "name": "f", "args": {}},
                    "thoughtSignature": "c2ln",
                }
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "f", "response": {}}},
                {"inlineData": {"mimeType": "image/png", "data": ""}},
            ],
        },
    ],
    "tools": [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    "generationConfig": {
        "maxOutputTokens": 100_000,
        "temperature": 1,
        "topP": 1,
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
    },
}
HERE = conversation_version(BODY)


def remedy_for(
    text: str, *known: Remedy, body: dict[str, Any] | None = None, status: int = 400
) -> Remedy | None:
    error = {"error": {"code": status, "message": text, "status": "INVALID_ARGUMENT"}}
    refusal = Gemini().refusal(ErrorResponse(status, [error]))
    chat = ChatRequest((), (ToolDefinition("f", "", SCHEMA),))
    refused = RefusedRequest(body or BODY, refusal, ("labels",), known, chat=chat)
    return find_remedy(REMEDIES, refused)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "Function call is missing a thought_signature in functionCall parts.",
            Remedy("signatures", "", HERE),
        ),
        ("Corrupted thought signature.", Remedy("signatures", "", HERE)),
        (
            "Invalid JSON payload received. Unknown name \"id\" at "
            "'contents[1].parts[0].function_call': Cannot find field.",
            Remedy("no ids"),
        ),
        (
            "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at "
            "'tools[0].function_declarations[0]': Cannot find field.",
            Remedy("narrow schemas"),
        ),
        (
            "* GenerateContentRequest.tools[0].function_declarations[0].parameters."
            "properties[x].items: missing field.",
            Remedy("narrow schemas"),
        ),
        (
            "Thinking level is not supported for this model.",
            Remedy("thinking", f"{THINKING}.thinkingLevel"),
        ),
        (
            "Unable to submit request because it has a maxOutputTokens value of 100000 "
            "but the supported range is from 1 (inclusive) to 65537 (exclusive). "
            "Update the value and try again.",
            Remedy("lower", "generationConfig.maxOutputTokens", "65536"),
        ),
        ("top_p is not supported", Remedy("parameter", "generationConfig.topP")),
        ("Please use a valid role: user, model.", None),
    ],
)  # fmt: skip
def test_gemini_refusals_have_their_remedy(text: str, remedy: Remedy | None) -> None:
    assert remedy_for(text) == remedy
    if remedy:
        body, _ = change_body(REMEDIES, BODY, [remedy])
        assert body != BODY
        assert remedy_for(text, remedy, body=body) != remedy


def test_gemini_thinking_is_dropped_bit_by_bit() -> None:
    made: list[Remedy] = []
    body = BODY
    while found := remedy_for("thinking_config is not supported.", *made, body=body):
        made.append(found)
        body, _ = change_body(REMEDIES, BODY, made)
    assert [remedy.what for remedy in made] == [f"{THINKING}.thinkingLevel", THINKING]
    assert "thinkingConfig" not in body["generationConfig"]


def test_gemini_tool_that_is_refused_in_any_schema_is_left_out() -> None:
    text = "Invalid value at 'tools[0].function_declarations[0].parameters.type'"
    narrow = Remedy("narrow schemas")
    body, _ = change_body(REMEDIES, BODY, [narrow])
    found = remedy_for(text, narrow, body=body)
    assert found is not None
    assert (found.change, found.what) == ("tool", "f")


# Changes to a body of Gemini


SEARCH: dict[str, Any] = {"googleSearch": {}}
CALL = {"functionCall": {"id": "1", "name": "f", "args": {"x": 1}}}


def function(name: str) -> dict[str, Any]:
    return {"name": name, "description": "", "parametersJsonSchema": {"type": "object"}}


def result(**more: Any) -> dict[str, Any]:
    found = {"id": "1", "name": "f", "response": {"output": "ok"}, **more}
    return {"functionResponse": found}


def body(*contents: tuple[str, list[Any]], **more: Any) -> dict[str, Any]:
    said = [{"role": role, "parts": parts} for role, parts in contents]
    return {"contents": said, **more}


def changed(sent: dict[str, Any], change: str, version: str = "") -> Any:
    return change_body(REMEDIES, sent, [Remedy(change, version=version)])[0]


ASKED = ("user", [{"text": "Go."}])
STEP = (("model", [CALL | {"thoughtSignature": "c2ln"}]), ("user", [result()]))


def test_schemas_are_narrowed_everywhere() -> None:
    schema = {"type": "object", "properties": {"x": {"const": "a"}}}
    plain = {"name": "g", "description": ""}
    functions = [function("f") | {"parametersJsonSchema": schema}, plain]
    tools = [{"functionDeclarations": functions}, SEARCH]
    config = {"responseJsonSchema": schema, "topP": 1}
    sent = body(ASKED, tools=tools, generationConfig=config)
    after = changed(sent, "narrow schemas")
    first, second = after["tools"][0]["functionDeclarations"]
    assert after["tools"][1:] == [SEARCH]
    wanted = {"x": {"enum": ["a"], "type": "string"}}
    assert first["parameters"]["properties"] == wanted
    assert "parametersJsonSchema" not in first
    assert second == plain
    assert after["generationConfig"]["responseSchema"]["properties"] == wanted
    assert "responseJsonSchema" not in after["generationConfig"]


def test_ids_are_dropped() -> None:
    _, call, answer = changed(body(ASKED, *STEP), "no ids")["contents"]
    assert "id" not in call["parts"][0]["functionCall"]
    assert "id" not in answer["parts"][0]["functionResponse"]
    assert call["parts"][0]["thoughtSignature"] == "c2ln"


def test_signatures_are_dropped_in_one_conversation() -> None:
    signed = {"thoughtSignature": "c2ln"}
    before = body(
        ASKED,
        ("model", [{"text": "", **signed}, {"text": "A", **signed}, CALL | signed]),
        ("user", [result()]),
        ("model", [{"text": "Hm.", "thought": True, **signed}]),
    )
    after = changed(before, "signatures", conversation_version(before))
    assert after["contents"][1]["parts"] == [
        {"text": "A"},
        CALL | {"thoughtSignature": NOT_CHECKED},
    ]
    assert len(after["contents"]) == 3
    assert changed(before, "signatures", "another") == before
