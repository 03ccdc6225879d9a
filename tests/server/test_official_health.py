"""Each failure of the official service is told once, until it is over."""

import logging

import pytest

from byok.core.errors import (
    ByokError,
    ConnectFailed,
    UpstreamRefused,
)
from byok.core.routing import EndpointGroup
from byok.server.official import OfficialHealth

DOWN = ConnectFailed("nothing answers.")


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
