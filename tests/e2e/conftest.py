"""Fixtures: a replay of recorded streams, and an official service."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.daemon import Editor, running
from tests.fakes.official import FakeOfficial
from tests.fakes.replay import answering, replaying


@pytest.fixture
async def official() -> AsyncIterator[FakeOfficial]:
    """The service; the test fails if anything came that it did not expect."""
    async with FakeOfficial() as service:
        yield service


@pytest.fixture(scope="module")
def replay(shared: Path) -> Iterator[str]:
    """The replay server; its URL."""
    with replaying(shared) as url:
        yield url


@pytest.fixture
async def replay_editor(replay: str) -> AsyncIterator[Editor]:
    """A daemon whose upstream is the replay server."""
    async with replayed(replay, timeout=60) as editor:
        yield editor


@pytest.fixture
async def hasty_editor(replay: str) -> AsyncIterator[Editor]:
    """The same with a short limit of silence, for streams that stall."""
    async with replayed(replay, timeout=1) as editor:
        yield editor


@asynccontextmanager
async def replayed(replay: str, timeout: float) -> AsyncIterator[Editor]:
    """Run a daemon on the replay server; `timeout` is its limit of silence."""
    await answering(f"{replay}/_faults")
    upstream = {"base_url": f"{replay}/v1", "timeout": timeout, "patience": 2}
    async with running({"upstreams": {"replay": upstream}}) as editor:
        yield editor
