"""Fixtures of several upstream tests."""

from collections.abc import AsyncIterator

import pytest

from byok.upstream.transport import Transports


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    """Connections to upstreams, closed when the test ends."""
    made = Transports()
    yield made
    await made.close()
