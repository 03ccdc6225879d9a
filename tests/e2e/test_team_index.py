"""Daemons of a team: texts are embedded once, and a dead server changes no answer."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from tests.fakes.clients import find_code
from tests.fakes.daemon import Editor, running
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.engines import written
from tests.fakes.patience import until
from tests.fakes.project import git
from tests.fakes.qdrant_server import QdrantServer, answer

FILES = {
    "src/limits.py": "throttle = bucket . take ( client , burst )\n",
    "src/oven.py": "heat = oven . preheat ( degrees , minutes )\n",
    "src/mail.py": "sent = post . deliver ( letter , address )\n",
}
KEY, SALT = "key-of-the-qdrant-server", "salt-that-only-this-team-has"
KEYS = {"BYOK_KEY_TEAM_INDEX": KEY, "BYOK_KEY_TEAM_INDEX__SALT": SALT}
_HOMES = itertools.count()


@pytest.fixture
async def model() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer(64) as made:
        yield made


@pytest.fixture
async def team() -> AsyncIterator[QdrantServer]:
    async with QdrantServer() as made:
        made.keys = {KEY: "rw"}
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = written(tmp_path / "zoo", FILES)
    git(made, "init", "-q")
    git(made, "remote", "add", "origin", "https://git.example/owner/zoo.git")
    return made


@asynccontextmanager
async def member(
    root: Path, model: EmbeddingServer, url: str = "", *, write: bool = False
) -> AsyncIterator[tuple[Editor, EmbeddingStatus]]:
    """Run a daemon with a home of its own, and wait until it is complete."""
    settings: dict[str, Any] = {
        "context": {"workspaces": [str(root)]},
        "upstreams": {"near": {"base_url": model.url, "timeout": 5}},
        "embeddings": {"upstream": "near", "model": model.model},
    }
    if url:
        settings["embeddings"]["team"] = {"url": url, "team": "a", "write": write}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYOK_HOME", str(root.parent / f"home-{next(_HOMES)}"))
        async with running(settings, upstream="demo", environ=KEYS) as editor:
            await until(partial(is_complete, editor))
            yield editor, await editor.services.embeddings.status()


async def is_complete(editor: Editor) -> bool:
    told = await editor.services.embeddings.status()
    return told.state is EmbeddingState.COMPLETE and told.embedded == 3


def texts_of(model: EmbeddingServer) -> list[str]:
    """The texts of files, without that of the probe."""
    return [text for text in model.texts if text.startswith(tuple(FILES))]


async def ask(editor: Editor) -> str:
    question = "where is the oven"
    await editor.services.embeddings.begin(question)  # its vector is kept
    return await find_code(editor, question)


@pytest.mark.case("B127")
async def test_a_second_daemon_embeds_nothing(
    root: Path, model: EmbeddingServer, team: QdrantServer
) -> None:
    async with member(root, model, team.url, write=True) as (editor, told):
        assert told.note == ""
        pushed = await editor.post("/byok/embed/push")
        assert pushed.json["pushed"] == 3
        first = await ask(editor)
    assert len(texts_of(model)) == 3
    async with member(root, model, team.url) as (editor, told):
        assert told.team is not None
        assert (told.team.fetched, told.note) == (3, "")
        assert await ask(editor) == first
        assert (await editor.post("/byok/embed/pull")).json["pulled"] == 0
        refused = await editor.post("/byok/embed/push")
        assert refused.status == 400
        assert b"only reads" in refused.raw
    assert len(texts_of(model)) == 3
    everything = b"\n".join([*team.bodies, *(call.encode() for call in team.calls)])
    for planted in ("oven", "zoo", "git.example", KEY, SALT):
        assert planted.encode() not in everything


@pytest.mark.case("F49")
async def test_a_dead_server_changes_no_answer(
    root: Path, model: EmbeddingServer, team: QdrantServer
) -> None:
    async with member(root, model) as (editor, _):
        alone = await ask(editor)
    team.fault = answer(status=503)
    for url in (team.url, "http://127.0.0.1:1"):
        async with member(root, model, url, write=True) as (editor, told):
            assert told.note
            assert await ask(editor) == alone
            assert (await editor.post("/byok/embed/push")).status == 503
