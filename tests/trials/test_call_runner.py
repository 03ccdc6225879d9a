"""Each wrong call counts once, and the model is told what was wrong."""

import json

import pytest

from byok.trials.call_runner import CallRunner
from byok.trials.outcome import WrongCall
from byok.trials.trial_files import TrialFiles

VIEW = json.dumps({"path": "a.py", "type": "file"})
EDIT = {"command": "str_replace", "path": "a.py", "old_str_1": "one", "new_str_1": "1"}


@pytest.fixture
def counted() -> list[WrongCall]:
    return []


@pytest.fixture
def runner(counted: list[WrongCall]) -> CallRunner:
    return CallRunner(TrialFiles({"a.py": "one\n"}), counted.append)


@pytest.mark.parametrize(
    ("name", "raw", "wrong"),
    [
        ("view", VIEW, None),
        ("shell", "{}", WrongCall.UNKNOWN_TOOL),
        ("\x1b[2J" * 1000, "{}", WrongCall.UNKNOWN_TOOL),
        ("view", "", WrongCall.BROKEN_ARGUMENTS),
        ("view", "[]", WrongCall.BROKEN_ARGUMENTS),
        ("view", "null", WrongCall.BROKEN_ARGUMENTS),
        ("view", '{"path"', WrongCall.BROKEN_ARGUMENTS),
        ("view", "[" * 100_000, WrongCall.BROKEN_ARGUMENTS),
        ("view", '{"a":' * 900 + "1" + "}" * 900, WrongCall.BROKEN_ARGUMENTS),
        ("view", "{}", WrongCall.BROKEN_ARGUMENTS),
        ("view", '{"path": 1, "type": "file"}', WrongCall.BROKEN_ARGUMENTS),
        ("view", '{"path": "\\ud800", "type": "file"}', WrongCall.FAILED),
        ("view", '{"path": "../../etc/passwd", "type": "file"}', WrongCall.FAILED),
        ("view", '{"path": "a\\u0000", "type": "file"}', WrongCall.FAILED),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_wrong_call_is_counted_and_answered_with_an_error(
    runner: CallRunner,
    counted: list[WrongCall],
    name: str,
    raw: str,
    wrong: WrongCall | None,
) -> None:
    result = runner.run(name, raw)
    assert counted == ([wrong] if wrong else [])
    assert result.is_error is bool(wrong)
    assert 0 < len(result.content) < 300


def test_a_repeated_call_counts_until_a_file_changes(
    runner: CallRunner, counted: list[WrongCall]
) -> None:
    other_order = json.dumps({"type": "file", "path": "a.py"})
    assert not runner.run("view", VIEW).is_error
    assert not runner.run("view", other_order).is_error
    assert counted == [WrongCall.REPEATED]
    assert not runner.run("str-replace-editor", json.dumps(EDIT)).is_error
    assert not runner.run("view", VIEW).is_error
    assert counted == [WrongCall.REPEATED]
    for _ in range(2):
        assert runner.run("str-replace-editor", json.dumps(EDIT)).is_error
    assert counted == [WrongCall.REPEATED, WrongCall.FAILED, WrongCall.REPEATED]


def test_a_call_too_many_is_refused(
    runner: CallRunner, counted: list[WrongCall]
) -> None:
    assert runner.refuse().is_error
    assert counted == [WrongCall.FAILED]
