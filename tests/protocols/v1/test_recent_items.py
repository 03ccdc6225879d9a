"""Items of recent answers, to which the next requests of a client may refer."""

from typing import Any

import pytest

from byok.protocols.v1.recent_items import RecentItems

ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
USER = {"role": "user", "content": "Hi."}


def refer(name: Any) -> dict[str, Any]:
    return {"type": "item_reference", "id": name}


def test_references_are_filled_in_with_the_items() -> None:
    recent = RecentItems()
    recent.keep(ITEM)
    body = {"model": "m", "input": [USER, refer("msg_1"), refer("msg_2")]}
    assert recent.fill_in(body) == {
        "model": "m",
        "input": [USER, ITEM, refer("msg_2")],
    }


@pytest.mark.parametrize(
    "given", ["Hi.", None, 1, [USER, "x", 1], [refer("msg_2"), refer(1), refer(None)]]
)
def test_a_body_without_known_references_stays_as_it_is(given: Any) -> None:
    recent = RecentItems()
    recent.keep(ITEM)
    body = {"input": given}
    assert recent.fill_in(body) is body


def test_items_that_were_not_used_for_long_are_forgotten() -> None:
    recent = RecentItems(room=200)
    for number in range(9):
        recent.keep({**ITEM, "id": f"msg_{number}"})
    body = {"input": [refer("msg_0"), refer("msg_8")]}
    found = recent.fill_in(body)["input"]
    assert found == [refer("msg_0"), {**ITEM, "id": "msg_8"}]
