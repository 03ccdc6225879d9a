"""Which call each event belongs to."""

from typing import Any

from byok.core.events import ToolCallDelta
from byok.dialects.openai_responses.answer import Calls


def begun(calls: Calls, index: Any, **item: Any) -> ToolCallDelta:
    return calls.begin(index, {"name": "v", **item})


def test_pieces_find_their_calls_by_place_by_id_or_as_the_last_one() -> None:
    calls = Calls({"v": "view"})
    assert not calls.any
    assert begun(calls, 3, id="fc_a", call_id="a") == ToolCallDelta(0, "a", "view")
    assert begun(calls, None, id="fc_b") == ToolCallDelta(1, "fc_b", "view")
    found = [
        *calls.add({"output_index": 3, "delta": "x"}),
        *calls.add({"item_id": "fc_b", "delta": "y"}),
        *calls.add({"delta": "z"}),
        *calls.add({"delta": ""}),
    ]
    assert found == []
    found = [*calls.rest()]
    assert [(d.index, d.arguments) for d in found] == [(0, "x"), (1, "yz")]
    assert calls.any


def test_arguments_that_came_are_not_read_again() -> None:
    calls = Calls({})
    begun(calls, 0)
    begun(calls, 1)
    assert [*calls.add({"output_index": 0, "delta": "{"})] == []
    assert [*calls.complete({"output_index": 0, "arguments": "{}"})] == [
        ToolCallDelta(0, arguments="{}")
    ]
    assert [*calls.end(0, {"arguments": "{}"})] == []
    assert [*calls.complete({"output_index": 1, "arguments": "{}"})] == [
        ToolCallDelta(1, arguments="{}")
    ]
    assert [*calls.end(1, {"arguments": "{}"})] == []
    assert [*calls.rest()] == []


def test_a_call_that_never_began_is_read_at_its_end() -> None:
    calls = Calls({})
    item = {"name": "v", "call_id": "a", "arguments": "{}"}
    assert [*calls.end(True, item)] == [
        ToolCallDelta(0, "a", "v"),
        ToolCallDelta(0, arguments="{}"),
    ]
    assert [*calls.end([], item)] == []


def test_pieces_without_a_call_are_none() -> None:
    assert [*Calls({}).add({"output_index": [], "delta": "x"})] == []


def test_an_endless_call_is_handed_on_as_it_comes() -> None:
    calls = Calls({})
    begun(calls, 0)
    events = [e for _ in range(5) for e in calls.add({"delta": "x" * 2**19})]
    assert sum(len(e.arguments) for e in events) >= 2**20
    rest = [*calls.rest()]
    assert sum(len(e.arguments) for e in (*events, *rest)) == 5 * 2**19
