"""Connections to servers that a test runs."""

from collections.abc import AsyncIterator

import pytest

from byok.upstream.transport import Transports


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    made = Transports()
    yield made
    await made.close()
