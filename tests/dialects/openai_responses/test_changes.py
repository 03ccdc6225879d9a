"""A body: its tools, and calls and pictures as text."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from byok.dialects.openai_responses import changes
from tests.fakes.strict_responses import broken_rules

USER = {"type": "message", "role": "user", "content": "Hi?"}
SAID = {"type": "message", "role": "assistant", "content": "I look."}
SHOWN = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
PICTURE = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Look."}, SHOWN],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "view", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "out"}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "g"}
VIEW = {
    "type": "function",
    "name": "view",
    "description": "",
    "parameters": {"type": "object"},
}


def body(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **fields}


def test_tools_of_the_api_stay_beside_other_functions() -> None:
    search = {"type": "web_search"}
    both = body(USER, tools=[VIEW, search], tool_choice="auto")
    assert changes.read_tools(both) == [VIEW]
    assert changes.offer_tools(both, ())["tools"] == [search]
    alone = body(USER, tools=[VIEW], tool_choice="auto")
    assert changes.offer_tools(alone, ()) == body(USER)
    assert changes.called_tools(body(USER, CALL, RESULT)) == {"view"}


def test_an_input_of_the_user_has_no_items() -> None:
    asked = {"model": "m", "input": "Hi?"}
    assert changes.is_first_turn(asked)
    assert not changes.has_calls(asked)
    assert not changes.shows_picture(asked)
    assert changes.calls_as_text(asked) == asked
    assert changes.pictures_as_text(asked) == asked
    assert changes.without_reasoning(asked) == asked


def test_calls_and_results_become_text_of_the_user() -> None:
    sent = changes.calls_as_text(body(USER, SEALED, SAID, CALL, RESULT))
    assert "not a format to imitate" in sent["instructions"]
    record = "[earlier tool call]\nview {}\nresult:\nout"
    assert sent["input"] == [USER, SAID, {**USER, "content": record}]
    plain = body(USER, SAID, instructions="Be exact.")
    assert changes.calls_as_text(plain) == plain


def test_the_picture_of_a_result_stays_one() -> None:
    result = {**RESULT, "output": PICTURE["content"]}
    (_, sent) = changes.calls_as_text(body(USER, CALL, result))["input"]
    record, picture = sent["content"]
    assert record["text"].endswith("Look.\n\n[below]")
    assert picture == SHOWN


def test_reasoning_is_removed_up_to_a_place() -> None:
    request = body(USER, SEALED, SAID, SEALED, CALL, RESULT)
    assert changes.without_reasoning(request, 1)["input"][2:] == [
        SEALED,
        CALL,
        RESULT,
    ]
    assert SEALED not in changes.without_reasoning(request)["input"]


def test_the_system_prompt_may_be_an_item() -> None:
    sent = changes.instructions_as_item(body(USER, instructions="Be exact."))
    system = {"type": "message", "role": "system", "content": "Be exact."}
    assert sent == body(system, USER)
    assert changes.instructions_as_item(sent) == sent
    assert broken_rules(sent) == []


def test_pictures_of_the_newest_turn_matter() -> None:
    old = body(PICTURE, SAID, USER)
    assert changes.has_pictures(old)
    assert not changes.shows_picture(old)
    assert changes.shows_picture(body(USER, SAID, PICTURE))
    assert changes.shows_picture(body(CALL, {**RESULT, "output": [SHOWN]}))
    assert not changes.is_first_turn(old)
    assert changes.is_first_turn(body(USER))


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.booleans()), max_size=6)


@settings(max_examples=100)
@given(STEPS)
def test_changed_bodies_break_no_rule(steps: list[tuple[bool, int, bool]]) -> None:
    items: list[Any] = [USER]
    for number, (thinks, calls, shows) in enumerate(steps):
        ids = [f"c{number}_{n}" for n in range(calls)]
        items += [SEALED, SAID] if thinks else [SAID]
        items += [{**CALL, "call_id": i} for i in ids]
        output: Any = [SHOWN] if shows else "out"
        items += [{**RESULT, "call_id": i, "output": output} for i in ids]
        items.append(PICTURE)
    request = body(*items, tools=[VIEW])
    assert broken_rules(request) == []
    bare = changes.pictures_as_text(
        changes.calls_as_text(changes.offer_tools(request, ()))
    )
    assert broken_rules(bare) == []
    assert "input_image" not in json.dumps(bare)
    assert not changes.has_calls(bare)
