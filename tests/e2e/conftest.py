"""Fixtures: a replay of recorded streams, an official service, a real llama-server."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.daemon import Editor, running
from tests.fakes.llama import MODEL
from tests.fakes.official import FakeOfficial
from tests.fakes.patience import PATIENCE
from tests.fakes.replay import answering, replaying

# Before a test starts, the environment is cleaned.
LLAMA = os.environ.get("BYOK_LLAMA_SERVER", "").rstrip("/")


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


@pytest.fixture
async def llama() -> str:
    """The address of a server that has the model; skips where there is none."""
    if not LLAMA:
        pytest.skip("no llama-server: set BYOK_LLAMA_SERVER to the address of one")
    try:
        async with (
            asyncio.timeout(PATIENCE),
            aiohttp.ClientSession() as http,
            http.get(f"{LLAMA}/v1/models") as response,
        ):
            listed = await response.json()
    except (TimeoutError, aiohttp.ClientError) as error:
        pytest.skip(f"BYOK_LLAMA_SERVER is set, but nothing answers: {error}")
    if MODEL not in [row["id"] for row in listed["data"]]:
        pytest.skip(f"that llama-server runs without the model {MODEL}")
    return LLAMA
