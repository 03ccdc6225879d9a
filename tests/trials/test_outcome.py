"""The sums of a row, and what a script gets."""

from byok.trials.outcome import TrialOutcome, TrialRow, WrongCall


def test_a_row_adds_up_its_outcomes() -> None:
    one = TrialOutcome("a", "m", steps=3, input_tokens=10, seconds=1.26, printed=1)
    one.count_wrong(WrongCall.FAILED)
    one.count_wrong(WrongCall.FAILED)
    one.count_wrong(WrongCall.REPEATED)
    two = TrialOutcome("b", "m", "why", steps=1, seconds=2)
    row = TrialRow("m", "", [one, two])
    assert [row.total(n) for n in ("is_solved", "steps", "wrong_calls")] == [1, 4, 3]
    assert row.seconds == 3.26
    told = row.as_json()
    assert (told["model"], told["solved"]) == ("m", 1)
    assert told["tasks"][0]["wrong_calls"] == {
        "unknown_tool": 0,
        "broken_arguments": 0,
        "repeated": 1,
        "failed": 2,
    }
    assert told["tasks"][0]["seconds"] == 1.3
    assert (told["tasks"][1]["solved"], told["tasks"][1]["fault"]) == (False, "why")
