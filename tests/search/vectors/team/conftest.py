"""A server for members of a team: a fake one, and a real one."""

import os
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.postgres_server import PASSWORD, postgres
from tests.fakes.qdrant_members import Team
from tests.fakes.qdrant_server import QdrantServer


@pytest.fixture
async def server() -> AsyncIterator[QdrantServer]:
    async with QdrantServer() as running:
        yield running


@pytest.fixture
async def team(server: QdrantServer) -> AsyncIterator[Team]:
    """A team on the fake server."""
    made = Team(server.url)
    yield made
    await made.close()


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a real PostgreSQL server, run for all tests of this folder."""
    with postgres() as url:
        yield url


@pytest.fixture(params=["fake", "real", "postgres"])
async def any_team(request: pytest.FixtureRequest) -> AsyncIterator[Team]:
    """A team on the fake server, and on real ones."""
    if request.param == "postgres":
        made = Team(request.getfixturevalue("database"), PASSWORD)
        made.name = f"test-{secrets.token_hex(4)}"
        yield made
        await made.close()
        return
    if request.param == "fake":
        async with QdrantServer() as running:
            made = Team(running.url)
            yield made
            await made.close()
        return
    if not (url := os.environ.get("QDRANT_URL", "")):
        pytest.skip("no real Qdrant server: set QDRANT_URL to one that may be written")
    made = Team(url)
    made.name = f"test-{secrets.token_hex(4)}"
    yield made
    await made.close()
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(url=url)
    for one in (await client.get_collections()).collections:
        if one.name.startswith(f"byok_{made.name}_"):
            await client.delete_collection(one.name)
    await client.close()
