"""Solved is what is wanted, and nothing beside it."""

import pytest

from byok.trials.judge import find_fault
from byok.trials.tasks import TrialTask

TASK = TrialTask(
    "t",
    "about",
    "question",
    {"a.py": "a = 1\n", "b.json": '{"b": 1}\n', "c.md": "text\n"},
    {"a.py": ("a = 2\n", "a = 3\n"), "new.py": ("n = 1\n",)},
    (("alpha",), ("one", "two")),
)
DONE = {**TASK.before, "a.py": "a = 2\n", "new.py": "n = 1\n"}
ANSWER = "Alpha, and TWO."


@pytest.mark.parametrize(
    "change",
    [{}, {"a.py": "a = 3  # three"}, {"b.json": '{ "b" : 1 }'}, {"c.md": "text"}],
    ids=str,
)
def test_any_accepted_text_in_any_layout_solves(change: dict[str, str]) -> None:
    assert find_fault(TASK, {**DONE, **change}, ANSWER) == ""


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"a.py": "a = 1\n"}, "a.py was not changed"),
        ({"a.py": "a = 4\n"}, "a.py is not as wanted"),
        ({"a.py": "a = (\n"}, "a.py cannot be parsed any more"),
        ({"b.json": '{"b": 2}'}, "b.json was changed, which nobody asked for"),
        ({"b.json": "b"}, "b.json cannot be parsed any more"),
        ({"c.md": ""}, "c.md was changed, which nobody asked for"),
        ({"d.py": ""}, "d.py was made, which nobody asked for"),
        ({"new.py": "n = 2\n"}, "new.py is not as wanted"),
    ],
)
def test_anything_else_is_a_fault(change: dict[str, str], fault: str) -> None:
    assert find_fault(TASK, {**DONE, **change}, ANSWER) == fault


def test_a_file_that_was_not_made_is_a_fault() -> None:
    without = {path: text for path, text in DONE.items() if path != "new.py"}
    assert find_fault(TASK, without, ANSWER) == "new.py was not made"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("One.", "the answer does not say 'alpha'"),
        ("Alpha.", "the answer does not say 'one'"),
        ("", "the answer does not say 'alpha'"),
    ],
)
def test_an_answer_must_say_what_is_wanted(answer: str, fault: str) -> None:
    assert find_fault(TASK, DONE, answer) == fault
