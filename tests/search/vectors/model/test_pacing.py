"""Questions come before code, and a model that failed is left alone for a while."""

import asyncio

import pytest

from byok.core.errors import NotReady, RefusalKind, UpstreamRefused, UpstreamUnreachable
from byok.search.vectors.model.embedder import Priority, Rest
from tests.fakes.patience import PATIENCE

GONE = UpstreamUnreachable("it is gone.", upstream="box", hint="Start it.")
NO_KEY = UpstreamRefused("no key.", kind=RefusalKind.AUTH)


async def test_code_waits_for_questions_and_for_other_code() -> None:
    priority, order = Priority(), list[str]()

    async def fill(name: str) -> None:
        async with priority.filling():
            order.append(name)

    async with priority.question():
        first = asyncio.ensure_future(fill("first"))
        second = asyncio.ensure_future(fill("second"))
        await asyncio.sleep(0)
        async with priority.question():
            order.append("question")
        await asyncio.sleep(0)
        order.append("answered")
    await asyncio.gather(first, second)
    assert order == ["question", "answered", "first", "second"]


async def test_a_question_does_not_wait_for_code() -> None:
    priority = Priority()
    async with priority.filling(), asyncio.timeout(PATIENCE), priority.question():
        pass


async def test_endless_questions_do_not_stop_code() -> None:
    priority = Priority(patience=0.01)
    async with priority.question(), asyncio.timeout(PATIENCE), priority.filling():
        pass


async def test_code_that_was_cancelled_lets_others_in() -> None:
    priority = Priority()
    async with priority.question():
        waiting = asyncio.ensure_future(priority.filling().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(PATIENCE), priority.filling():
        pass


class Clock:
    """A clock that moves on when somebody sleeps."""

    def __init__(self, luck: float = 1.0) -> None:
        self.now = 100.0
        self.luck = luck
        self.rest = Rest(clock=lambda: self.now, sleep=self._sleep, luck=self._luck)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _luck(self) -> float:
        return self.luck


def lengths(rest: Rest, cause: UpstreamUnreachable | UpstreamRefused) -> list[float]:
    found = []
    for _ in range(9):
        rest.begin(cause)
        found.append(rest.seconds)
    return found


def test_rests_grow_to_a_minute() -> None:
    assert lengths(Clock().rest, GONE) == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert lengths(Clock(luck=0).rest, GONE)[:3] == [0.5, 1, 2]


def test_what_a_user_must_mend_is_tried_less_often() -> None:
    assert lengths(Clock().rest, NO_KEY) == [10, 20, 40, 80, 160, 300, 300, 300, 300]


@pytest.mark.parametrize(
    ("asked", "rests"), [(None, 1), (0.1, 1), (60, 60), (9e9, 600)]
)
def test_a_rest_is_as_long_as_the_upstream_asks_for(
    asked: float | None, rests: float
) -> None:
    rest = Clock().rest
    rest.begin(
        UpstreamRefused(
            "no.", kind=RefusalKind.RATE_LIMIT, retry_after=asked, retryable=True
        )
    )
    assert rest.seconds == rests


async def test_a_rest_is_over_when_it_was_waited_for() -> None:
    clock = Clock()
    clock.rest.check()
    clock.rest.begin(GONE)
    with pytest.raises(NotReady, match="box: it is gone") as caught:
        clock.rest.check()
    assert caught.value.hint == "Start it."
    await clock.rest.wait()
    assert clock.now == 101
    clock.rest.check()


def test_an_answer_ends_a_row_of_failures() -> None:
    rest = Clock().rest
    lengths(rest, GONE)
    rest.end()
    assert rest.seconds == 0
    rest.check()
    rest.begin(GONE)
    assert rest.seconds == 1
