"""What is a loop, and what is honest work that looks like one."""

from collections.abc import Iterable, Iterator
from itertools import cycle, islice

import pytest
from pydantic import ValidationError

from byok.features.loops.watch import AnsweredCall, Loop, LoopKind, LoopWatch
from byok.features.settings import LoopSettings
from tests.fakes.clock import check_linear

LIMITS = LoopSettings()


def failing(path: str = "a.py", error: str = "no such text") -> AnsweredCall:
    return AnsweredCall("edit", f'{{"path": "{path}"}}', error, is_error=True)


def success(path: str = "a.py", content: str = "def f(): ...") -> AnsweredCall:
    return AnsweredCall("view", f'{{"path": "{path}"}}', content)


def poll(content: str = "still running") -> AnsweredCall:
    return AnsweredCall("read-process", '{"terminal_id": 1}', content)


def facts(
    calls: Iterable[AnsweredCall], limits: LoopSettings = LIMITS
) -> dict[int, str]:
    """Return what is told of each step, one call a step, by the number of the step."""
    watch = LoopWatch(limits)
    found = {n: watch.add_step([call]) for n, call in enumerate(calls, 1)}
    return {n: loop.fact for n, loop in found.items() if loop}


def works(steps: int) -> Iterator[AnsweredCall]:
    """An honest agent: looks, edits, runs equal tests that fail in the same way."""
    for n in range(steps):
        match n % 4:
            case 0:
                yield success(f"file{n}.py", f"content {n}")
            case 1:
                yield AnsweredCall("edit", f'{{"path": "f{n}.py"}}', "edited")
            case 2:
                yield AnsweredCall("run", '{"command": "make"}', f"failed: line {n}")
            case _:
                yield AnsweredCall("run", '{"command": "ruff"}', "All checks passed!")


def fails_otherwise(runs: int) -> Iterator[AnsweredCall]:
    """An edit, then a command that fails, each time with other words."""
    for n in range(runs):
        yield AnsweredCall("edit", f'{{"line": {n}}}', "edited")
        yield AnsweredCall("run", "{}", f"{n} failed in 0.{n} s", is_error=True)


FAILING = {n: f"warned-failing-{n}" for n in (3, 4, 5)} | {6: "ended-failing-6"}
LOOPS = {
    "the same failing call": (
        [failing()] * 7,
        {**FAILING, 7: "ended-failing-7"},
    ),
    "with an error that names the time": (
        [failing(error=f"at {n}: no such text") for n in range(6)],
        FAILING,
    ),
    "two failing calls in turn": (
        [*islice(cycle([failing("a"), failing("b")]), 11)],
        {n: f"warned-failing-{(n + 1) // 2}" for n in range(5, 11)}
        | {11: "ended-failing-6"},
    ),
    "the same failing call between looks at the same file": (
        [*islice(cycle([failing(), success()]), 12)],
        # The first look is new: what counts begins behind it.
        {
            5: "warned-failing-3",
            7: "warned-failing-4",
            9: "warned-failing-5",
            10: "warned-repeated-5",
            11: "warned-failing-6",
            12: "warned-repeated-6",
        },
    ),
    "the same result": (
        [success()] * 10,
        {n: f"warned-repeated-{n}" for n in range(5, 10)} | {10: "ended-repeated-10"},
    ),
    "two calls with the same results in turn": (
        [*islice(cycle([success("a"), success("b")]), 11)],
        {10: "warned-repeated-5", 11: "warned-repeated-5"},
    ),
}


