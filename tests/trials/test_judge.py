"""Solved is what is wanted, and nothing beside it."""

from dataclasses import replace

import pytest

from byok.trials.judge import find_fault
from byok.trials.tasks import TrialTask, choose_tasks

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


def test_an_apostrophe_may_be_of_either_kind() -> None:
    task = replace(TASK, answer=(("n't exist",),))
    assert find_fault(task, DONE, "It doesn’t exist.") == ""


SAID = "The file billing/invoice.py doesn’t exist in this workspace."


@pytest.mark.parametrize(
    ("answer", "is_solved"),
    [
        (SAID, True),
        ("I can't locate billing/invoice.py.", True),
        ("billing/invoice.py isn't present here.", True),
        ("I rounded the total in billing/invoice.py.", False),
        ("invoice.py rounds now, not in cents.", False),
    ],
)
def test_the_answer_about_a_missing_file(answer: str, is_solved: bool) -> None:
    (task,) = choose_tasks(["missing-file"])
    assert (find_fault(task, task.before, answer) == "") is is_solved


@pytest.mark.parametrize("at", [0, 1])
def test_a_right_solution_may_name_its_variables_as_it_likes(at: int) -> None:
    (task,) = choose_tasks(["off-by-one"])
    path, lines = "report/monthly.py", [" " * 4 + "lines = []\n"]
    lines.insert(at, "    days = days_in_month(year, month)\n")
    text = task.before[path].replace("    lines = []\n", "".join(lines))
    right = text.replace("range(1, days_in_month(year, month))", "range(1, days + 1)")
    assert find_fault(task, {**task.before, path: right}, "") == ""
    wrong = right.replace("days + 1", "days + 2")
    assert find_fault(task, {**task.before, path: wrong}, "") != ""
