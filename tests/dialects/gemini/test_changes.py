"""Changes to a body of Gemini."""

from typing import Any

from byok.dialects.gemini import remedies
from byok.dialects.safe_names import NOT_CHECKED

SEARCH: dict[str, Any] = {"googleSearch": {}}
INLINE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
CALL = {"functionCall": {"id": "1", "name": "f", "args": {"x": 1}}}


def function(name: str) -> dict[str, Any]:
    return {"name": name, "description": "", "parametersJsonSchema": {"type": "object"}}


def result(**more: Any) -> dict[str, Any]:
    found = {"id": "1", "name": "f", "response": {"output": "ok"}, **more}
    return {"functionResponse": found}


def body(*contents: tuple[str, list[Any]], **more: Any) -> dict[str, Any]:
    said = [{"role": role, "parts": parts} for role, parts in contents]
    return {"contents": said, **more}


ASKED = ("user", [{"text": "Go."}])
STEP = (("model", [CALL | {"thoughtSignature": "c2ln"}]), ("user", [result()]))


def test_schemas_are_narrowed_everywhere() -> None:
    schema = {"type": "object", "properties": {"x": {"const": "a"}}}
    plain = {"name": "g", "description": ""}
    functions = [function("f") | {"parametersJsonSchema": schema}, plain]
    tools = [{"functionDeclarations": functions}, SEARCH]
    config = {"responseJsonSchema": schema, "topP": 1}
    after = remedies.narrow_schemas(body(ASKED, tools=tools, generationConfig=config))
    first, second = remedies.read_tools(after)
    assert after["tools"][1:] == [SEARCH]
    wanted = {"x": {"enum": ["a"], "type": "string"}}
    assert first["parameters"]["properties"] == wanted
    assert "parametersJsonSchema" not in first
    assert second == plain
    assert after["generationConfig"]["responseSchema"]["properties"] == wanted
    assert "responseJsonSchema" not in after["generationConfig"]


def test_ids_are_dropped() -> None:
    _, call, answer = remedies.without_ids(body(ASKED, *STEP))["contents"]
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
    version = remedies.conversation_version(before)
    after = remedies.without_signatures(before, version)
    assert after["contents"][1]["parts"] == [
        {"text": "A"},
        CALL | {"thoughtSignature": NOT_CHECKED},
    ]
    assert len(after["contents"]) == 3
    assert remedies.without_signatures(before, "another") == before