@pytest.mark.parametrize(("calls", "expected"), LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_is_told_and_ended(
    calls: list[AnsweredCall], expected: dict[int, str]
) -> None:
    assert facts(calls) == expected


HONEST = {
    "a hundred steps of work": works(149),
    "tests that fail after each edit": fails_otherwise(40),
    "waiting for a process": [poll()] * 120,
    "a call that fails twice, once more later": [
        *([failing()] * 2),
        *works(60),
        failing(),
    ],
    "a process whose words change": [poll(f"{n} %") for n in range(120)],
    "other tools with the same words": [success(f"{n}", "ok") for n in range(120)],
    "nothing": [],
}


@pytest.mark.parametrize("calls", HONEST.values(), ids=HONEST.keys())
def test_honest_work_is_left_alone(calls: Iterable[AnsweredCall]) -> None:
    assert facts(calls) == {}


def test_failures_in_the_same_words_count_across_progress_but_end_a_turn_later() -> (
    None
):
    calls = [call for n in range(13) for call in (success(f"{n}"), failing())]
    found = facts(calls)
    assert found[6] == "warned-failing-3"
    assert [n for n, fact in found.items() if fact.startswith("ended")] == [24, 26]


def test_what_failed_long_ago_is_forgotten() -> None:
    calls = [failing(), failing(), *(success(f"{n}") for n in range(39)), failing()]
    assert facts(calls) == {}


def test_a_turn_without_end_is_told_again_and_ended() -> None:
    found = facts(success(f"{n}", f"{n}") for n in range(401))
    assert found == {
        **{n: f"warned-steps-{n}" for n in range(150, 400, 50)},
        400: "ended-steps-400",
        401: "ended-steps-401",
    }


def test_the_users_words_begin_the_count_anew() -> None:
    watch = LoopWatch(LIMITS)
    for _ in range(3):
        assert not any(watch.add_step([failing()]) for _ in range(2))
        watch.begin_turn()


def test_parallel_calls_end_no_turn_before_the_model_was_told() -> None:
    watch = LoopWatch(LIMITS)
    first = watch.add_step([failing()] * 20)
    assert first and first.fact == "warned-failing-20"
    second = watch.add_step([failing()])
    assert second and second.fact == "ended-failing-21"


def test_the_worst_loop_of_a_step_is_told() -> None:
    watch = LoopWatch(LIMITS)
    for _ in range(5):
        watch.add_step([success(), failing()])
    loop = watch.add_step([success(), failing()])
    assert loop and (loop.fact, loop.call) == ("ended-failing-6", failing())


@pytest.mark.parametrize(
    ("limits", "calls", "expected"),
    [
        (LoopSettings(on=False), [failing()] * 9, {}),
        (LoopSettings(failing_warn=0, failing_end=0), [failing()] * 9, {}),
        (LoopSettings(failing_end=2, failing_warn=0), [failing()] * 2,
         {2: "ended-failing-2"}),
        (LoopSettings(failing_end=0, failing_warn=2), [failing()] * 3,
         {2: "warned-failing-2", 3: "warned-failing-3"}),
        (LoopSettings(repeated_warn=0, repeated_end=0), [success()] * 30, {}),
        (LoopSettings(steps_warn=0, steps_end=2), map(success, "ab"),
         {2: "ended-steps-2"}),
        (LoopSettings(steps_warn=2, steps_end=0), map(success, "abc"),
         {2: "warned-steps-2"}),
        (LoopSettings(polling=frozenset()), [poll()] * 5, {5: "warned-repeated-5"}),
    ],
)  # fmt: skip
def test_limits_are_the_users(
    limits: LoopSettings, calls: Iterable[AnsweredCall], expected: dict[int, str]
) -> None:
    assert facts(calls, limits) == expected


def test_a_long_history_takes_linear_time() -> None:
    def run(count: int) -> None:
        watch = LoopWatch(LIMITS)
        for n in range(count):
            watch.add_step([failing(f"{n % 7}"), success(f"{n % 50}"), success(f"{n}")])

    check_linear(run, 1000)


def call(arguments: str, name: str = "t", content: str = "") -> AnsweredCall:
    return AnsweredCall(name, arguments, content)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": {"x": 1, "y": 2}}', '{"a": {"y": 2, "x": 1}}', True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": "\\u00e4"}', '{"a": "ä"}', True),
        ("not json", "not json", True),
        ("not json", "not  json", False),
        ("\ud83d", "\ud83d", True),
        ("[" * 2000, "[" * 2000, True),
        ("", "{}", False),
    ],
)
def test_arguments_are_compared_by_value(one: str, other: str, equal: bool) -> None:
    assert (call(one).key == call(other).key) is equal


def test_a_strangers_words_are_shown_short_and_on_one_line() -> None:
    odd = AnsweredCall("n\x1b[2J" * 99, '{"a":\n "\u202e"}', "\n\n no\nsuch \x07" * 99)
    for shown in (odd.summary, odd.short_name, odd.short_error):
        assert len(shown) < 400
        assert shown.isprintable()
    assert call("{}").short_error == "no result"


CALL = AnsweredCall("edit", '{"path": "a.py"}', "No such text.\nMore.", is_error=True)


@pytest.mark.parametrize("kind", LoopKind)
@pytest.mark.parametrize("ends", [False, True])
def test_sentences_are_one_line_and_say_how_often(kind: LoopKind, ends: bool) -> None:
    loop = Loop(kind, 7, CALL, ends)
    assert loop.fact == f"{'ended' if ends else 'warned'}-{kind}-7"
    assert loop.for_model.startswith("\n\n[Note from byok: ")
    assert "\n" not in loop.for_model.strip()
    assert "7" in loop.for_model
    assert "7" in loop.for_user
    assert "[loops]" in loop.for_user


def test_the_model_is_told_the_call_and_the_failure_and_the_user_only_the_tool() -> (
    None
):
    loop = Loop(LoopKind.FAILING, 3, CALL, ends=True)
    assert CALL.arguments in loop.for_model and "No such text. More." in loop.for_model
    assert "edit" in loop.for_user
    assert "a.py" not in loop.for_user and "No such" not in loop.for_user


@pytest.mark.parametrize("kind", ["failing", "repeated", "steps"])
@pytest.mark.parametrize(
    ("warn", "end", "good"),
    [(3, 4, True), (3, 0, True), (0, 2, True), (3, 3, False), (4, 3, False)],
)
def test_a_model_is_told_before_a_turn_is_ended(
    kind: str, warn: int, end: int, good: bool
) -> None:
    values = {f"{kind}_warn": warn, f"{kind}_end": end}
    if good:
        LoopSettings.model_validate(values)
        return
    with pytest.raises(ValidationError, match=f"{kind}_end must be more than"):
        LoopSettings.model_validate(values)
