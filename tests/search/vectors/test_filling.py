"""Filling: everything gets a vector once, whatever the model and the index do."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from byok.core.errors import UpstreamUnreachable
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import View
from byok.search.index.types import Span
from byok.search.vectors.filling import Filling
from byok.search.vectors.recipe import ChunkText, key_of
from byok.search.vectors.store import listings
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.types import EmbeddingState
from tests.fakes.engines import complete, indexed, written
from tests.fakes.patience import until
from tests.fakes.vectors import FakeEmbedder, vector


def texts_of(path: str, lines: Sequence[str], spans: Sequence[Span]) -> list[ChunkText]:
    """A recipe whose texts are the first lines of chunks."""
    firsts = [lines[span.first] for span in spans]
    return [ChunkText(n, key_of(text), text) for n, text in enumerate(firsts)]


@dataclass
class Running:
    engine: ContextEngine
    store: VectorStore
    filling: Filling
    embedder: FakeEmbedder
    root: Path
    pauses: list[float]

    async def complete(self) -> None:
        await complete(self.engine)
        await until(lambda: self.filling.state is EmbeddingState.COMPLETE)
        await until(
            lambda: (
                self.store.read(listings.index_version) == self.filling._seen_version
            )
        )
        await until(lambda: self.filling.state is EmbeddingState.COMPLETE)

    def nearest(self, text: str) -> str:
        """The path of the chunk that is nearest to a text."""
        ids = frozenset(id for space in self.engine.workspaces for id in space.ids())
        space = self.filling.space
        assert space is not None
        question = vector(text, model=self.embedder.weights)
        found = self.store.near(space, question, View(str(sorted(ids)), ids, 0))
        if not found.nearest or found.nearest[0].score < 0.99:
            return ""
        blob_id = found.nearest[0].blob_id
        return self.engine.contents.entries([blob_id])[blob_id].path


@asynccontextmanager
async def running(
    folder: Path, embedder: FakeEmbedder | None = None, *, start: bool = True
) -> AsyncIterator[Running]:
    used = embedder or FakeEmbedder()
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.005)

    root = folder / "root"
    root.mkdir(exist_ok=True)
    async with indexed(folder / "data", root, poll_seconds=0.05) as made:
        store = VectorStore(folder / "data" / "vectors.db", made.store.database.path)
        filling = Filling(
            store, made, used, texts_of=texts_of, sleep=sleep, probe_every=4
        )
        if start:
            filling.start()
        try:
            yield Running(made, store, filling, used, root, pauses)
        finally:
            await filling.close()
            store.close()


def files(count: int, word: str = "file") -> dict[str, str]:
    return {f"{word}{n}.py": f"{word} = {n}\n" for n in range(count)}


async def test_every_chunk_of_code_gets_a_vector_in_batches(tmp_path: Path) -> None:
    written(tmp_path / "root", {**files(150), "README.md": "# notes", "a.cfg": "[x]\n"})
    async with running(tmp_path) as run:
        await run.complete()
        assert sorted(run.embedder.asked) == sorted(
            [*map("file = {}".format, range(150)), "[x]"]
        )
        assert run.embedder.sizes == [64, 64, 23]
        assert run.filling.progress == (151, 151, 0)
        assert run.nearest("file = 77") == "file77.py"
        assert run.filling.space == run.store.spaces()[0]
        assert run.store.spaces()[0].is_ready


async def test_only_what_changed_is_embedded(tmp_path: Path) -> None:
    written(tmp_path / "root", files(20))
    async with running(tmp_path) as run:
        await run.complete()
        probes = run.embedder.probes
        written(run.root, {"file3.py": "changed\n", "copy.py": "file = 4\n"})
        (run.root / "file5.py").unlink()
        await until(lambda: run.nearest("changed") == "file3.py")
        await run.complete()
        assert run.embedder.asked[20:] == ["changed"]
        assert run.embedder.probes == probes
        assert run.nearest("file = 3") == run.nearest("file = 5") == ""
        await until(lambda: run.filling.progress == (20, 20, 0))


async def test_a_restart_asks_for_nothing_that_is_there(tmp_path: Path) -> None:
    written(tmp_path / "root", files(150))
    embedder = FakeEmbedder()
    async with running(tmp_path, embedder) as run:
        await until(lambda: len(embedder.sizes) >= 1)
        await run.filling.close()
    again = FakeEmbedder()
    async with running(tmp_path, again, start=False) as run:
        stored = run.store.progress(run.store.spaces()[0]).embedded
        assert stored % 64 == 0
        run.filling.start()
        await run.complete()
        assert len(again.asked) == 150 - stored
        assert run.nearest("file = 149") == "file149.py"


async def test_a_failure_is_waited_out_and_told(tmp_path: Path) -> None:
    written(tmp_path / "root", files(3))
    embedder = FakeEmbedder()
    embedder.failure = UpstreamUnreachable("It is down.")
    async with running(tmp_path, embedder) as run:
        await until(lambda: 8 in run.pauses)
        assert [p for p in run.pauses if p >= 1][:4] == [1, 2, 4, 8]
        assert run.filling.state is EmbeddingState.WAITING
        assert run.filling.error == embedder.failure.sentence
        embedder.failure = None
        await run.complete()
        assert run.filling.error == ""
        assert len(embedder.asked) == 3


async def test_a_text_that_is_refused_is_not_asked_again(tmp_path: Path) -> None:
    written(tmp_path / "root", files(5))
    embedder = FakeEmbedder()
    embedder.refuses = ("= 3",)
    for _ in range(2):
        async with running(tmp_path, embedder) as run:
            await run.complete()
            assert run.filling.progress == (5, 4, 1)
    assert len(embedder.asked) == 5


async def test_texts_that_changed_without_their_file_are_embedded_once(
    tmp_path: Path,
) -> None:
    """As by a version of byok that masks more than the one before."""
    written(tmp_path / "root", files(70))
    embedder = FakeEmbedder()
    async with running(tmp_path, embedder, start=False) as run:
        embedder.on_batch = lambda number: embedder.gate.clear()
        run.filling.start()
        await until(lambda: bool(embedder.sizes))
    again = FakeEmbedder()
    async with running(tmp_path, again, start=False) as run:
        (space,) = run.store.spaces()
        lacking = sum(
            1 for _ in run.store.read(listings.find_incomplete, space, (), 999)
        )
        assert lacking > 0
        run.filling.texts_of = lambda path, lines, spans: texts_of(
            path, [f"masked {line}" for line in lines], spans
        )
        run.filling.start()
        await run.complete()
        assert len(again.asked) == len(set(again.asked)) == lacking
        assert run.filling.progress == (70, 70, 0)
        assert run.nearest(again.asked[0])


def stored(run: Running) -> int:
    """How many vectors there are."""
    return sum(run.store.progress(space).embedded for space in run.store.spaces())


async def test_a_pause_sends_nothing_more(tmp_path: Path) -> None:
    written(tmp_path / "root", files(300))
    async with running(tmp_path, start=False) as run:
        one = ThreadPoolExecutor(1)  # which does one thing after another
        asyncio.get_running_loop().set_default_executor(one)
        run.embedder.on_batch = lambda number: run.filling.pause()
        run.filling.start()
        await until(lambda: run.filling.state is EmbeddingState.PAUSED)
        await until(lambda: stored(run) == 64)
        for _ in range(5):  # behind whatever the batch left to do
            await asyncio.to_thread(stored, run)
        assert run.embedder.sizes == [64]
        run.embedder.on_batch = lambda number: None
        run.filling.resume()
        await run.complete()
        assert len(run.embedder.asked) == 300


async def test_a_model_that_was_replaced_half_way_fills_another_space(
    tmp_path: Path,
) -> None:
    written(tmp_path / "root", files(10 * 64))
    embedder = FakeEmbedder()

    def replace(number: int) -> None:
        if number == 6:  # the probe after batch 4 was right, the next is not
            embedder.weights = "another"

    embedder.on_batch = replace
    async with running(tmp_path, embedder) as run:
        await run.complete()
        (space,) = run.store.spaces()
        assert space.is_ready
        assert run.filling.progress.share == 1
        assert run.nearest("file = 639") == "file639.py"
        assert len(embedder.asked) == 64 * 8 + 640


async def test_another_recipe_fills_beside_the_old_space_until_it_is_full(
    tmp_path: Path,
) -> None:
    written(tmp_path / "root", files(130))
    async with running(tmp_path) as run:
        await run.complete()
        (old,) = run.store.spaces()
    embedder = FakeEmbedder()
    embedder.recipe = "2"
    embedder.on_batch = lambda number: embedder.gate.clear()
    async with running(tmp_path, embedder) as run:
        await until(lambda: len(embedder.asked) == 64)
        await until(lambda: run.filling.space is not None)
        new = run.store.spaces()[0]
        assert run.store.space_for(new) == old
        embedder.on_batch = lambda number: None
        embedder.gate.set()
        await run.complete()
        assert run.store.spaces() == [run.filling.space]
        found = run.store.space_for(new)
        assert found is not None
        assert found.id == new.id
