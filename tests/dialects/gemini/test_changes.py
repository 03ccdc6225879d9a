"""Changes to a body of Gemini."""

from typing import Any

from byok.dialects.gemini import changes
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE
from byok.dialects.thought_signatures import NOT_CHECKED

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


def test_tools_are_replaced_and_those_of_google_stay() -> None:
    tools = [{"functionDeclarations": [function("f"), function("g")]}, SEARCH]
    config: dict[str, Any] = {"toolConfig": {}}
    before = body(ASKED, *STEP, tools=tools, **config)
    assert [f["name"] for f in changes.read_tools(before)] == ["f", "g"]
    assert changes.called_tools(before) == {"f"}
    one = changes.offer_tools(before, [function("g")])
    assert one["tools"] == [{"functionDeclarations": [function("g")]}, SEARCH]
    none = changes.offer_tools(before, [])
    assert none == body(ASKED, *STEP, tools=[SEARCH])
    assert "tools" not in changes.offer_tools(body(ASKED, tools=tools[:1]), [])
    assert changes.read_tools(body(ASKED, tools=7)) == []


def test_first_turns_and_pictures_are_found() -> None:
    assert changes.is_first_turn(body(ASKED))
    assert not changes.is_first_turn(body(ASKED, *STEP))
    for parts in ([INLINE], [result(parts=[INLINE])]):
        old = body(("user", parts), ("model", [{"text": "A"}]), ASKED)
        assert changes.has_pictures(old)
        assert not changes.shows_picture(old)
        assert changes.shows_picture(body(("user", parts)))
    assert not changes.has_pictures(body(ASKED))
    assert not changes.shows_picture(body(ASKED))


def test_schemas_are_narrowed_everywhere() -> None:
    schema = {"type": "object", "properties": {"x": {"const": "a"}}}
    tools = [{"functionDeclarations": [function("f") | {"parametersJsonSchema": schema},
                                       {"name": "g", "description": ""}]}]  # fmt: skip
    config = {"responseJsonSchema": schema, "topP": 1}
    after = changes.narrow_schemas(body(ASKED, tools=tools, generationConfig=config))
    first, second = changes.read_tools(after)
    wanted = {"x": {"enum": ["a"], "type": "string"}}
    assert first["parameters"]["properties"] == wanted
    assert "parametersJsonSchema" not in first
    assert second == {"name": "g", "description": ""}
    assert after["generationConfig"]["responseSchema"]["properties"] == wanted
    assert "responseJsonSchema" not in after["generationConfig"]


def test_calls_become_records_of_the_user() -> None:
    before = body(
        ASKED,
        ("model", [{"text": "Hm."}, CALL, {"text": "", "thoughtSignature": "c2ln"}]),
        ("user", [result(parts=[INLINE]), {"text": "And?"}]),
        *STEP,
    )
    after = changes.calls_as_text(before)
    record = {"text": '[earlier tool call]\nf {"x":1}\nresult:\nok'}
    assert after["systemInstruction"] == {"parts": [{"text": ABOUT_RECORDS}]}
    said = after["contents"]
    assert said[1]["parts"] == [
        {"text": "Hm."},
        {"text": "", "thoughtSignature": "c2ln"},
    ]
    assert said[2] == {
        "role": "user",
        "parts": [record, INLINE, {"text": "And?"}, record],
    }
    assert changes.calls_as_text(body(ASKED)) == body(ASKED)


def test_pictures_become_a_sentence() -> None:
    before = body(("user", [INLINE, {"text": "A"}, result(), result(parts=[INLINE])]))
    (content,) = changes.pictures_as_text(before)["contents"]
    assert content["parts"][:3] == [{"text": NO_PICTURE}, {"text": "A"}, result()]
    assert content["parts"][3] == result(
        response={"output": "ok", "pictures": NO_PICTURE}
    )


def test_ids_are_dropped() -> None:
    _, call, answer = changes.without_ids(body(ASKED, *STEP))["contents"]
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
    version = changes.conversation_version(before)
    after = changes.without_signatures(before, version)
    assert after["contents"][1]["parts"] == [
        {"text": "A"},
        CALL | {"thoughtSignature": NOT_CHECKED},
    ]
    assert len(after["contents"]) == 3
    assert changes.without_signatures(before, "another") == before
