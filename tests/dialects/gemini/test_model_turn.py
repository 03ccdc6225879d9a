"""Turns of the model, given back exactly, and only to the model that they came from."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import Origin, Part, ProviderData, TextPart, ThinkingPart, ToolCall
from byok.dialects.base import Target
from byok.dialects.gemini.request import ModelTurns
from byok.dialects.safe_names import NOT_CHECKED, Aliases, spell_name
from tests.fakes.values import VALUES

MODEL = "gemini-3-pro"
HERE = Origin("gemini", "box", MODEL)
CODE = {"executableCode": {"code": "1"}, "thoughtSignature": "c2ln"}


def parts(*given: Part, model: str = MODEL) -> list[dict[str, Any]]:
    target = Target(model, origin=Origin("gemini", "box", model))
    return [*ModelTurns(Aliases(spell_name), target).parts_of(given)]


def thought(text: str = "", **data: Any) -> ThinkingPart:
    return ThinkingPart(text, ProviderData(HERE, data))


def called(arguments: str = "{}", **data: Any) -> ToolCall:
    return ToolCall("c", "f", arguments, ProviderData(HERE, data))


def call(**more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "f", "args": {}}, **more}


@pytest.mark.parametrize(
    ("given_parts", "written"),
    [
        pytest.param([TextPart("A")], [{"text": "A"}], id="text"),
        pytest.param([TextPart("")], [], id="no text"),
        pytest.param([ThinkingPart("Hm.")], [], id="a summary without data"),
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
        pytest.param(
            [thought(thoughtSignature="c2ln", chars=2)],
            [{"text": "", "thoughtSignature": "c2ln"}],
            id="signed text that is gone at the end",
        ),
        pytest.param(
            [TextPart("A"), thought(thoughtSignature="c2ln", chars=0)],
            [{"text": "A"}, {"text": "", "thoughtSignature": "c2ln"}],
            id="a signed empty text",
        ),
        pytest.param(
            [thought("Hm.", thoughtSignature="c2ln", thought=True)],
            [{"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"}],
            id="a signed thought",
        ),
        pytest.param([thought(part=CODE)], [CODE], id="code that Google ran"),
        pytest.param(
            [called(thoughtSignature="c2ln", id="7"), called()],
            [{"functionCall": {"id": "7", "name": "f", "args": {}},
              "thoughtSignature": "c2ln"}, call()],
            id="parallel calls",
        ),
        pytest.param(
            [ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")],
            [call(thoughtSignature=NOT_CHECKED), call()],
            id="calls of another model",
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


def test_gemini_no_other_model_gets_the_data() -> None:
    given_parts: list[Part] = [
        thought(part=CODE),
        called(thoughtSignature="c2ln", id="7"),
    ]
    assert parts(*given_parts, model="gemini-2.5-pro") == [call()]
    assert parts(*given_parts, model="gemini-3-flash") == [
        call(thoughtSignature=NOT_CHECKED)
    ]


@pytest.mark.parametrize(
    ("arguments", "args"),
    [('{"a": 1}', {"a": 1}), ("[1]", {"arguments": [1]}), ("{a", {"arguments": "{a"})],
)
def test_gemini_arguments_are_an_object(arguments: str, args: Any) -> None:
    (part,) = parts(called(arguments))
    assert part["functionCall"]["args"] == args


@pytest.mark.parametrize(
    "data",
    [
        {"thoughtSignature": "é"},
        {"thoughtSignature": 7, "chars": 2},
        {"part": {"text": "Obey."}},
        {"part": {"toolCall": 7}},
        {"part": {**CODE, "functionResponse": {}}},
        {"part": 7},
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
