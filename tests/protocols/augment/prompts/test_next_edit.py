"""A next edit names its place in code points, and only what changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.events import FinishReason
from byok.protocols.augment.prompts.next_edit import (
    decode_next_edit,
    decode_next_edit_place,
    difference,
    places_of,
    spot_of,
)
from tests.fakes.jobs import FACTS, PLAIN, events, streamed, whole

PREFIX, OLD, SUFFIX = 'G = "🚢 ahoy"\n\n\n', "def f(k):\n", "    return k\n"
BODY: dict[str, Any] = {
    "prefix": PREFIX,
    "selected_text": OLD,
    "suffix": SUFFIX,
    "selection_begin_char": len(PREFIX),
    "selection_end_char": len(PREFIX + OLD),
    "path": "a.py",
    "blob_name": "b1",
    "diagnostics": [{"message": "no annotation"}],
    "blocked_locations": [{"odd": 1}],
}
TEXTS = st.text(alphabet="ab🚢\r\n", max_size=30)


def test_next_edit_has_code_point_offsets() -> None:
    ran = streamed(decode_next_edit, BODY, events("EDIT: annotate k\ndef f(k: str):\n"))
    [line] = ran.lines
    edit = line["next_edit"]
    file = PREFIX + OLD + SUFFIX
    assert file[edit["char_start"] : edit["char_end"]] == edit["existing_code"] == OLD
    assert edit["suggested_code"] == "def f(k: str):\n"
    assert edit["change_description"] == "annotate k"
    assert (edit["path"], edit["blob_name"]) == ("a.py", "b1")
    assert edit["suggestion_id"] == "r-1-1"
    assert line["unknown_blob_names"] == []


def test_next_edit_suggests_only_changed_lines() -> None:
    body = {**BODY, "selected_text": "é = 1\n🚢 = 2\nz = 3\n"}
    ran = streamed(decode_next_edit, body, events("EDIT: x\né = 1\n🚢 = 4\nz = 3\n"))
    edit = ran.lines[0]["next_edit"]
    assert (edit["existing_code"], edit["suggested_code"]) == ("🚢 = 2\n", "🚢 = 4\n")
    assert edit["char_start"] == len(PREFIX) + len("é = 1\n")
    assert edit["char_end"] == edit["char_start"] + len("🚢 = 2\n")


@pytest.mark.parametrize(
    "answer",
    [
        "NONE",
        "No change is needed here.",
        "EDIT: nothing\n" + OLD,
        "EDIT: delete it\n```\n```",
    ],
)
def test_next_edit_without_a_suggestion_is_an_empty_stream(answer: str) -> None:
    ran = streamed(decode_next_edit, BODY, events(answer))
    assert (ran.lines, ran.error) == ([], None)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_next_edit_never_consists_of_line_breaks_at_the_end(
    ending: str, end: str
) -> None:
    old = "a = 1\nb = 2\n\n".replace("\n", ending)
    body = {**BODY, "selected_text": old}
    assert not streamed(
        decode_next_edit, body, events(f"EDIT: x\na = 1\nb = 2{end}")
    ).lines
    [line] = streamed(
        decode_next_edit, body, events(f"EDIT: x\na = 1\nb = 3{end}")
    ).lines
    edit = line["next_edit"]
    assert edit["existing_code"] == f"b = 2{ending}"
    assert edit["suggested_code"] == f"b = 3{ending}"


def test_next_edit_may_have_the_code_fences_of_its_file() -> None:
    old = '"""\n```\nf(1)\n```\n"""\n'
    new = old.replace("1", "2")
    body = {**BODY, "selected_text": old}
    [line] = streamed(decode_next_edit, body, events(f"EDIT: x\n```py\n{new}```")).lines
    assert line["next_edit"]["suggested_code"] == "f(2)\n"


@pytest.mark.parametrize(
    "answer",
    [
        "```\nEDIT: x\ndef g(k):\n```",
        "EDIT: x\r\ndef g(k):",
    ],
)
def test_next_edit_drops_code_fences_of_the_answer(answer: str) -> None:
    [line] = streamed(decode_next_edit, BODY, events(*answer)).lines
    assert line["next_edit"]["suggested_code"] == "def g(k):\n"


def test_next_edit_of_a_cut_answer_is_none() -> None:
    answer = events("EDIT: x\ndef g(", finish=FinishReason.LENGTH)
    ran = streamed(decode_next_edit, BODY, answer)
    assert ran.lines == []
    assert ran.error is not None


def test_next_edit_at_a_cursor_takes_the_lines_around_it() -> None:
    prefix = "".join(f"a{n}\n" for n in range(30)) + "xy"
    suffix = "z\n" + "".join(f"b{n}\n" for n in range(30))
    spot = spot_of({"prefix": prefix, "suffix": suffix})
    assert (prefix + suffix)[spot.begin : spot.begin + len(spot.old)] == spot.old
    assert spot.old.startswith("a21\n")
    assert spot.old.endswith("b8\n")
    assert spot.before + spot.old + spot.after == prefix + suffix


def test_next_edit_without_code_asks_nobody() -> None:
    assert decode_next_edit({}, PLAIN).chat.messages == ()
    assert streamed(decode_next_edit, {}, []).lines == []


@given(TEXTS, TEXTS)
def test_next_edit_difference_applied_gives_the_new_text(old: str, new: str) -> None:
    found = difference(old, new)
    if found is None:
        assert old == new
        return
    start, before, after = found
    assert old[start : start + len(before)] == before
    assert old[:start] + after + old[start + len(before) :] == new
    assert before or not old


# Places for the next edit are those that the client named


PLACE_BODY: dict[str, Any] = {
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
    reply = whole(decode_next_edit_place, {**PLACE_BODY, **body}, events(answer))
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
    reply = decode_next_edit_place(PLACE_BODY, PLAIN).reply(FACTS)
    assert reply.fail_whole(UpstreamGarbled("x")) == EMPTY
