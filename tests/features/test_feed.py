"""A page that reads live requests."""

import asyncio

from byok.features.feed import FeedEnd, FeedReader
from tests.fakes.patience import PATIENCE


async def test_waiting_ends_with_news_once() -> None:
    reader = FeedReader()
    reader.wake()
    reader.wake()
    assert await reader.wait(PATIENCE)
    assert not await reader.wait(0.001)


async def test_the_first_reason_ends_it_and_is_told_once() -> None:
    told = list[FeedEnd | None]()
    reader = FeedReader()
    reader.on_end = lambda: told.append(reader.end)
    waiting = asyncio.ensure_future(reader.wait(60))
    await asyncio.sleep(0)
    reader.finish(FeedEnd.REPLACED)
    reader.finish(FeedEnd.STOPPING)
    assert await waiting
    assert told == [FeedEnd.REPLACED]
