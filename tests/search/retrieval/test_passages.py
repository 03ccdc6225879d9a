"""What a chat gets to see of the client's code, and what the client is told."""

import asyncio
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from byok.core.code_query import (
    BlobNames,
    CodeContextBlock,
    CodeQuestion,
    SearchMode,
    Upload,
    to_bytes,
)
from byok.core.errors import NotReady
from byok.search.index.engine import ContextEngine
from byok.search.index.files.text import split_lines
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.passages import PassageFinder
from byok.search.retrieval.ranker import Ranker
from tests.fakes.engines import (
    BrokenRanker,
    FakeVectors,
    complete,
    engine,
    indexed,
    project,
)
from tests.fakes.patience import PATIENCE

LION = "def feed_lion():\n    return 'meat'\n"
BEAR = "def feed_bear():\n    return 'honey'\n"
MISSING = bytes(32)
ATTACHED = "[files that the user attached]\n"
FOUND = "[code of the workspace that may be relevant]\n"


async def upload(made: ContextEngine, files: Mapping[str, str]) -> dict[str, bytes]:
    uploads = [Upload(b"", path, text.encode()) for path, text in files.items()]
    names = await made.uploads.upload(uploads)
    await complete(made)
    return dict(zip(files, names, strict=True))


async def find(
    made: ContextEngine,
    question: str = "Who feeds the lion?",
    *names: bytes,
    guided: tuple[bytes, ...] = (),
    length: int = 20_000,
    mode: SearchMode = SearchMode.AUTO,
    ranker: Ranker | None = None,
) -> CodeContextBlock:
    finder = PassageFinder(made, ranker or Ranker(made), mode, seconds=PATIENCE)
    return await finder.find(
        CodeQuestion(question, BlobNames("", names), guided), length
    )


def shown_parts(text: str, path: str) -> Iterator[list[str]]:
    """Return the runs of lines that are shown of a file, in their order."""
    for block in re.findall(rf"^Path: {re.escape(path)}\n((?: *\d+\t.*\n|\.\.\.\n)*)",
                            text, re.MULTILINE):  # fmt: skip
        for run in block.split("...\n"):
            if run:
                yield [row.partition("\t")[2] for row in run.split("\n")[:-1]]


async def test_passages_of_attached_files_come_first_and_once(tmp_path: Path) -> None:
    async with engine(tmp_path / "e") as made:
        names = await upload(made, {"lion.py": LION, "bear.py": BEAR, "emu.py": "emu"})
        lion, bear, emu = names.values()
        found = await find(made, "feed_lion", lion, bear, guided=(emu, bear, emu))
    assert found.text == (
        f"{ATTACHED}Path: emu.py\n     1\temu\n"
        "Path: bear.py\n     1\tdef feed_bear():\n     2\t    return 'honey'\n\n"
        f"{FOUND}Path: lion.py\n     1\tdef feed_lion():\n     2\t    return 'meat'\n"
    )
    assert [chunk.blob_name for chunk in found.chunks] == [
        emu.hex(), bear.hex(), lion.hex()
    ]  # fmt: skip


async def test_passages_show_copies_once_and_name_them(tmp_path: Path) -> None:
    text = f"{LION}\n" + "".join(f"# Lions eat meat at {n}.\n" for n in range(20))
    async with engine(tmp_path / "e") as made:
        names = await upload(made, {"a/lion.py": text, "b/lion.py": text})
        found = await find(made, "feed_lion", *names.values())
    assert found.text.count("def feed_lion") == len(found.chunks) == 1
    assert "a/lion.py" in found.text
    assert "b/lion.py" in found.text


MUCH = "".join(f"def groom_{n}():\n    return {n}\n\n\n" for n in range(400))
LARGE = f"{MUCH}# this explains the file\n{LION}"


@pytest.mark.parametrize(
    ("question", "mode", "is_asked_for"),
    [
        ("Who feeds the lion?", SearchMode.AUTO, True),
        ("Who feeds the lion?", SearchMode.RIPGREP, False),
        ("Explain this file, please!", SearchMode.AUTO, False),
        ("What of the xylophone?", SearchMode.AUTO, False),
    ],
)
async def test_passages_of_a_large_attached_file_are_its_best_part_or_its_start(
    tmp_path: Path, question: str, mode: SearchMode, is_asked_for: bool
) -> None:
    async with engine(tmp_path / "e") as made:
        [name] = (await upload(made, {"zoo.py": LARGE})).values()
        found = await find(made, question, name, guided=(name,), length=2000, mode=mode)
    assert ("def feed_lion" in found.text) == is_asked_for
    shown_from_start = found.chunks[0].end - found.chunks[0].start
    assert (shown_from_start > 1000) != is_asked_for
    assert found.text.count("Path: zoo.py") == 1
    parts = list(shown_parts(found.text, "zoo.py"))
    told = [split_lines(LARGE[chunk.start : chunk.end]) for chunk in found.chunks]
    assert told == parts


async def test_passages_report_unknown_names_once_and_known_ones_never(
    tmp_path: Path,
) -> None:
    odd = to_bytes("odd/../name")
    async with engine(tmp_path / "e") as made:
        names = await upload(made, {"lion.py": LION, "a.bin": "\0", "b.py": ""})
        guided = (MISSING, odd, *names.values())
        found = await find(made, "lion", names["lion.py"], MISSING, guided=guided)
    assert found.unknown == (MISSING.hex(), "odd/../name")
    assert "(a.bin is attached too, but not shown: it is no text.)\n" in found.text
    assert "Path: b.py\n(the file is empty)\n" in found.text


