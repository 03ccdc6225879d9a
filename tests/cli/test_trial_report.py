"""A line for each task that ended, and a table at the end."""

import pytest

from byok.cli.trial_report import TrialProgress, describe, say_rows
from byok.trials.outcome import TrialOutcome, TrialRow, WrongCall
from byok.trials.tasks import all_tasks

HOSTILE = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture
def row() -> TrialRow:
    good = TrialOutcome("a", "m", steps=1, input_tokens=1234, output_tokens=5)
    bad = TrialOutcome("b", "m", f"why {HOSTILE}", steps=4, seconds=7.4, printed=2)
    for kind in (WrongCall.FAILED, WrongCall.UNKNOWN_TOOL, WrongCall.FAILED):
        bad.count_wrong(kind)
    return TrialRow("byok:x:m", f"/prompts/{HOSTILE}", [good, bad])


@pytest.mark.parametrize("with_prompts", [True, False])
def test_the_table_has_a_row_a_model_and_the_reasons(
    row: TrialRow, with_prompts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    say_rows([row], with_prompts=with_prompts)
    out = capsys.readouterr().out
    assert "1 of 2" in out
    assert "1,234" in out
    assert "3 (2 failed, 1 unknown tool)" in out
    assert "  b: why \\x1b[2J" in out
    assert "\x1b" not in out
    assert ("/prompts/" in out) is with_prompts


def test_an_outcome_is_one_line() -> None:
    assert describe(TrialOutcome("a", "m", steps=2, seconds=3.2)) == (
        "a: solved (2 steps, 3 s)"
    )
    assert describe(TrialOutcome("a", "m", "why", steps=1)) == (
        "a: not solved: why (1 step, 0 s)"
    )
    left = TrialOutcome("a", "m", "not asked, after: why", asked=False)
    assert describe(left) == "a: not asked, after: why"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_is_told_line_by_line(
    row: TrialRow,
    is_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    outcomes = [*row.outcomes]
    row.outcomes.clear()
    with TrialProgress(2) as progress:
        progress.begin_row(row)
        for outcome in outcomes:
            progress.begin(all_tasks()[0])
            progress.end(outcome)
    err = capsys.readouterr().err
    assert "  1/2 a: solved (1 step, 0 s)" in err
    assert "  2/2 b: not solved: why \\x1b[2J" in err
    assert "owned\x07" not in err
    assert row.outcomes == outcomes
