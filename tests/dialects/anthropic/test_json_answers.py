from typing import Any

from byok.core.chat import JsonAnswer
from byok.dialects.anthropic.request import encode_json_answer, format_as_words

OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "list": {"type": "array", "items": {"properties": {"a": {"enum": [1]}}}},
        "any": {"anyOf": [{"type": "object"}, True]},
    },
    "$defs": {"D": {"type": "object", "additionalProperties": True}},
}


def test_a_schema_is_sent_with_all_its_objects_closed() -> None:
    output, instruction = encode_json_answer(JsonAnswer(OPEN))
    schema = output["format"]["schema"]
    closed = {"additionalProperties": False}
    assert schema["properties"]["list"]["items"].items() >= closed.items()
    assert schema["properties"]["any"]["anyOf"] == [{"type": "object", **closed}, True]
    assert schema["$defs"]["D"]["additionalProperties"] is False
    assert instruction == []
    assert "additionalProperties" not in OPEN


def test_without_a_schema_the_system_prompt_asks_for_json() -> None:
    output, (instruction,) = encode_json_answer(JsonAnswer())
    assert output == {}
    assert "JSON object" in instruction["text"]
    assert encode_json_answer(None) == ({}, [])


def test_a_format_that_is_refused_is_asked_for_in_words() -> None:
    output, _ = encode_json_answer(JsonAnswer(OPEN))
    old = [{"type": "text", "text": "Be brief."}]
    body = {"output_config": {"effort": "low", **output}, "system": old}
    changed = format_as_words(body)
    assert changed["output_config"] == {"effort": "low"}
    assert changed["system"][0] == old[0]
    assert '"additionalProperties":false' in changed["system"][1]["text"]
    assert "output_config" not in format_as_words({"output_config": output})
    assert format_as_words({"output_config": {"effort": "low"}}) == {
        "output_config": {"effort": "low"}
    }