async def test_passages_request_a_file_that_changed_on_disk(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py=LION)
    async with indexed(tmp_path / "e", root) as made:
        [space] = made.workspaces
        [blob_id] = space.ids()
        names = made.contents.names_of([blob_id], [])
        (root / "lion.py").write_text("other")
        found = await find(made, "Why?", guided=(names[blob_id],))
        assert found == CodeContextBlock(unknown=(names[blob_id].hex(),))


@pytest.mark.parametrize("path", [".env", "deploy/id_rsa"])
async def test_passages_never_show_secret_files(tmp_path: Path, path: str) -> None:
    text = "LION_PASSWORD = hunter2-feed-lion\n"
    async with engine(tmp_path / "e", allow_secret=[path]) as made:
        names = await upload(made, {path: text})
        allowed = await find(made, "feed lion", *names.values())
        assert "LION_PASSWORD" in allowed.text
    async with engine(tmp_path / "e") as made:
        refused = await upload(made, {f"other/{path}": text})
        every = (*names.values(), *refused.values())
        found = await find(made, "feed lion", *every, guided=every)
    assert "LION_PASSWORD" not in found.text
    assert found.chunks == ()
    assert found.unknown == ()
    assert f"({path} is attached too, but not shown: its name is " in found.text


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("give the big cat its dinner", True),
        ("hello", False),
    ],
)
async def test_passages_are_near_to_more_than_a_greeting(
    tmp_path: Path, question: str, *, shown: bool
) -> None:
    async with engine(tmp_path / "e") as made:
        names = await upload(made, {"lion.py": LION})
        [blob_id] = made.contents.find_entries(names.values()).values()
        vectors = FakeVectors([ChunkScore(blob_id.id, 0, 0.9)])
        ranker = Ranker(made, lambda: ModelAids(vectors=vectors))
        found = await find(made, question, *names.values(), ranker=ranker)
    assert bool(found.text) is shown


async def test_passages_with_a_damaged_index_are_attached_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine(tmp_path / "e") as made:
        [lion] = (await upload(made, {"lion.py": LION})).values()
        found = await find(
            made, "lion", lion, MISSING, guided=(lion,), ranker=BrokenRanker(made)
        )
    assert "feed_lion" in found.text
    assert found.unknown == (MISSING.hex(),)
    [told] = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert "The index is damaged." in told


class SlowRanker(Ranker):
    """Stands for a machine that is too busy."""

    async def wait_until_indexed(self, seconds: float) -> None:
        await asyncio.Event().wait()


async def test_passages_have_a_deadline(tmp_path: Path) -> None:
    async with engine(tmp_path / "e") as made:
        finder = PassageFinder(made, SlowRanker(made), seconds=0.01)
        with pytest.raises(NotReady, match=r"No code was found in 0\.01 s"):
            await finder.find(CodeQuestion("lion", BlobNames("", (MISSING,))), 1000)


async def test_passages_use_the_clients_names(tmp_path: Path) -> None:
    alias, other = b"\0" * 33 + b"mine", b"\1" * 32
    async with engine(tmp_path / "e") as made:
        await made.uploads.upload(
            [Upload(alias, "lion.py", LION.encode()), Upload(other, "b.py", b"lion")]
        )
        await complete(made)
        found = await find(made, "feed_lion", alias, guided=(other,))
        assert [c.blob_name for c in found.chunks] == [other.hex(), "mine"]
        checkpoint = await made.uploads.checkpoint(BlobNames("", (alias,)))
        assert checkpoint
        finder = PassageFinder(made, Ranker(made), seconds=PATIENCE)
        found = await finder.find(CodeQuestion("lion", BlobNames(checkpoint)), 20_000)
        assert [c.blob_name for c in found.chunks] == ["mine"]


ENDS = ["\n", "\r\n", "\r"]
ODD = ["lion = 'é😀北'", "\u2028 lion \x0b\x85", "", "  ", "e\u0301 lion", "\ufefflion"]


async def test_passages_offsets_are_characters_of_the_clients_text(
    tmp_path: Path,
) -> None:
    lines = [f"{ODD[n % len(ODD)]}#{n}" for n in range(300)]
    texts = {
        f"notes{number}.txt": mark + end.join(lines) + last * end
        for number, (mark, end, last) in enumerate(
            itertools.product(["", "\ufeff"], ENDS, [True, False])
        )
    }
    async with engine(tmp_path / "e") as made:
        names = await upload(made, texts)
        found = {
            (path, guided): await find(made, "lion", name, guided=guided, length=5000)
            for path, name in names.items()
            for guided in ((), (name,))
        }
    for (path, _), block in found.items():
        parts = list(shown_parts(block.text, path))
        assert block.chunks
        assert len(parts) == len(block.chunks)
        for part, chunk in zip(parts, block.chunks, strict=True):
            own = split_lines(texts[path][chunk.start : chunk.end])
            assert [line.rpartition("#")[2] for line in own] == [
                line.rpartition("#")[2] for line in part
            ]
