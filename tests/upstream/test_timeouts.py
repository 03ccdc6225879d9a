"""Timeouts of an answer: which one is exceeded, and which one is not."""

import asyncio

import pytest

from byok.upstream.http_call import REMOTE, Timeouts, Watch

LONG = 60.0


async def watched(
    timeouts: Timeouts, *, told: bool | None = None, seconds: float = 0.8
) -> str:
    """Watch an answer that has a read every 10 ms; return why it was aborted."""
    aborted = asyncio.Event()
    with Watch(timeouts, aborted.set) as watch:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and not aborted.is_set():
            if told is not None:
                watch.note_bytes(has_event=told)
            await asyncio.sleep(0.01)
    assert aborted.is_set() is (watch.failure is not None)
    if watch.failure is None:
        return ""
    assert watch.failure.code == "upstream_timeout"
    return str(watch.failure)


@pytest.mark.parametrize(
    ("timeouts", "told", "why"),
    [
        pytest.param(Timeouts(first_byte=0.3), None, "did not begin", id="silence"),
        pytest.param(Timeouts(first_byte=0.3), False, "", id="signs of life"),
        pytest.param(Timeouts(idle=0.3), True, "", id="text"),
        (Timeouts(idle=0.3, comments_only=0.3), False, "signs of life"),  # only signs
        pytest.param(Timeouts(idle=0.3, comments_only=0.3), True, "", id="more text"),
        pytest.param(Timeouts(idle=LONG, total=0.1), True, "too long", id="all"),
    ],
)
@pytest.mark.case("F06")
@pytest.mark.slow
async def test_a_timeout_error_names_the_limit(
    timeouts: Timeouts, told: bool | None, why: str
) -> None:
    failure = await watched(timeouts, told=told)
    assert why in failure
    assert bool(failure) is bool(why)


async def test_no_timeout_fires_after_the_end() -> None:
    aborted: list[None] = []
    with Watch(Timeouts(idle=0.02), lambda: aborted.append(None)):
        pass
    await asyncio.sleep(0.05)
    assert aborted == []


def test_a_configured_idle_timeout_raises_shorter_limits() -> None:
    own = REMOTE.with_idle(700)
    assert (own.first_byte, own.idle, own.comments_only, own.total) == (
        700,
        700,
        700,
        1800,
    )
    own = REMOTE.with_idle(5)
    assert (own.first_byte, own.idle, own.comments_only, own.total) == (5, 5, 600, 1800)
