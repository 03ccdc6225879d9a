"""An answer with a search server beside the index: over a small real index."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from byok.core.code_query import (
    BlobNames,
    CodeQuestion,
    RetrievalRequest,
    SearchMode,
    Upload,
)
from byok.core.redact import Redactor
from byok.search.outside.consent import Consent
from byok.search.outside.server import Pause
from byok.search.remote.remote_search import RemoteHits, RemotePlace, RemoteSearch
from byok.search.remote.zoekt import RemoteFile
from byok.search.remote.zoekt import ZoektServer as ZoektClient
from byok.search.retrieval.model_aids import ModelAids
from byok.search.retrieval.passages import PassageFinder
from byok.search.retrieval.retriever import Retriever
from byok.search.retrieval.ripgrep import Ripgrep
from byok.upstream.transport import Route, Transports
from tests.fakes.engines import complete, indexed, project
from tests.fakes.patience import PATIENCE
from tests.fakes.project import git
from tests.fakes.zoekt_server import REVISION, Token, ZoektServer, found

HOST = "code.example:443"
LION = "def feed_lion(meat):\n    return meat.cut()\n"
FAR = "def cook_noodles(pot):\n    return pot.boil()\n"
TITLE = (
    f"src/noodles.py (repository git.example/food/kitchen, revision {REVISION[:12]})"
)


class Asker:
    """A retriever with a search server beside it."""

    def __init__(self, retriever: Retriever, remote: RemoteSearch) -> None:
        self.retriever, self.remote = retriever, remote
        self.engine = retriever._engine

    async def ask(self, query: str, **fields: Any) -> str:
        answer = await self.retriever.answer(RetrievalRequest(query, **fields))
        return answer.text


@asynccontextmanager
async def asking(
    folder: Path,
    server: ZoektServer,
    *roots: Path,
    seconds: float = PATIENCE,
    enabled: bool = True,
    clock: Any = time.monotonic,
) -> AsyncIterator[Asker]:
    transports = Transports()
    zoekt = ZoektClient(server.url, lambda: transports.by(Route()), Token())
    if enabled:
        Consent(folder / "search.json").give(HOST, "")
    remote = RemoteSearch(
        RemotePlace(server.url, HOST, is_local=False),
        zoekt.search,
        lambda: Consent(folder / "search.json"),
        Redactor(),
        pause=Pause("it", clock=clock, draw=lambda: 1.0),
        seconds=seconds,
    )
    async with indexed(folder / "e", *roots) as made:
        aids = ModelAids(remote=remote)
        ripgrep = Ripgrep(lambda: None)
        retriever = Retriever(made, ripgrep, SearchMode.INDEX, lambda: aids)
        yield Asker(retriever, remote)
    await transports.close()


@pytest.fixture
async def server() -> AsyncIterator[ZoektServer]:
    async with ZoektServer(
        found("git.example/food/kitchen", "src/noodles.py", FAR, line=41)
    ) as made:
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = project(tmp_path / "zoo", lion__py=LION, tiger__py="def feed_tiger(): ...\n")
    git(made, "init", "-q")
    git(made, "remote", "add", "origin", "git@git.example:animals/zoo.git")
    return made


async def test_time_that_byok_needs_itself_is_not_held_against_the_server(
    tmp_path: Path,
) -> None:
    async def find_nothing(*_: object) -> list[RemoteFile]:
        return []

    remote = RemoteSearch(
        RemotePlace("http://127.0.0.1", "127.0.0.1", is_local=True),
        find_nothing,
        lambda: Consent(tmp_path / "search.json"),
        Redactor(),
        Pause("it"),
        seconds=0,
    )
    hits = await remote.begin("how does feed_lion cook noodles", [tmp_path])
    assert (hits.note, remote.status.answered) == ("", 1)


async def test_code_of_another_repository_is_shown_below_with_its_place(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server, root) as asker:
        text = await asker.ask("how does feed_lion cook noodles")
    local, _, far = text.partition(f"\nPath: {TITLE}\n")
    assert "Path: lion.py\n" in local
    assert "not in this workspace" in local.splitlines()[-1]
    assert HOST in local.splitlines()[-1]
    assert far.splitlines() == [
        "    41\tdef cook_noodles(pot):", "    42\t    return pot.boil()",
    ]  # fmt: skip
    status = asker.remote.status
    assert (status.enabled, status.asked, status.answered) == (True, 1, 1)


async def test_only_terms_leave(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server, root) as asker:
        await asker.ask(f"why does {root}/lion.py cook `pot.boil(x=1)` in noodles.py")
    [asked] = server.asked
    terms = ("lion", "cook", "pot", "boil", "noodl")
    words = " or ".join(f'"{term}"' for term in terms)
    assert asked == f"case:no ({words} or file:noodles[.]py)"
    wire = b"".join(server.received)
    for kept in (str(root), root.name, "def feed", "x=1", "git.example"):
        assert kept.encode() not in wire


async def test_nothing_is_sent_before_the_user_agreed_and_after_it_was_withdrawn(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server, root, enabled=False) as asker:
        alone = await asker.ask("noodles of the lion")
        assert not asker.remote.status.enabled
        consent = Consent(tmp_path / "search.json")
        consent.give("other.example:443", "")
        assert await asker.ask("noodles of the lion") == alone
        consent.give(HOST, "")
        assert TITLE in await asker.ask("noodles of the lion")
        consent.withdraw()
        assert await asker.ask("noodles of the lion") == alone
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "name", ["git.example/animals/zoo", "Animals/Zoo", "zoo", "animals/zoo.git"]
)
async def test_a_repository_that_is_indexed_here_is_not_shown_twice(
    tmp_path: Path, root: Path, name: str
) -> None:
    server = ZoektServer(found(name, "noodles.py", FAR))
    async with server, asking(tmp_path, server, root) as asker:
        assert "noodles" not in await asker.ask("noodles of the lion")


async def test_a_file_that_the_client_uploaded_is_not_shown_twice(
    tmp_path: Path,
) -> None:
    copy, fork = found("a/copy", "x.py", FAR), found("a/fork", "x.py", FAR)
    fork["Checksum"] = copy["Checksum"]
    far = found("git.example/animals/zoo", "src/lion.py", f"# new\n{LION}")
    server = ZoektServer(far, copy, fork)
    async with server, asking(tmp_path, server) as asker:
        upload = Upload(b"", "src/lion.py", LION.encode())
        [name] = await asker.engine.uploads.upload([upload])
        blobs = BlobNames(added=(name,))
        text = await asker.ask("feed_lion and noodles", blobs=blobs)
    assert text.count("def feed_lion") == 1
    assert ("a/copy" in text, "a/fork" in text) == (True, False)


async def test_the_local_files_win_where_both_say_the_same(
    tmp_path: Path, root: Path
) -> None:
    body = "".join(f"    oven = warm(oven, {n})\n" for n in range(400))
    project(root, den__py=f"def den():\n{body}")
    far = found("git.example/food/kitchen", "pit.py", f"def den():\n{body}")
    async with ZoektServer(far) as server, asking(tmp_path, server, root) as asker:
        both = await asker.ask("warm the oven", length=6000)
        server.files = ()
        alone = await asker.ask("warm the oven", length=6000)
    local, _, below = both.partition("\nThe following code is in other")
    assert len(both) <= 6000
    assert "Path: pit.py (" in below
    assert len(below) <= 0.35 * 6000
    assert local.startswith(alone[:1500])


async def test_secrets_in_code_of_the_server_are_masked_and_signs_escaped(
    tmp_path: Path, root: Path
) -> None:
    text = "noodles: 1\npassword: kangaroo-Pouch77\nnoodles: '\x1b[31m\u202e'\n"
    server = ZoektServer(found("git.example/food.old", "a.yml", text))
    async with server, asking(tmp_path, server, root) as asker:
        shown = await asker.ask("noodles")
    assert "noodles: 1" in shown
    for hidden in ("kangaroo", "\x1b", "\u202e"):
        assert hidden not in shown


@pytest.mark.case("F52")
async def test_a_silent_server_costs_its_seconds_once_and_one_line(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    now = [0.0]

    let_go = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        await let_go.wait()
        return web.Response()

    server.fault = hang
    async with asking(
        tmp_path, server, root, seconds=1.0, clock=lambda: now[0]
    ) as asker:
        started = time.monotonic()
        text = await asker.ask("noodles of the lion")
        assert 1.0 <= time.monotonic() - started < PATIENCE
        assert "def feed_lion" in text
        [line] = [line for line in text.splitlines() if HOST in line]
        assert line.endswith("left out. It did not answer within 1 seconds.")
        assert await asker.ask("noodles of the lion") == text
        assert len(server.received) < 2  # it is not asked again at once
        let_go.set()
        now[0] += 5.1
        server.fault, asker.remote.seconds = None, PATIENCE
        assert TITLE in await asker.ask("noodles of the lion")
        assert asker.remote.status.note == ""


@pytest.mark.case("F52")
async def test_a_dead_server_is_named_and_changes_no_local_answer(
    tmp_path: Path, root: Path
) -> None:
    async with ZoektServer() as server:
        pass
    question = "where is the lion fed"
    async with asking(tmp_path, server, root) as asker:
        text = await asker.ask(question)
        answer = await asker.retriever.search(question, 5, [str(root)])
        asker.retriever._aids = ModelAids
        alone = await asker.ask(question)
        hits = (await asker.retriever.search(question, 5, [str(root)]))["hits"]
    assert text.startswith(alone)
    assert answer["hits"] == hits
    for told in (text.removeprefix(alone), *answer["notes"]):
        assert HOST in told


async def test_a_server_answers_where_nothing_is_indexed(
    tmp_path: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server) as asker:
        text = await asker.ask("cook noodles")
    assert TITLE in text
    assert "def cook_noodles" in text


async def test_an_answer_is_at_most_as_long_as_requested(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server, root) as asker:
        for length in (1, 2, 10, 50, 100, 200, 400, 1000):
            for query in ("noodles of the lion", "noodles", "lion"):
                assert len(await asker.ask(query, length=length)) <= length


async def test_hits_of_the_server_stand_among_local_ones_with_their_place(
    tmp_path: Path, root: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server, root) as asker:
        search = asker.retriever.search
        answer = await search("cook noodles, feed_lion", 20, [str(root)], lines=6)
        [one] = (await search("cook noodles", 1, [str(root)]))["hits"]
    far = next(hit for hit in answer["hits"] if "repository" in hit)
    assert (far["path"], far["file"]) == ("src/noodles.py", "")
    assert far["repository"] == "git.example/food/kitchen"
    assert far["revision"] == REVISION
    assert [(line["number"], line["text"]) for line in far["lines"]] == [
        (41, "def cook_noodles(pot):"), (42, "    return pot.boil()"),
    ]  # fmt: skip
    assert "lion.py" in [hit["path"] for hit in answer["hits"]]
    scores = [hit["score"] for hit in answer["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert one["chunks"][0]["first_line"] == 41
    assert "lines" not in one


async def test_a_chat_is_shown_code_of_the_server_below_its_own(
    tmp_path: Path, server: ZoektServer
) -> None:
    async with asking(tmp_path, server) as asker:
        upload = Upload(b"", "lion.py", LION.encode())
        names = tuple(await asker.engine.uploads.upload([upload]))
        await complete(asker.engine)
        ranker, aids = asker.retriever.ranker, asker.retriever._aids
        finder = PassageFinder(asker.engine, ranker, SearchMode.INDEX, aids, PATIENCE)
        question = CodeQuestion(
            "How does feed_lion cook noodles?", BlobNames("", names)
        )
        for length in (500, 2_000, 20_000):
            found = await finder.find(question, length)
            assert len(found.text) <= length
        greeting = await finder.find(CodeQuestion("Which of these?", question.blobs), 9)
    local, _, far = found.text.partition(f"\nPath: {TITLE}\n")
    assert "Path: lion.py\n" in local
    assert "def cook_noodles" in far
    assert {chunk.blob_name for chunk in found.chunks} == {names[0].hex()}
    assert greeting.text == ""
    assert len(server.asked) == 3


def test_what_was_found_is_not_shown_where_its_object_is_logged() -> None:
    assert "tapir" not in repr(RemoteHits("code.example", note="tapir"))
