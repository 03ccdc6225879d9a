"""The service as a whole, over a real index; the model is inside the test."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from byok.core.code_query import BlobNames
from byok.core.errors import ConfigError
from byok.search.index.engine import ContextEngine
from byok.search.outside.consent import Consent
from byok.search.retrieval.scope import Scope, select_scope
from byok.search.vectors.recipe import count_chunks
from byok.search.vectors.service import EmbeddingPlan, EmbeddingService
from byok.search.vectors.types import EmbeddingState, EmbeddingTarget
from byok.upstream.transport import Route, Transports
from tests.fakes.engines import indexed, project
from tests.fakes.patience import until
from tests.fakes.vectors import FAR, LOCAL, FakeEmbedder


def plan(model: FakeEmbedder, target: EmbeddingTarget = LOCAL) -> EmbeddingPlan:
    return EmbeddingPlan(target, lambda: model, built_from=(target, id(model)))


@pytest.fixture
def service(tmp_path: Path) -> EmbeddingService:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return EmbeddingService(
        home / "vectors.db", tmp_path / "e" / "data.db", Consent(home / "consent.json")
    )


@asynccontextmanager
async def index(
    tmp_path: Path, service: EmbeddingService
) -> AsyncIterator[ContextEngine]:
    """An index of two files that the service is told of."""
    root = project(tmp_path / "zoo", lion__py="def lion(): pass", cat__py="cat = 1")
    async with indexed(tmp_path / "e", root) as made:
        await service.open(made)
        try:
            yield made
        finally:
            await service.close()


async def reaches(service: EmbeddingService, state: EmbeddingState) -> None:
    async def is_reached() -> bool:
        return (await service.status()).state is state

    await until(is_reached)


async def scope_of(made: ContextEngine) -> Scope:
    return await select_scope(made, BlobNames(), [])


async def near(
    service: EmbeddingService, made: ContextEngine, question: str
) -> list[str]:
    """The paths of what is near to a question, nearest first; none without a vector."""
    scope = await scope_of(made)
    find = await service.begin(question)
    if find is None:
        return []
    found = (await find(scope.view, ())).nearest
    entries = made.contents.entries(chunk.blob_id for chunk in found)
    return [entries[chunk.blob_id].path for chunk in found]


async def test_everything_is_off_without_a_plan(
    tmp_path: Path, service: EmbeddingService
) -> None:
    async with index(tmp_path, service) as made:
        await service.configure(None)
        assert (await service.status()).state is EmbeddingState.OFF
        assert await near(service, made, "lion") == []
        for work in (service.estimate(), service.enable("localhost:1", "model")):
            with pytest.raises(ConfigError, match="no model"):
                await work
        assert await service.clear() == 0
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["consent.json"]


async def test_a_model_of_this_machine_fills_at_once_and_answers(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model = FakeEmbedder()
    await service.configure(plan(model))
    assert (await service.status()).state is EmbeddingState.STANDBY
    async with index(tmp_path, service) as made:
        await reaches(service, EmbeddingState.COMPLETE)
        told = await service.status()
        assert (told.chunks, told.embedded) == (2, 2)
        assert (told.dimensions, told.error) == (16, "")
        assert told.bytes > 0
        text = next(text for text in model.asked if "lion" in text)
        assert (await near(service, made, text))[0] == "lion.py"
        await near(service, made, text)
        assert model.questions == [text]


async def test_nothing_reaches_another_machine_without_consent(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model = FakeEmbedder()
    await service.configure(plan(model, FAR))
    async with index(tmp_path, service) as made:
        assert (await service.status()).state is EmbeddingState.NO_CONSENT
        assert await near(service, made, "lion") == []
        offer = await service.estimate()
        assert (offer.chunks, offer.tokens, offer.confirmed) == (2, 300, False)
        assert offer.dollars == pytest.approx(300 * 0.02 / 1_000_000)
        assert not model.asked
        with pytest.raises(ConfigError, match=r"api\.example:443"):
            await service.enable("other.example:443", "model")
        await service.enable(FAR.host, FAR.model)
        await reaches(service, EmbeddingState.COMPLETE)
        assert (await service.estimate()).chunks == 0
        assert await near(service, made, "lion")
        await service.disable()
        assert (await service.status()).state is EmbeddingState.NO_CONSENT
        assert await near(service, made, "lion") == []
        await service.enable(FAR.host, FAR.model)
        await reaches(service, EmbeddingState.COMPLETE)
        assert len(model.asked) == 2  # the vectors were still there


async def test_while_filling_is_paused_questions_use_what_is_there(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model = FakeEmbedder()
    await service.configure(plan(model))
    async with index(tmp_path, service):
        await reaches(service, EmbeddingState.COMPLETE)
        await service.pause()
        assert (await service.status()).state is EmbeddingState.PAUSED
    async with index(tmp_path, service) as made:  # as after a restart
        assert (await service.status()).state is EmbeddingState.PAUSED

        async def answers() -> bool:
            return bool(await near(service, made, "lion"))

        await until(answers)
        await service.resume()
        await reaches(service, EmbeddingState.COMPLETE)
        assert len(model.asked) == 2


async def test_clear_removes_what_was_damaged_too_and_nothing_of_others(
    tmp_path: Path, service: EmbeddingService
) -> None:
    home = tmp_path / "home"
    await service.configure(plan(FakeEmbedder()))
    async with index(tmp_path, service):
        await reaches(service, EmbeddingState.COMPLETE)
    (home / "vectors.db").write_bytes(b"damaged " * 1000)
    (home / "elsewhere").write_bytes(b"mine")
    (home / "vectors.db.damaged-1.bak").write_bytes(b"mine")
    (home / "vectors.db.corrupt").write_bytes(b"of byok 0.2")
    async with index(tmp_path, service):
        await reaches(service, EmbeddingState.COMPLETE)
        assert (home / "vectors.db.damaged-1").read_bytes().startswith(b"damaged")
        (home / "vectors.db.damaged-1-wal").write_bytes(b"old")
        (home / "vectors.db.damaged-1-shm").symlink_to(home / "elsewhere")
        assert await service.clear() == 2
        names = (path.name for path in home.iterdir())
        left = sorted(name for name in names if "damaged" in name or "corrupt" in name)
        assert left == ["vectors.db.damaged-1-shm", "vectors.db.damaged-1.bak"]
        assert (home / "elsewhere").read_bytes() == b"mine"


async def test_an_equal_plan_changes_nothing_and_another_one_does(
    tmp_path: Path, service: EmbeddingService
) -> None:
    first, second = FakeEmbedder(), FakeEmbedder()
    await service.configure(plan(first))
    async with index(tmp_path, service) as made:
        await reaches(service, EmbeddingState.COMPLETE)
        await service.configure(plan(first))
        assert (await service.status()).state is EmbeddingState.COMPLETE
        await service.configure(plan(second))
        await reaches(service, EmbeddingState.COMPLETE)
        assert not second.asked  # the same model has the same vectors
        assert await near(service, made, "lion")
        assert second.questions == ["lion"]


async def test_what_failed_at_the_start_is_tried_again_with_an_equal_plan(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model, tries = FakeEmbedder(), []

    def make() -> FakeEmbedder:
        tries.append(1)
        if len(tries) == 1:
            raise ConfigError("Embeddings need numpy, which is not installed.")
        return model

    await service.configure(EmbeddingPlan(LOCAL, make))
    async with index(tmp_path, service):
        assert (await service.status()).state is EmbeddingState.FAILED
        await service.configure(EmbeddingPlan(LOCAL, make))
        await reaches(service, EmbeddingState.COMPLETE)
        assert (await service.status()).error == ""
        await service.configure(EmbeddingPlan(LOCAL, make))
        assert len(tries) == 2


async def test_what_failed_before_is_not_told_of_other_settings(
    service: EmbeddingService, tmp_path: Path
) -> None:
    def make() -> FakeEmbedder:
        raise ConfigError("Embeddings need numpy, which is not installed.")

    await service.configure(EmbeddingPlan(LOCAL, make, built_from=1))
    async with index(tmp_path, service):
        assert (await service.status()).state is EmbeddingState.FAILED
    await service.configure(plan(FakeEmbedder()))
    status = await service.status()
    assert (status.state, status.error) == (EmbeddingState.STANDBY, "")


LOADED = """
import os, sys, byok.cli.serve, byok.wiring.services
print(*sys.modules)
before = dict(os.environ)
import byok.search.vectors.numeric
assert "numpy" in sys.modules
assert dict(os.environ) == before
"""


def test_without_embeddings_nothing_is_loaded_and_numpy_changes_no_environment() -> (
    None
):
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert not {"numpy", "qdrant_client"} & loaded
    own = {name for name in loaded if name.startswith("byok.search.vectors.")}
    assert own <= {
        f"byok.search.vectors.{name}" for name in ("consent", "service", "types")
    }


def test_numpy_comes_by_way_of_one_module_only() -> None:
    room = Path(__file__).parents[3] / "byok" / "search" / "vectors"
    direct = [
        path.name
        for path in room.rglob("*.py")
        if re.search(r"(?m)^(import|from) numpy", path.read_text("utf-8"))
    ]
    assert direct == []


async def test_a_request_that_is_left_still_begins_one_session(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model = FakeEmbedder()
    may_go_on = threading.Event()

    def make() -> FakeEmbedder:
        may_go_on.wait()
        return model

    async with index(tmp_path, service):
        made = EmbeddingPlan(LOCAL, make)
        leaving = asyncio.ensure_future(service.configure(made))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        may_go_on.set()
        await reaches(service, EmbeddingState.COMPLETE)


async def test_a_team_is_made_where_its_connections_may_be(
    tmp_path: Path, service: EmbeddingService
) -> None:
    model, transports = FakeEmbedder(), Transports()

    def make_team() -> None:
        transports.by(Route(proxy="http://127.0.0.1:1"))  # needs the event loop

    made = EmbeddingPlan(LOCAL, lambda: model, make_team)
    await service.configure(made)
    async with index(tmp_path, service):
        await reaches(service, EmbeddingState.COMPLETE)
    await transports.close()


async def test_chunks_of_code_and_configuration_are_counted(tmp_path: Path) -> None:
    root = project(
        tmp_path / "zoo",
        lion__py="def lion():\n    return 1\n" * 200,
        app__yaml="a: 1\n",
        README__md="lion\n",
        empty__py="",
    )
    async with indexed(tmp_path / "e", root) as made:
        lion = made.contents.entries(made.workspaces[0].ids())
        spans = [len(e.spans) for e in lion.values() if e.path != "README.md"]
        assert sum(spans) > 2
        assert count_chunks(made.store) == sum(spans)
