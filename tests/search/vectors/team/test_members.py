"""Whole members of a team: what one has embedded, the model of another is not asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from byok.core.errors import ConfigError, NotReady
from byok.search.vectors.consent import Consent
from byok.search.vectors.service import EmbeddingPlan, EmbeddingService
from byok.search.vectors.team.team_index import TeamIndex
from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from tests.fakes.engines import complete, engine, project, until
from tests.fakes.inner_model import LOCAL, InnerModel
from tests.fakes.qdrant_members import Team
from tests.fakes.qdrant_server import QdrantServer, answer
from tests.fakes.repository import git

SECRET = 'API_KEY = "sk-canary0123456789abcdef0123456789"'


@asynccontextmanager
async def at_work(
    home: Path, model: InnerModel, member: TeamIndex | None
) -> AsyncIterator[EmbeddingService]:
    """A member with the same repository as all others."""
    root = project(
        home / "zoo", lion__py=f"def lion():\n    pass\n{SECRET}\n", cat__py="cat = 1"
    )
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "git@git.example:owner/zoo.git")
    files = home / "vectors.db", home / "e" / "data.db"
    service = EmbeddingService(*files, Consent(home / "consent.json"))
    await service.configure(EmbeddingPlan(LOCAL, lambda: model, lambda: member))
    async with engine(home / "e", root) as made:
        await complete(made)
        await service.open(made)
        try:
            yield service
        finally:
            await service.close()


async def until_complete(service: EmbeddingService) -> EmbeddingStatus:
    async def is_complete() -> bool:
        return (await service.status()).state is EmbeddingState.COMPLETE

    await until(is_complete)
    return await service.status()


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in ("one", "two")]
    for home in made:
        home.mkdir(mode=0o700)
    return made


@pytest.mark.case("B127")
async def test_what_one_member_has_embedded_another_fetches(
    homes: list[Path], server: QdrantServer, team: Team
) -> None:
    first, second = InnerModel(), InnerModel()
    async with at_work(homes[0], first, team.member(writes=True)) as service:
        told = await until_complete(service)
        assert len(first.texts) == told.embedded == 2
        assert await service.push() == 2
        told = await service.status()
        assert told.team is not None
        assert (told.team.pushed, told.team.note) == (2, "")
        assert told.team.collection in server.collections
    async with at_work(homes[1], second, team.member()) as service:
        told = await until_complete(service)
        assert told.embedded == 2
        assert second.texts == []
        assert told.team is not None
        assert told.team.fetched == 2
        assert await service.pull() == 0
        with pytest.raises(ConfigError, match="only reads"):
            await service.push()
    sent = b"\n".join(server.bodies)
    for planted in (b"lion", b"zoo", b"owner", b"cat", b"sk-canary", b"git.example"):
        assert planted not in sent


@pytest.mark.case("F49")
async def test_without_the_server_a_member_embeds_by_itself(
    homes: list[Path], server: QdrantServer, team: Team
) -> None:
    server.fault = answer(status=500)
    model = InnerModel()
    async with at_work(homes[0], model, team.member(writes=True)) as service:
        told = await until_complete(service)
        assert (told.embedded, told.error) == (2, "")
        assert "status 500" in told.note
        assert len(model.texts) == 2
        with pytest.raises(NotReady, match="status 500"):
            await service.push()
        server.fault = None
        team.clock.now += 700
        assert await service.push() == 2
