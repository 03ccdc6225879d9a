"""Places for the next edit are those that the client named."""

from typing import Any

import pytest

from byok.core.errors import UpstreamGarbled
from byok.protocols.augment.prompts.next_edit import decode_next_edit_place, places_of
from tests.fakes.jobs import FACTS, PLAIN, STATE, events, whole

BODY: dict[str, Any] = {
    "path": "a.py",
    "instruction": "annotate",
    "diagnostics": [
        {"location": {"path": "a.py", "line_start": 3, "line_end": 4}, "message": "m"},
        {"location": {"path": "b.py", "line_start": 7}, "message": "n"},
    ],
    "edit_events": [{"path": "c.py", "edits": [{"after_line_start": 1}]}],
}
EMPTY = {
    "candidate_locations": [],
    "unknown_blob_names": [],
    "checkpoint_not_found": False,
    "critical_errors": [],
}


def found(answer: str, **body: Any) -> list[tuple[str, int, int]]:
    reply = whole(decode_next_edit_place, {**BODY, **body}, events(answer))
    items = [c["item"] for c in reply["candidate_locations"]]
    return [(i["path"], i["range"]["start"], i["range"]["stop"]) for i in items]


def test_next_edit_locations_are_ordered_by_the_model() -> None:
    assert found("2, 1") == [("b.py", 7, 8), ("a.py", 3, 5)]
    assert found("3") == [("c.py", 1, 2)]


def test_next_edit_locations_are_only_candidates() -> None:
    assert found("0, 9, 99999, NONE, -2, 2") == [("b.py", 7, 8)]
    assert found("NONE") == []


def test_next_edit_locations_are_limited_by_the_request() -> None:
    many = [{"location": {"path": "x", "line_start": n}} for n in range(20)]
    numbers = ",".join(map(str, range(1, 20)))
    assert len(found(numbers, diagnostics=many)) == 6
    assert len(found(numbers, diagnostics=many, num_results=2)) == 2
    assert len(found(numbers, diagnostics=many, num_results=-1)) == 6


def test_next_edit_locations_of_a_single_file_stay_in_it() -> None:
    assert found("1,2,3", is_single_file=True) == [("a.py", 3, 5)]


@pytest.mark.parametrize(
    "body", [{}, {"diagnostics": [{}, {"location": {"line_start": -4, "path": "x"}}]}]
)
def test_next_edit_locations_without_candidates_ask_nobody(
    body: dict[str, Any],
) -> None:
    assert places_of(body) == []
    assert whole(decode_next_edit_place, body, []) == EMPTY


def test_next_edit_locations_of_a_failure_are_empty() -> None:
    reply = decode_next_edit_place(BODY, PLAIN, STATE).reply(FACTS)
    assert reply.fail_whole(UpstreamGarbled("x")) == EMPTY
