"""The lag of the event loop."""

import asyncio
import time

from byok.features.metrics.feature import LoopLag
from tests.fakes.patience import PATIENCE


async def test_a_blocked_loop_shows_and_stop_ends_it() -> None:
    lag = LoopLag(every=0.001)
    lag.start()
    lag.start()  # as after a reload
    time.sleep(0.05)
    async with asyncio.timeout(PATIENCE):
        while not lag.seen.total:
            await asyncio.sleep(0)
    assert lag.seen.total >= 0.04
    lag.stop()
    counted = [*lag.seen.buckets()]
    await asyncio.sleep(0.01)
    assert [*lag.seen.buckets()] == counted
    lag.stop()
