"""Each failure of the official service is told once, until it is over."""

import logging

import pytest

from byok.core.errors import (
    ByokError,
    ConnectFailed,
    KeyMissing,
    NotReady,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.routing import EndpointGroup
from byok.server.official import OfficialHealth
from tests.fakes.clock import Clock

DOWN = ConnectFailed("nothing answers.")
SLOW = UpstreamTimeout("too slow.")
AT_REST = NotReady("left alone.", code="upstream_down")
NO_TOKEN = KeyMissing("There is no token.", hint="Store it.")


def refused(status: int) -> UpstreamRefused:
    return UpstreamRefused("their words", upstream_status=status, hint="Do.")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "byok.server.official")
    return caplog


@pytest.fixture
def troubles(log: pytest.LogCaptureFixture) -> OfficialHealth:
    return OfficialHealth(60.0)


def levels(log: pytest.LogCaptureFixture) -> list[int]:
    return [record.levelno for record in log.records]


async def met(troubles: OfficialHealth, *errors: ByokError) -> None:
    for error in errors:
        troubles.note_failure(EndpointGroup.CHAT, "/chat", error)


async def test_official_failure_is_one_line_per_group_until_it_is_over(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture
) -> None:
    await met(troubles, DOWN, AT_REST, refused(500), refused(401), SLOW)
    troubles.note_failure(EndpointGroup.CHAT, "/chat-stream", DOWN)
    assert levels(log) == [logging.WARNING]
    assert "/chat (group chat), so byok does: nothing answers." in log.text
    troubles.note_failure(EndpointGroup.EDIT, "/edit", DOWN)
    assert levels(log) == [logging.WARNING] * 2
    troubles.over(EndpointGroup.CHAT, "/save-chat")
    assert levels(log)[2:] == [logging.INFO]
    await met(troubles, DOWN)
    assert levels(log)[3:] == [logging.WARNING]


@pytest.mark.parametrize("status", [400, 404, 405, 413, 422])
async def test_official_refused_path_says_nothing_of_its_group(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture, status: int
) -> None:
    for _ in range(2):
        await met(troubles, refused(status))
        troubles.over(EndpointGroup.CHAT, "/chat-stream")
    assert levels(log) == [logging.WARNING]
    await met(troubles, DOWN)
    assert levels(log) == [logging.WARNING] * 2, "the whole group is another matter"
    troubles.over(EndpointGroup.CHAT, "/chat")
    assert troubles.reasons == {}


@pytest.mark.parametrize("status", [302, 401, 402, 403, 408, 429, 500, 503, 529])
async def test_official_failures_of_the_service_itself(
    troubles: OfficialHealth, status: int
) -> None:
    await met(troubles, refused(status))
    assert troubles.reasons == {"chat": f"it answered {status}. Do."}


async def test_official_error_words_are_not_logged(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture
) -> None:
    await met(troubles, refused(500), refused(404))
    assert "their words" not in log.text + str(troubles.reasons)


async def test_official_missing_token_is_reported_once_for_all_groups(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture
) -> None:
    for group in (EndpointGroup.CHAT, EndpointGroup.EDIT):
        troubles.note_failure(group, "/x", NO_TOKEN)
    assert levels(log) == [logging.WARNING]
    assert "Store it." in log.text
    assert troubles.reasons == {"no token": "byok keys set official"}
    troubles.over(EndpointGroup.EDIT, "/x")
    assert troubles.reasons == {}
    assert levels(log) == [logging.WARNING]


async def test_official_group_that_timed_out_is_left_alone_for_a_while() -> None:
    clock = Clock()
    troubles = OfficialHealth(60.0, clock=clock)
    await met(troubles, DOWN, refused(500), UpstreamGarbled("x"))
    assert not troubles.is_paused(EndpointGroup.CHAT)
    await met(troubles, SLOW)
    clock.now += 59
    assert troubles.is_paused(EndpointGroup.CHAT)
    assert not troubles.is_paused(EndpointGroup.EDIT)
    clock.now += 1
    assert not troubles.is_paused(EndpointGroup.CHAT)
