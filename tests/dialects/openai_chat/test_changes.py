"""A body: its tools, and calls and pictures as text."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from byok.dialects.openai_chat.changes import (
    calls_as_text,
    offer_tools,
    pictures_as_text,
)
from tests.fakes.openai_bodies import CALL, CALLED, PICTURE, USER, body, tool
from tests.fakes.strict import broken_rules

SYSTEM = {"role": "system", "content": "Be exact."}


def texts(request: Any) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in request["messages"]]


def test_tool_calls_and_results_become_text_in_user_messages() -> None:
    said = {"role": "assistant", "content": "I look.", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "out"}
    sent = calls_as_text(body(messages=[SYSTEM, USER, said, result]))
    system, *rest = texts(sent)
    assert system[1].startswith("Be exact.\n\n")
    assert "not a format to imitate" in system[1]
    assert rest == [
        ("user", "Hi?"),
        ("assistant", "I look."),
        ("user", "[earlier tool call]\nb {}\nresult:\nout"),
    ]


def test_a_tool_call_without_text_joins_the_user_message() -> None:
    _, only = texts(calls_as_text(body(messages=CALLED)))
    assert only == ("user", "Hi?\n\n[earlier tool call]\nb {}\nresult:\nout")


def test_an_image_beside_a_tool_call_as_text_stays_an_image() -> None:
    (_, message) = calls_as_text(body(messages=[*CALLED, PICTURE]))["messages"]
    assert [part["type"] for part in message["content"]] == ["text"] * 2 + ["image_url"]


def test_a_history_without_tool_calls_is_unchanged() -> None:
    request = body(messages=[SYSTEM, USER])
    assert calls_as_text(request) == request
    assert pictures_as_text(request) == request


STEPS = st.lists(
    st.tuples(st.sampled_from(["", "I look."]), st.integers(0, 3), st.booleans()),
    max_size=6,
)


@settings(max_examples=200)
@given(STEPS)
def test_changed_requests_break_no_rule(steps: list[tuple[str, int, bool]]) -> None:
    messages: list[dict[str, Any]] = [SYSTEM, USER]
    for number, (text, calls, pictured) in enumerate(steps):
        ids = [f"c{number}_{n}" for n in range(calls)]
        said: dict[str, Any] = {"role": "assistant", "content": text or "Well."}
        if calls:
            said |= {
                "content": text or None,
                "tool_calls": [CALL | {"id": i} for i in ids],
            }
        results = [{"role": "tool", "tool_call_id": i, "content": i} for i in ids]
        messages += [said, *results]
        if not calls or pictured:
            messages.append(PICTURE)
    request = body(tool("b"), messages=messages, stream=True)
    assert broken_rules(request) == []
    bare = pictures_as_text(calls_as_text(offer_tools(request, ())))
    assert broken_rules(bare) == []
    shown = json.dumps(bare)
    assert "tool_call" not in shown
    assert "image_url" not in shown
    for number, (_, calls, _) in enumerate(steps):
        assert all(f"c{number}_{n}" in shown for n in range(calls))
