"""Recent answers, to which the next requests of a client may refer."""

from typing import Any

import pytest

from byok.protocols.v1.recent_answers import RecentAnswers, input_name

ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
USER = {"role": "user", "content": "Hi."}


def refer(name: Any) -> dict[str, Any]:
    return {"type": "item_reference", "id": name}


def test_references_are_filled_in_with_the_items() -> None:
    recent = RecentAnswers()
    recent.keep("msg_1", ITEM)
    body = {"model": "m", "input": [USER, refer("msg_1"), refer("msg_2")]}
    assert recent.fill_in(body) == {
        "model": "m",
        "input": [USER, ITEM, refer("msg_2")],
    }


def test_the_conversation_before_a_response_is_filled_in() -> None:
    recent = RecentAnswers()
    recent.keep(input_name("resp_1"), [USER])
    body = {"model": "m", "previous_response_id": "resp_1", "input": "And?"}
    assert recent.fill_in(body) is body  # it has no end yet
    recent.keep("resp_1", [ITEM])
    more = {"role": "user", "content": "And?"}
    assert recent.fill_in(body) == {"model": "m", "input": [USER, ITEM, more]}
    unknown = {**body, "previous_response_id": "resp_2"}
    assert recent.fill_in(unknown) is unknown


@pytest.mark.parametrize(
    "given", ["Hi.", None, 1, [USER, "x", 1], [refer("msg_2"), refer(1), refer(None)]]
)
def test_a_body_without_known_references_stays_as_it_is(given: Any) -> None:
    recent = RecentAnswers()
    recent.keep("msg_1", ITEM)
    body = {"input": given}
    assert recent.fill_in(body) is body


def test_items_that_were_not_used_for_long_are_forgotten() -> None:
    recent = RecentAnswers(room=200)
    for number in range(9):
        recent.keep(f"msg_{number}", {**ITEM, "id": f"msg_{number}"})
    body = {"input": [refer("msg_0"), refer("msg_8")]}
    found = recent.fill_in(body)["input"]
    assert found == [refer("msg_0"), {**ITEM, "id": "msg_8"}]
