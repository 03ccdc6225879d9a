"""Servers of others: how long one that fails is left alone."""

import logging

import pytest

from byok.search.outside.server import Pause
from tests.fakes.clock import Clock


@pytest.mark.parametrize("luck", [0.5, 1.0])  # members do not come back all at once
def test_each_failure_doubles_the_pause_up_to_ten_minutes(luck: float) -> None:
    clock = Clock()
    pause = Pause("it", clock=clock, draw=lambda: 2 * luck - 1)
    lengths = []
    for _ in range(9):
        pause.begin("It is down.")
        lengths.append(pause.seconds / luck)
        clock.now += pause.seconds
        assert pause.seconds == 0
    assert lengths == [5, 10, 20, 40, 80, 160, 320, 600, 600]


def test_the_same_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "byok")
    pause = Pause("it", clock=Clock())
    for note in ("It is down.", "It is down.", "It refuses.", "It refuses."):
        pause.begin(note)
    pause.end()
    pause.end()
    pause.begin("It is down.")
    down, refuses, again, down_again = caplog.messages
    assert "It is down." in down
    assert "It refuses." in refuses
    assert again not in (down, refuses)
    assert down_again == down
