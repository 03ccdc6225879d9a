"""When a model of the user's is left alone, and for how long."""

import logging

import pytest

from byok.core.errors import ConfigError, KeyMissing, UpstreamGarbled
from byok.search.retrieval.model_aids import ModelRest
from tests.fakes.clock import Clock

GARBLED = UpstreamGarbled("it wrote nonsense.")


def seconds_of_rest(rest: ModelRest, clock: Clock) -> int:
    seconds = 0
    while not rest.is_over:
        clock.now += 1
        seconds += 1
    return seconds


def test_a_model_rests_longer_each_time_it_fails_again() -> None:
    clock = Clock()
    rest = ModelRest("nothing is translated", clock)
    assert rest.is_over
    rests = []
    for _ in range(8):
        rest.note_failure(GARBLED)
        rests.append(seconds_of_rest(rest, clock))
    assert rests == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    rest.note_answer()
    rest.note_failure(GARBLED)
    assert seconds_of_rest(rest, clock) == 60


def test_a_model_that_may_not_be_asked_here_does_not_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rest = ModelRest("nothing is translated", Clock())
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            rest.note_failure(ConfigError("no chat goes to far."))
    assert rest.is_over
    assert len(caplog.records) == 1
    assert "nothing is translated: " in caplog.text


def test_a_model_without_its_key_rests() -> None:
    rest = ModelRest("nothing is translated", Clock())
    rest.note_failure(KeyMissing("there is no key."))
    assert not rest.is_over


def test_a_rest_can_begin_for_another_reason(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    rest = ModelRest("files keep their order", clock)
    rest.begin("its choices are no better than chance.")
    assert seconds_of_rest(rest, clock) == 3600
    assert "files keep their order; no model is asked for 3600 s: its" in caplog.text
