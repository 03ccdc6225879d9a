"""A next edit names its place in code points, and only what changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.events import FinishReason
from byok.protocols.augment.prompts.next_edit import (
    decode_next_edit,
    difference,
    spot_of,
)
from tests.fakes.jobs import PLAIN, STATE, events, streamed

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
    assert decode_next_edit({}, PLAIN, STATE).chat.messages == ()
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
