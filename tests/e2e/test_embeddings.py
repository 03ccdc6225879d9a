"""A daemon whose user named an embedding model: what is found, and what is sent.

Daemons of a team embed each text once, and a dead server changes no answer.
"""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.search.vectors.types import EmbeddingState, EmbeddingStatus
from byok.settings import load_settings
from tests.fakes.clients import find_code, until_complete
from tests.fakes.daemon import Editor, running
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.engines import written
from tests.fakes.patience import until
from tests.fakes.project import git
from tests.fakes.qdrant_server import QdrantServer, answer
from tests.fakes.values import forms

# No word of it is in any file; the model knows which words mean the same.
QUESTION = "slow down greedy visitors"
SAME = {"slow": "throttle", "down": "bucket", "visitors": "client", "greedy": "burst"}
FILES = {
    "src/limits.py": "throttle = bucket . take ( client , burst )\n",
    "src/oven.py": "heat = oven . preheat ( degrees , minutes )\n",
    "src/mail.py": "sent = post . deliver ( letter , address )\n",
    "docs/limits.md": "throttle bucket client burst\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path / "zoo", FILES)


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer(64) as made:
        made.same = SAME
        yield made


def settings(root: Path, server: EmbeddingServer | None, **fields: Any) -> Any:
    """Settings with a model, or without if there is no server."""
    base: dict[str, Any] = {"context": {"workspaces": [str(root)]}}
    if server is None:
        return base
    own = {"upstream": "near", "model": server.model, **fields}
    upstreams = {"near": {"base_url": server.url, "timeout": 5}}
    return {**base, "embeddings": own, "upstreams": upstreams}


@asynccontextmanager
async def following(
    root: Path, server: EmbeddingServer | None
) -> AsyncIterator[Editor]:
    """Run a daemon that follows a folder, and wait until it has done all there is."""
    async with running(settings(root, server), upstream="demo") as editor:
        await until_complete(editor)
        if server is not None:
            await filled(editor)
        yield editor


async def ask(editor: Editor, query: str) -> str:
    await editor.services.embeddings.begin(query)  # its vector is kept
    return await find_code(editor, query)


async def state(editor: Editor) -> EmbeddingState:
    return (await editor.services.embeddings.status()).state


async def filled(editor: Editor, chunks: int = 3) -> None:
    async def is_filled() -> bool:
        told = await editor.services.embeddings.status()
        return told.state is EmbeddingState.COMPLETE and told.embedded >= chunks

    await until(is_filled)


async def test_a_question_without_common_words_finds_the_file_by_its_vector(
    root: Path, server: EmbeddingServer
) -> None:
    async with following(root, server) as editor:
        text = await ask(editor, QUESTION)
        assert text.startswith("The following code sections")
        shown = [line for line in text.split("\n") if line.startswith("Path: ")]
        assert shown[0] == "Path: src/limits.py"
        assert "throttle = bucket" in text
        hits = (await editor.post("/byok/search", {"query": QUESTION})).json["hits"]
        assert hits[0]["path"] == "src/limits.py"
        assert hits[0]["reasons"]["vector"] > 0
    # Tests and documents were not sent.
    assert not any("docs/limits.md" in text for text in server.texts)


async def test_what_words_find_is_joined_and_not_replaced(
    root: Path, server: EmbeddingServer
) -> None:
    async with following(root, server) as editor:
        text = await ask(editor, f"{QUESTION} oven")
        assert "Path: src/limits.py" in text
        assert "Path: src/oven.py" in text


def damage(vectors: Path, page: int) -> None:
    """Overwrite a page of the database, as a failing disk does."""
    with vectors.open("r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xa5" * 4096)


async def test_vectors_damaged_on_the_disk_are_made_anew_without_a_restart(
    root: Path, server: EmbeddingServer
) -> None:
    vectors = find_paths().vectors
    async with following(root, server):
        pass
    pages = vectors.stat().st_size // 4096
    for page in range(1, pages):  # the first one says whose database it is
        damage(vectors, page)
        async with following(root, server) as editor:
            assert "throttle = bucket" in await ask(editor, QUESTION)
        for aside in vectors.parent.glob("vectors.db.damaged-*"):
            aside.unlink()


async def test_no_secret_of_a_file_is_sent(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    token, word = "ghp_" + "a1B2c3D4e5F6" * 3, "Zq8-tR5w.Xk2vLm9"
    body = "MIIEpAIBAAKCAQEA7bq3" * 3
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    root = written(
        tmp_path / "zoo",
        {
            **FILES,
            "src/a.py": f"def a():\n    token = '{token}'\n    return token\n",
            "src/b.py": f"password = '{word}'\n",
            "src/c.py": f'KEY = """\n{key}\n"""\n',
            "src/d.py": f"x = [{'1, ' * 40}'{token}']\ny = 2\n",
            "deploy/values.yaml": f"db:\n  password: {word}\n  token: {token}\n",
            ".env": f"TOKEN={token}\n",
            "secrets.yaml": f"token: {token}\n",
            f"src/{token}/e.py": "def e(): return 1\n",
        },
    )
    async with following(root, server) as editor:
        await filled(editor, 8)
        await ask(editor, f"who uses {token} and the client")
    sent = "\n".join(server.texts).encode()
    assert b"src/a.py" in sent
    assert b"deploy/values.yaml" in sent
    for secret in (token, word, body):
        for form in forms(secret):
            assert form not in sent


async def test_what_is_gone_is_not_found(root: Path, server: EmbeddingServer) -> None:
    async with following(root, server) as editor:
        assert "src/limits.py" in await ask(editor, QUESTION)
        (root / "src/limits.py").unlink()

        async def is_gone() -> bool:
            return "src/limits.py" not in await ask(editor, QUESTION)

        await until(is_gone)


async def test_code_of_another_workspace_is_not_found(
    tmp_path: Path, root: Path, server: EmbeddingServer
) -> None:
    other = written(tmp_path / "other", {"src/song.py": "sing ( loud )\n"})
    async with following(root, server) as editor:
        await editor.services.context.add(other)
        await filled(editor, 4)
        text = await ask(editor, f"{QUESTION} {other}")
        assert "song.py" in text
        assert "limits.py" not in text
        assert await editor.services.context.remove(root)
        assert "limits.py" not in await ask(editor, QUESTION)


async def test_a_dead_model_changes_no_answer(
    root: Path, server: EmbeddingServer
) -> None:
    questions = [QUESTION, "throttle the client", "oven", "preheat degrees address"]
    async with following(root, None) as editor:
        plain = [await ask(editor, question) for question in questions]
    async with following(root, server) as editor:
        server.always = "500"
        assert [await ask(editor, question) for question in questions] == plain
        assert "Internal error" in (await editor.services.embeddings.status()).error


async def test_a_model_is_switched_on_and_off_while_the_daemon_runs(
    root: Path, server: EmbeddingServer
) -> None:
    def loaded(server: EmbeddingServer | None) -> Any:
        given = {"server": {"port": 0}, **settings(root, server)}
        return load_settings(find_paths().config, given)

    async with following(root, None) as editor:
        assert await state(editor) is EmbeddingState.OFF
        plain = await ask(editor, QUESTION)
        await editor.daemon.use(loaded(server))
        await filled(editor)
        assert "src/limits.py" in await ask(editor, QUESTION)
        asked = len(server.requests)
        await editor.daemon.use(loaded(server))  # nothing changed
        await filled(editor)
        await editor.daemon.use(loaded(None))
        assert await ask(editor, QUESTION) == plain
        assert len(server.requests) == asked


# Teams whose daemons share what they embedded.

OVEN = "where is the oven"
KEY, SALT = "key-of-the-qdrant-server", "salt-that-only-this-team-has"
KEYS = {"BYOK_KEY_TEAM_INDEX": KEY, "BYOK_KEY_TEAM_INDEX__SALT": SALT}
_HOMES = itertools.count()


@pytest.fixture
async def team(root: Path) -> AsyncIterator[QdrantServer]:
    """A server for the members of a team, whose repository is `root`."""
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", "https://git.example/owner/zoo.git")
    async with QdrantServer() as made:
        made.keys = {KEY: "rw"}
        yield made


@asynccontextmanager
async def member(
    root: Path, server: EmbeddingServer, url: str = "", *, write: bool = False
) -> AsyncIterator[tuple[Editor, EmbeddingStatus]]:
    """Run a daemon with a home of its own, and wait until it is complete."""
    shared = {"team": {"url": url, "team": "a", "write": write}} if url else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYOK_HOME", str(root.parent / f"home-{next(_HOMES)}"))
        async with running(
            settings(root, server, **shared), upstream="demo", environ=KEYS
        ) as editor:
            await filled(editor)
            yield editor, await editor.services.embeddings.status()


def texts_of(server: EmbeddingServer) -> list[str]:
    """The texts of files, without that of the probe."""
    return [text for text in server.texts if text.startswith(tuple(FILES))]


@pytest.mark.case("B127")
async def test_a_second_daemon_embeds_nothing(
    root: Path, server: EmbeddingServer, team: QdrantServer
) -> None:
    async with member(root, server, team.url, write=True) as (editor, told):
        assert told.note == ""
        pushed = await editor.post("/byok/embed/push")
        assert pushed.json["pushed"] == 3
        first = await ask(editor, OVEN)
    assert len(texts_of(server)) == 3
    async with member(root, server, team.url) as (editor, told):
        assert told.team is not None
        assert (told.team.fetched, told.note) == (3, "")
        assert await ask(editor, OVEN) == first
        assert (await editor.post("/byok/embed/pull")).json["pulled"] == 0
        refused = await editor.post("/byok/embed/push")
        assert refused.status == 400
        assert b"only reads" in refused.raw
    assert len(texts_of(server)) == 3
    everything = b"\n".join([*team.bodies, *(call.encode() for call in team.calls)])
    for planted in ("oven", "zoo", "git.example", KEY, SALT):
        assert planted.encode() not in everything


@pytest.mark.case("F49")
async def test_a_dead_server_changes_no_answer(
    root: Path, server: EmbeddingServer, team: QdrantServer
) -> None:
    async with member(root, server) as (editor, _):
        alone = await ask(editor, OVEN)
    team.fault = answer(status=503)
    for url in (team.url, "http://127.0.0.1:1"):
        async with member(root, server, url, write=True) as (editor, told):
            assert told.note
            assert await ask(editor, OVEN) == alone
            assert (await editor.post("/byok/embed/push")).status == 503
