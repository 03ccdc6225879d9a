"""Rows about tools, calls and pictures, on the smallest body that has them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.body_rows import (
    BodyShape,
    body_rows,
    most_tools,
    presumed_remedies,
)
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    apply_remedies,
    find_remedy,
)

SHAPE = BodyShape(
    tools=lambda body: list(body.get("tools", ())),
    offer=lambda body, tools: {**body, "tools": list(tools)},
    called=lambda body: set(body.get("called", ())),
    begins=lambda body: not body.get("called"),
    has_calls=lambda body: bool(body.get("called")),
    calls_as_text=lambda body: {**body, "called": []},
    has_pictures=lambda body: "picture" in body,
    shows=lambda body: "picture" in body,
    pictures_as_text=lambda body: {**body, "picture": "words"},
    parameters=("tool_choice", "most"),
    schema="schema",
)
ROWS = body_rows(SHAPE)


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"name": name, "description": description, "schema": {}}


def found(body: Any, message: str, *extra: str) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, 400)
    return find_remedy(ROWS, RefusedRequest(body, error, extra))


def after(body: Any, message: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    remedy = found(body, message)
    assert remedy
    return apply_remedies(ROWS, body, [remedy], new=[remedy], agent=True)


def test_fewer_tools_keep_the_called_ones_in_their_order() -> None:
    offered = [tool(name) for name in ("x", "y", "b", "z")]
    body = {"tools": offered, "called": ["b"]}
    sent, (notice,) = after(body, "At most 2 tools are taken.")
    assert sent["tools"] == [offered[0], offered[2]]
    assert notice.startswith("This model takes 2 tools at most")
    few = {"tools": offered[:2]}
    assert apply_remedies(ROWS, few, most_tools(2)) == (few, ())
    assert most_tools(0) == ()


@given(st.text(max_size=300), st.integers(1, 200))
def test_tool_descriptions_are_truncated_to_the_length_given(
    text: str, longest: int
) -> None:
    body = {"tools": [tool("a", text)]}
    remedy = Remedy("descriptions", str(longest))
    ((cut,), _) = (apply_remedies(ROWS, body, [remedy])[0]["tools"], "")
    assert len(cut["description"]) <= longest
    assert cut["description"] == text or len(text) > longest
    assert apply_remedies(ROWS, {}, [remedy]) == ({}, ())


def test_long_tool_descriptions_are_found_in_a_refusal() -> None:
    body = {"tools": [tool("a", "long")]}
    text = "tools.0.custom.description: String should have at most 3 characters"
    assert len(after(body, text)[0]["tools"][0]["description"]) <= 3


def test_a_refused_tool_is_left_out_until_it_changes() -> None:
    body = {"tools": [tool("a"), tool("b")]}
    sent, (notice,) = after(body, "Invalid schema for function 'b'.")
    assert sent["tools"] == [tool("a")]
    assert notice.endswith(": b.")
    remedy = found(body, "Invalid schema for function 'b'.")
    assert remedy
    changed = {"tools": [tool("b", "new")]}
    assert apply_remedies(ROWS, changed, [remedy]) == (changed, ())
    assert found(body, "Invalid schema for function 'b'.", "tools") is None


@pytest.mark.parametrize("called", [["b"], []])
def test_a_model_without_tools_gets_none_and_calls_as_text(called: list[str]) -> None:
    body = {"tools": [tool("b")], "called": called}
    sent, (notice,) = after(body, "This model does not support tools.")
    assert (sent["tools"], sent["called"]) == ([], [])
    assert "asked without tools" in notice


def test_tools_stay_where_a_field_beside_them_is_refused() -> None:
    body = {"tools": [tool("b")], "tool_choice": "auto"}
    text = "tool_choice: tools are not supported"
    assert found(body, text) is None
    assert found({"tools": [tool("b")]}, text) == Remedy(
        "no tools", "Choose a model that can call tools, or use the chat mode."
    )


def test_old_calls_become_text_where_no_tools_are_offered() -> None:
    refused = "This model does not support tools."
    assert after({"called": ["b"]}, refused) == ({"called": []}, ())
    assert found({"called": []}, refused) is None
    both = {"tools": [tool("b")], "called": ["b"]}
    assert apply_remedies(ROWS, both, [Remedy("calls")]) == (both, ())


def test_pictures_become_a_sentence() -> None:
    text = "image input is not supported"
    sent, (notice,) = after({"picture": 1}, text)
    assert sent == {"picture": "words"}
    assert "does not support images" in notice
    assert found({}, text) is None


def test_facts_tell_the_remedies_of_a_model() -> None:
    facts = ModelFacts("m", tools=False, most_tools=7, images=False)
    changes = [remedy.change for remedy in presumed_remedies(facts)]
    assert changes == ["most tools", "no tools", "pictures"]
    assert set(changes) <= ROWS.keys()
    assert presumed_remedies(ModelFacts("m", tools=True, images=True)) == ()
