"""Which scope, which way of searching, what text: over small real indexes."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.core.code_query import (
    BlobNames,
    Retrieval,
    RetrievalRequest,
    SearchMode,
)
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Phase, blob_name
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.retriever import Retriever
from byok.search.retrieval.ripgrep import ASK_IN_ENGLISH, Ripgrep
from tests.fakes.engines import (
    BrokenRanker,
    FakeVectors,
    InlineWorkers,
    complete,
    engine,
    project,
    written,
)
from tests.fakes.patience import until
from tests.fakes.project import git

RG = shutil.which("rg")
needs_rg = pytest.mark.skipif(RG is None, reason="rg is not installed")


class Asker:
    """A retriever, its engine, and the ways to ask it."""

    def __init__(self, made: ContextEngine, mode: SearchMode, program: str | None):
        self.engine = made
        self.retriever = Retriever(made, Ripgrep(lambda: program), mode)

    async def ask(self, query: str, **fields: Any) -> Retrieval:
        return await self.retriever.answer(RetrievalRequest(query, **fields))

    async def text(self, query: str, **fields: Any) -> str:
        return (await self.ask(query, **fields)).text


@asynccontextmanager
async def asking(
    folder: Path,
    *roots: Path,
    mode: SearchMode = SearchMode.AUTO,
    workers: InlineWorkers | None = None,
    program: str | None = RG,
    **options: Any,
) -> AsyncIterator[Asker]:
    async with engine(folder / "e", *roots, workers=workers, **options) as made:
        if workers is None or workers.gate.is_set():
            await complete(made)
        yield Asker(made, mode, program)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(
        tmp_path / "zoo",
        lion__py="def feed_lion():\n    return 'meat'\n",
        tiger__py="def feed_tiger():\n    return 'meat'\n",
        docs___bird__md="# Birds\n\nParrots eat seeds.\n",
    )


async def test_retrieval_answer_is_at_most_as_long_as_requested(
    tmp_path: Path, root: Path
) -> None:
    async with asking(tmp_path, root) as asker:
        for mode in SearchMode:
            asker.retriever._mode = mode
            for length in (1, 2, 10, 50, 100, 200, 1000):
                for fields in ({}, {"commits": True}, {"commits": True, "code": False}):
                    text = await asker.text("lion", length=length, **fields)
                    assert len(text) <= length


async def test_files_beyond_the_room_are_shown_by_the_line_that_defines_something(
    tmp_path: Path,
) -> None:
    body = "".join(f"    {name} = feed_parrot({name})\n" for name in "abcdefghij" * 8)
    files = {
        f"cage{n}__py": f"# To feed a parrot.\ndef feed_parrot_{n}(a):\n{body}"
        for n in range(6)
    }
    root = project(tmp_path / "zoo", **files)
    async with asking(tmp_path, root) as asker:
        text = await asker.text("feed a parrot", length=6_000)
    parts = [part.splitlines() for part in text.split("Path: ")[1:]]
    assert len(parts) == len(files)
    glimpses = [part for part in parts if len(part) == 2]
    assert len(glimpses) >= 3
    assert all("2\tdef feed_parrot_" in line for _, line in glimpses)


async def test_copies_of_a_file_are_shown_once_and_named(tmp_path: Path) -> None:
    licence = "".join(f"# Licence, line {n}: you may do with it\n" for n in range(12))
    body = "".join(f"    {name} = feed_parrot({name})\n" for name in "abcdefghij" * 20)
    parrots = f"{licence}def feed_parrot(a):\n{body}"
    other = f"{licence}class Parrot:\n    def feed(self):\n        eat('seed')\n"
    files = {f"v{n}___birds__py": parrots for n in range(5)}
    root = project(tmp_path / "zoo", **files, other___parrot__py=other)
    async with asking(tmp_path, root) as asker:
        text = await asker.text("feed a parrot")
    parts = [part.splitlines() for part in text.split("Path: ")[1:]]
    assert sorted(path for path, *_ in parts) == ["other/parrot.py", "v0/birds.py"]
    assert "eat('seed')" in text
    assert all(f"v{n}/birds.py" in parts[-1][-1] for n in range(1, 4))


@pytest.mark.parametrize(
    ("above", "within", "line"),
    [
        # The import has more words of the question than what is done with it.
        ("from birds import feed_parrot", "parrot", "4\tparrot_{n} = 1"),
        # Only the path has them.
        ("from __future__ import annotations", "meal", "7\tdef open_{n}(key):"),
    ],
)
async def test_a_file_is_not_shown_by_an_import(
    tmp_path: Path, above: str, within: str, line: str
) -> None:
    body = "".join(f"    {name} = key({name})\n" for name in "abcdefghij" * 8)
    files = {
        f"feed_parrot_{n}__py": f"{above}\nimport os\n\n{within}_{n} = 1\n\n\n"
        f"def open_{n}(key):\n{body}"
        for n in range(8)
    }
    root = project(tmp_path / "zoo", **files)
    async with asking(tmp_path, root) as asker:
        text = await asker.text("feed a parrot", length=6_000)
    parts = [part.splitlines() for part in text.split("Path: ")[1:]]
    glimpses = [part for part in parts if len(part) == 2]
    assert len(glimpses) >= 3
    for path, said in glimpses:
        number = path.removeprefix("feed_parrot_").removesuffix(".py")
        assert said.strip() == line.format(n=number)


NAMES = {
    "feeding.py": "def feed_lion(meat):\n    '''calls nobody'''\n    return meat\n",
    "keeper.py": "from feeding import feed_lion\n\n\nclass Keeper(Person):\n"
    "    def work(self):\n        # feed_lion(bones) would be wrong\n"
    "        return feed_lion(hay)\n",
    "tests/calm.py": "def soothe(lion):\n    pass\n",
    "sing.py": "def sing(lion):\n    soothe(lion)\n    soothe(lion)\n",
    "vet.py": "import feeding\n\n\ndef cure():\n    feeding.feed_lion(pills)\n",
    "words.py": "def feed(lion):\n    '''To feed a lion: calls, called by.'''\n" * 9,
    "shape.go": "package zoo\n\ntype Shape interface {\n\tArea() int\n"
    "\tName() string\n}\n",
    "cage.go": "package zoo\n\nfunc (c *Cage) Area() int { return 1 }\n\n"
    "func (c *Cage) Name() string { return c.n }\n",
    "sign.go": "package zoo\n\ntype Sign struct {\n\tShape\n\ttext string\n}\n",
    "half.go": "package zoo\n\nfunc (h Half) Area() int { return 2 }\n",
}


async def test_who_uses_a_name_is_told_and_shown_by_the_lines_that_do(
    tmp_path: Path,
) -> None:
    root = written(tmp_path / "zoo", NAMES)
    async with asking(tmp_path, root) as asker:
        text = await asker.text("who calls feed_lion")
        first, *parts = [part.splitlines() for part in text.split("Path: ")]
        assert first[0] == (
            "feed_lion is defined in feeding.py and used in 2 files, "
            "all in the top folder."
        )
        assert [part[0] for part in parts[:3]] == ["feeding.py", "keeper.py", "vet.py"]
        assert "     1\tdef feed_lion(meat):" in parts[0]
        assert "     7\t        return feed_lion(hay)" in parts[1]
        assert "     5\t    feeding.feed_lion(pills)" in parts[2]
        text = await asker.text("what extends Person")
        assert "Path: keeper.py\n     4\tclass Keeper(Person):\n     5" in text
        text = await asker.text("who calls soothe")
        assert text.index("Path: tests/calm.py") < text.index("Path: sing.py")
        for question, found in (
            ("what extends Person", ["keeper.py"]),
            ("what implements Shape", ["shape.go", "sign.go", "cage.go"]),
            ("where is bones called", []),  # in a comment
        ):
            about = (await asker.retriever.search(question)).get("names", [])
            paths = [
                one["defined_in"] + [f["path"] for f in one["files"]] for one in about
            ]
            assert paths == ([found] if found else [])
            used_in = [len(one["files"]) for one in about]
            assert [one["used_in"] for one in about] == used_in


async def test_a_symbol_is_answered_by_its_definition_and_its_uses_alone(
    tmp_path: Path,
) -> None:
    root = written(tmp_path / "zoo", NAMES)
    async with asking(tmp_path, root) as asker:
        for said in ("feed_lion", "feeding.feed_lion(meat)"):
            text = await asker.text("", symbol=said)
            paths = re.findall(r"Path: (.*)", text)
            assert paths == ["feeding.py", "keeper.py", "vet.py"]
        assert "used in 1 file" in await asker.text("", symbol="Person")
        assert "Path: " not in await asker.text("", symbol="feed_tiger")
        assert "is no name" in await asker.text("", symbol="to feed a lion")
        asker.retriever._mode = SearchMode.RIPGREP
        text = await asker.text("", symbol="feed_lion")
        assert "Path: feeding.py" in text
        assert "is defined in" not in text


async def test_of_many_uses_each_file_is_shown_by_a_line(tmp_path: Path) -> None:
    rows = [f"    other_{n}(value, {n})\n" for n in range(60)]
    rows[50] = "    # sweep(this) would be wrong\n"
    body = "".join(rows)
    uses = {
        f"cage{n}.py": "from broom import sweep\n"
        f"def clean_{n}():\n{body}    sweep({n})\n"
        for n in range(20)
    }
    root = written(tmp_path / "zoo", uses | {"broom.py": "def sweep(n):\n    pass\n"})
    async with asking(tmp_path, root) as asker:
        text = await asker.text("who calls sweep", length=6_000)
    assert text.count("\tdef sweep(n):") == 1
    for n in range(20):
        part = text.partition(f"Path: cage{n}.py\n")[2].partition("Path: ")[0]
        assert part.startswith(f"     2\tdef clean_{n}():\n...\n")
        assert f"    63\t    sweep({n})\n" in part
        assert "sweep(this)" not in part


async def test_uses_of_a_changed_file_are_shown_as_they_are_now(tmp_path: Path) -> None:
    body = "".join(f"    other_{n}(value, {n})\n" for n in range(60))
    before = f"def one():\n    sweep(1)\n{body}\ndef two():\n{body}"
    files = {"cage.py": before, "broom.py": "def sweep(n):\n    pass\n"}
    root = written(tmp_path / "zoo", files)
    workers = InlineWorkers()
    async with asking(tmp_path, root, workers=workers) as asker:
        workers.gate.clear()
        after = f"def one():\n{body}\ndef two():\n{body}    sweep(2)\n"
        (root / "cage.py").write_text(after)
        text = await asker.text("who calls sweep")
        workers.gate.set()
    assert "\t    sweep(2)\n" in text


async def test_several_questions_are_answered_each(tmp_path: Path) -> None:
    many = {f"lion{n}.py": "def feed_lion(): 'feed the lion'\n" for n in range(40)}
    few = {"bird.py": "def wash(parrot): pass\n", "keeper.py": "gate = 'open'\n"}
    root = written(tmp_path / "zoo", many | few)
    asked = "How do we feed a lion? Where is the parrot washed? When is the gate open?"
    async with asking(tmp_path, root) as asker:
        text = await asker.text(asked, length=4_000)
        hits = (await asker.retriever.search(asked))["hits"]
        said = await asker.text("How is it made? Where is the def used?")
    assert "Path: " in said  # it has only words of tasks
    assert "     1\tdef wash(parrot)" in text
    assert {"bird.py", "keeper.py"} <= {hit["path"] for hit in hits[:3]}


async def test_retrieval_tells_an_empty_question_from_a_search_without_code(
    tmp_path: Path, root: Path
) -> None:
    async with asking(tmp_path) as nothing_declared:
        told = await nothing_declared.text("", commits=True)
    assert told.startswith("missing information_request/query")
    async with asking(tmp_path / "two", root) as one:
        assert await one.text(" \n", blobs=BlobNames("none")) == told


async def test_retrieval_without_hits_is_a_sentence(tmp_path: Path, root: Path) -> None:
    written(root, {f"more/{n}.py": f"other{n} function" for n in range(20)})
    async with asking(tmp_path, root) as asker:
        for nowhere in ("xylophone", "add a xylophone function", "who calls xyzzy()"):
            text = await asker.text(nowhere)
            assert "no matches" in text
            assert "Path:" not in text
        assert "xyzzy is neither defined nor used here." in text
        assert ASK_IN_ENGLISH not in await asker.text("xylophone")
        assert ASK_IN_ENGLISH in await asker.text("霓虹甲乙")
        assert ASK_IN_ENGLISH not in await asker.text("其他 other1")


async def test_of_what_is_only_near_a_word_little_is_shown(
    tmp_path: Path, root: Path
) -> None:
    async with asking(tmp_path, root) as asker:
        ids = [
            asker.engine.workspaces[0].blob_of(name) for name in ("lion.py", "tiger.py")
        ]
        near = FakeVectors(ChunkScore(blob_id or 0, 0, 0.9) for blob_id in ids)
        aids = ModelAids(vectors=near)
        asker.retriever = Retriever(
            asker.engine, Ripgrep(lambda: RG), aids=lambda: aids
        )
        for question, shown in (("xyzzy plugh", 1), ("xyzzy plugh zork", 2)):
            text = await asker.text(question)
            first, *parts = text.split("Path: ")
            assert first.startswith("No word of this question is in the code here")
            assert [part.count("\t") for part in parts] == [shown, shown]
        assert not (await asker.text("feed lion")).startswith("No word")


async def test_retrieval_searches_commits_where_there_is_a_history(
    tmp_path: Path, root: Path
) -> None:
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "Feed the giraffe too")
    async with asking(tmp_path, root) as asker:
        [space] = asker.engine.workspaces
        await until(lambda: asker.engine.history_of(space) is not None)
        text = await asker.text("giraffe", code=False, commits=True)
        assert "Feed the giraffe too" in text
        (root / "okapi.py").write_text("okapi")
        git(root, "add", ".")
        git(root, "commit", "-m", "An okapi as well")

        async def found() -> bool:
            text = await asker.text("okapi", code=False, commits=True)
            return "An okapi as well" in text

        await until(found)


@needs_rg
async def test_retrieval_uses_ripgrep_while_the_index_is_built_and_says_so(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"more/{n}.py": "other" for n in range(60)})
    workers = InlineWorkers()
    workers.gate.clear()
    async with asking(tmp_path, root, workers=workers) as asker:
        await until(lambda: asker.engine.indexer.open_tasks > 60)
        text = await asker.text("lion")
        assert "Path: lion.py" in text
        assert "The index of zoo is being built (0 %)" in text
        workers.gate.set()
        await complete(asker.engine)
        assert "being built" not in await asker.text("lion")


async def test_retrieval_shows_a_changed_file_as_it_is_now_until_it_is_indexed_again(
    tmp_path: Path, root: Path
) -> None:
    lines = [f"def wash_{n}(): pass\n\n" for n in range(200)]
    before = "".join([*lines, "def feed_lion():\n    return 'meat'\n", *lines])
    now = before.replace("wash", "brush", 60).replace("'meat'", "'fish'")
    written(root, {"lion.py": before, "tiger.py": "def feed_lion_and_tiger(): ...\n"})
    workers = InlineWorkers()
    async with asking(tmp_path, root, workers=workers, program=None) as asker:
        known = blob_name("lion.py", before.encode())
        await asker.engine.uploads.find_missing([known])  # its content is held
        workers.gate.clear()
        written(root, {"lion.py": f"# new\n{now}", "tiger.py": "def nap(): ...\n"})
        [space] = asker.engine.workspaces
        await until(lambda: space.status.waiting == 2)
        text = await asker.text("feed_lion")
        found = await asker.retriever.search("feed_lion", lines=3)
        named = await asker.text("feed_lion", blobs=BlobNames("", (known,)))
        workers.gate.set()
        await complete(asker.engine)
        after = await asker.text("feed_lion")
    assert "Path: lion.py\n" in text
    assert "   402\tdef feed_lion():\n   403\t    return 'fish'\n" in text
    assert "'meat'" not in text
    assert "Path: tiger.py" not in text  # it says nothing of lions any more
    [note] = [line for line in text.splitlines() if "shown as they are now" in line]
    assert "lion.py" in note
    assert "tiger.py" not in note
    assert note in found["notes"]
    [hit] = found["hits"]
    assert (402, True) in [(line["number"], line["match"]) for line in hit["lines"]]
    assert any(c["first_line"] <= 402 <= c["last_line"] for c in hit["chunks"])
    # A client that names the version asks about that one.
    assert "   401\tdef feed_lion():\n   402\t    return 'meat'\n" in named
    assert "   402\tdef feed_lion():\n   403\t    return 'fish'\n" in after
    assert "shown as they are now" not in after


@needs_rg
async def test_retrieval_uses_ripgrep_for_a_workspace_too_large_for_the_index(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root, max_files=2) as made:
        asker = Asker(made, SearchMode.AUTO, RG)
        await until(lambda: made.workspaces[0].status.phase is Phase.TOO_LARGE)
        text = await asker.text("lion")
        found = await asker.retriever.search("lion")
    assert "Path: lion.py" in text
    assert "zoo: more than 2 files: ripgrep answers instead." in text
    assert found["notes"] == ["zoo: more than 2 files: ripgrep answers instead."]


@needs_rg
async def test_retrieval_uses_ripgrep_with_a_damaged_index_and_says_what_to_do(
    tmp_path: Path, root: Path
) -> None:
    async with asking(tmp_path, root) as asker:
        asker.retriever.ranker = BrokenRanker(asker.engine)
        text = await asker.text("lion")
    assert "Path: lion.py" in text
    assert "The index was not searched. The index is damaged. Mend it." in text


async def test_retrieval_tells_several_workspaces_apart_by_their_names(
    tmp_path: Path, root: Path
) -> None:
    twin = project(tmp_path / "other" / "zoo", lion__py="def groom_lion(): pass\n")
    farm = project(tmp_path / "farm", lion__py="def ride_lion(): pass\n")
    named = [str(root), str(twin), str(farm)]
    async with asking(tmp_path, root, twin, farm) as asker:
        text = await asker.text("lion", roots=named)
        hits = (await asker.retriever.search("lion", roots=named))["hits"]
    shown = [line for line in text.splitlines() if line.endswith("/lion.py")]
    assert len(set(shown)) == len(shown) == 3
    assert "Path: zoo/lion.py" in shown
    assert "Path: farm/lion.py" in shown
    assert len({hit["path"] for hit in hits}) == 3


@pytest.mark.parametrize("mode", [SearchMode.INDEX, SearchMode.RIPGREP])
async def test_retrieval_never_shows_code_of_another_project(
    tmp_path: Path, root: Path, mode: SearchMode
) -> None:
    farm = project(tmp_path / "farm", pig__py="def feed_pig(): return 'meat'\n")
    project(tmp_path / "farm2", cow__py="def feed_cow(): return 'meat'\n")
    async with asking(tmp_path, root, farm, tmp_path / "farm2", mode=mode) as asker:
        unclear = await asker.text("feed meat", commits=True)
        for text in (unclear, await asker.text(f"feed meat in {farm}3 or .{farm}")):
            assert "does not say which one it is about" in text
            assert "Path: " not in text
        commits = await asker.text("feed", code=False, commits=True)
        assert "does not say which one it is about" in commits
        found = await asker.retriever.search("feed meat")
        assert found["hits"] == []
        assert "does not say which" in found["notes"][0]
        for mention in (f"{farm}", f"{farm}/pig.py", f"`{farm}`", f"{farm}. Or"):
            told = await asker.text(f"feed meat in {mention}?")
            assert "Path: pig.py" in told
            assert "cow.py" not in told
            assert "lion.py" not in told


async def test_retrieval_searches_what_is_open_in_the_editor(
    tmp_path: Path, root: Path
) -> None:
    farm = project(tmp_path / "farm", src___pig__py="def feed_pig(): return 'meat'\n")
    (tmp_path / "link").symlink_to(farm)
    async with asking(tmp_path, root, farm) as asker:
        for opened in (farm, farm / "src", tmp_path / "link"):
            told = await asker.text("feed meat", folders=[str(opened)])
            assert "Path: src/pig.py" in told
            assert "lion.py" not in told
        both = await asker.text("feed meat", folders=[str(root), str(farm)])
        assert "Path: farm/src/pig.py" in both
        assert "Path: zoo/lion.py" in both
    async with asking(tmp_path / "alone", root) as asker:
        elsewhere = await asker.text("feed meat", folders=[str(farm), "\0", ""])
        assert f"{farm} is open in the editor" in elsewhere
        assert "Path: " not in elsewhere
        told = await asker.text(f"feed meat in {root}", folders=[str(farm)])
        assert "Path: lion.py" in told


@pytest.mark.parametrize("mode", [SearchMode.INDEX, SearchMode.RIPGREP])
async def test_retrieval_shows_a_file_of_overlapping_workspaces_once(
    tmp_path: Path, root: Path, mode: SearchMode
) -> None:
    project(
        root,
        **{".gitignore": "inner/own/\n"},
        inner___a__py="def stroke_ibex(): pass\n",
        inner___own___b__py="def brush_ibex(): pass\n",
    )
    async with asking(tmp_path, root, root / "inner", mode=mode) as asker:
        text = await asker.text("ibex stroke brush")
        inner = await asker.text("ibex", roots=[str(root / "inner")])
    assert text.count("def stroke_ibex") == text.count("def brush_ibex") == 1
    assert "Path: zoo/inner/a.py" in text
    assert "Path: inner/own/b.py" in text
    assert "Path: a.py" in inner
    assert "Path: own/b.py" in inner


async def test_a_small_project_is_listed_as_what_it_is(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    written(root, {"src/a.py": "lion = 1\n", "README.md": "A shop.\n"})
    written(root, {".gitignore": "*.log\n", ".dockerignore": "dist\n"})
    (root / "logo.png").write_bytes(bytes(range(256)) * 9)
    (root / "tool.exe").write_bytes(bytes(900))
    async with asking(tmp_path, root) as asker:
        for query in ("where is the giraffe", "how does it work", "logo image"):
            heading, *paths = (await asker.text(query)).splitlines()
            assert "no matches" in heading
            assert paths == ["Path: src/a.py", "Path: README.md"], query
        for query in ("???", "!!! ...", "—"):
            assert "Path:" not in await asker.text(query), query
        assert "Path: .gitignore" in await asker.text("gitignore")
