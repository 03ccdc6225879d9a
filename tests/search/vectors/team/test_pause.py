import logging

import pytest

from byok.search.vectors.team.server import Pause


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_failure_doubles_the_pause_up_to_ten_minutes() -> None:
    clock = Clock()
    pause = Pause(clock=clock, draw=lambda: 1.0)
    lengths = []
    for _ in range(9):
        pause.begin("It is down.")
        lengths.append(pause.seconds)
        clock.now += pause.seconds
        assert pause.seconds == 0
    assert lengths == [5, 10, 20, 40, 80, 160, 320, 600, 600]


def test_a_success_makes_the_next_pause_short_again() -> None:
    pause = Pause(clock=Clock(), draw=lambda: 1.0)
    pause.begin("It is down.")
    pause.begin("It is down.")
    pause.end()
    assert (pause.seconds, pause.note) == (0, "")
    pause.begin("It is down.")
    assert pause.seconds == 5


def test_members_do_not_come_back_all_at_once() -> None:
    early, late = (Pause(clock=Clock(), draw=lambda d=d: d) for d in (0.0, 1.0))  # type: ignore[misc]
    early.begin("It is down.")
    late.begin("It is down.")
    assert early.seconds == late.seconds / 2


def test_the_same_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "byok")
    pause = Pause(clock=Clock())
    for note in ("It is down.", "It is down.", "It refuses.", "It refuses."):
        pause.begin(note)
    pause.end()
    pause.end()
    pause.begin("It is down.")
    assert [record.getMessage() for record in caplog.records] == [
        "the team's index is not used: It is down.",
        "the team's index is not used: It refuses.",
        "the team's index is used again",
        "the team's index is not used: It is down.",
    ]
