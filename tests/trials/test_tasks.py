"""The shipped tasks: what is wanted parses, and differs from what is there."""

from pathlib import Path

import pytest

from byok.errors import ConfigError
from byok.trials.judge import find_fault
from byok.trials.normal_form import find_meaning
from byok.trials.tasks import TrialTask, all_tasks, choose_tasks, read_task

EACH = pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)


def test_there_are_ten_tasks_of_two_to_six_files() -> None:
    assert len(all_tasks()) == 10
    assert {len({*t.before, *t.wanted}) for t in all_tasks()} <= {2, 3, 4, 5, 6}


@EACH
def test_what_is_wanted_parses_and_means_something_else(task: TrialTask) -> None:
    for path, text in task.before.items():
        find_meaning(path, text)
    for path, texts in task.wanted.items():
        meanings = [find_meaning(path, text) for text in texts]
        assert all(m == meanings[0] for m in meanings) is (len(meanings) == 1)
        if path in task.before:
            assert find_meaning(path, task.before[path]) not in meanings


@EACH
def test_each_accepted_text_solves_the_task_and_doing_nothing_does_not(
    task: TrialTask,
) -> None:
    answer = " ".join(group[0] for group in task.answer)
    solved = {**task.before, **{path: texts[0] for path, texts in task.wanted.items()}}
    for path, texts in task.wanted.items():
        for text in texts:
            assert find_fault(task, {**solved, path: text}, answer) == ""
    assert find_fault(task, solved, answer) == ""
    assert find_fault(task, task.before, "")


@EACH
def test_the_question_does_not_contain_the_answer(task: TrialTask) -> None:
    given = [g for g in task.answer if any(t in task.question.lower() for t in g)]
    assert len(given) < max(1, len(task.answer))


@EACH
def test_the_documentation_lists_the_task(task: TrialTask) -> None:
    page = Path(__file__).parents[2] / "docs" / "PROMPTS.md"
    assert f"| {task.name} | {task.about} |" in page.read_text("utf-8")


def test_tasks_are_chosen_by_name_each_once() -> None:
    assert choose_tasks([]) == all_tasks()
    names = [task.name for task in choose_tasks(["rename", "question", "rename"])]
    assert names == ["rename", "question"]
    with pytest.raises(ConfigError, match="'no-such'") as caught:
        choose_tasks(["no-such"])
    assert "equal-places" in caught.value.hint


def test_a_file_without_after_must_stay_and_one_without_before_is_new() -> None:
    task = read_task(
        "t",
        """
        about = "a"
        question = '''
        One
        two?
        '''
        [[file]]
        path = "a.py"
        before = "a = 1"
        [[file]]
        path = "b.py"
        after = ["b = 1", "b = 2"]
        """,
    )
    assert task.question == "One two?"
    assert task.before == {"a.py": "a = 1"}
    assert task.wanted == {"b.py": ("b = 1", "b = 2")}
