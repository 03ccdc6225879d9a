"""Fixtures of several upstream tests."""

from collections.abc import AsyncIterator

import pytest

from byok.upstream.transport import Transports
from tests.fakes.asker import Asker
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    """Connections to upstreams, closed when the test ends."""
    made = Transports()
    yield made
    await made.close()


@pytest.fixture
def asker(fake: FakeUpstream, transports: Transports) -> Asker:
    return Asker(transports, fake.url)
