"""One agent's questions about the folder that it works in."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp_types import TextContent

from byok.cli.code_client import (
    Agent,
    check_project,
    folders,
    resolve_parent,
    workspace_of,
)
from byok.cli.command_context import load
from byok.cli.daemon_client import Ask, LocalClient
from byok.core.chat import Json
from byok.core.errors import BadRequest, ByokError, ConfigError, IndexInUse
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.search.index.files.roots import OwnFolders
from byok.server.mcp.tools import call_tool
from tests.fakes.daemon import write_settings
from tests.fakes.project import Repository

QUESTION = {"information_request": "where"}


class Own:
    """Stands for the context of this process; it may have an `error`."""

    def __init__(self, *known: Path) -> None:
        self.known = known
        self.error: ByokError | None = None
        self.opened: list[list[Path]] = []
        self.asked: list[Json] = []

    @asynccontextmanager
    async def open(self, roots: Iterable[Path]) -> AsyncIterator[Ask]:
        self.opened.append(list(roots))
        yield self.answer

    async def answer(self, service: str, body: Json) -> Json:
        if self.error:
            raise self.error
        if service is Service.INDEX_STATUS:
            return {"workspaces": [{"root": str(root)} for root in self.known]}
        self.asked.append(body)
        return {"formatted_retrieval": "by the index"}


class Text:
    """Stands for the text search."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[Path]]] = []
        self.starts = 0

    async def answer(self, question: str, roots: Sequence[Path]) -> str:
        self.asked.append((question, list(roots)))
        return "by text"

    def start(self) -> None:
        self.starts += 1


@asynccontextmanager
async def agent(own: Own, text: Text, here: Path, *given: Path) -> AsyncIterator[Agent]:
    async with LocalClient(find_paths(), own.open, given, patience=0.0) as client:
        yield Agent(client, given, here, text.answer, start=text.start)


async def answer(asks: Agent) -> str:
    told = await call_tool(asks, "codebase-retrieval", QUESTION)
    [content] = told.content
    assert isinstance(content, TextContent)
    return content.text


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


async def test_agent_searches_the_folders_that_are_named(tmp_path: Path) -> None:
    own, root = Own(tmp_path / "other"), folder(tmp_path / "root")
    async with agent(own, Text(), tmp_path / "other", root) as asks:
        await asks.refresh()
        assert await answer(asks) == "by the index"
    assert own.asked == [{**QUESTION, "workspaces": [str(root)]}]
    assert own.opened == [[root]]


async def test_agent_searches_what_is_named_within_what_the_user_gave(
    tmp_path: Path,
) -> None:
    own, one, two = Own(), folder(tmp_path / "one/in"), folder(tmp_path / "two")
    async with agent(own, Text(), tmp_path, one.parent, two) as asks:
        assert await asks.find_roots(str(one)) == [str(one.parent)]
    async with agent(own, Text(), tmp_path, one.parent, one, two) as asks:
        assert await asks.find_roots(str(one / "a")) == [str(one)]
        with pytest.raises(BadRequest):
            await asks.find_roots(str(tmp_path))


async def test_agent_without_folders_searches_the_workspace_around_its_folder(
    tmp_path: Path,
) -> None:
    own = Own(tmp_path, tmp_path / "other")
    async with agent(own, Text(), tmp_path / "a") as asks:
        await answer(asks)
    assert own.asked == [{**QUESTION, "workspaces": [str(tmp_path)]}]
    assert own.opened == [[]]


@pytest.mark.parametrize("named", [True, False])
async def test_agent_searches_text_while_another_process_has_the_index(
    tmp_path: Path, named: bool
) -> None:
    root = folder(tmp_path / "root")
    own, text = Own(), Text()
    own.error = IndexInUse("No.")
    async with agent(own, text, root, *([root] if named else [])) as asks:
        await asks.refresh()
        assert text.starts == 1
        assert await answer(asks) == "by text"
        assert text.asked == [("where", [root])]
        own.error = None
        assert await answer(asks) == "by the index"
    assert own.asked == [{**QUESTION, "workspaces": [str(root)]}]


OWN = OwnFolders([])


def test_project_is_the_innermost_workspace_around_a_folder(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    inner = folder(outer / "a/inner/deep")
    known = [outer, inner.parent, outer / "a/inn"]
    assert workspace_of(inner, known, OWN) == inner.parent
    assert workspace_of(outer / "a", known, OWN) == outer


def test_a_work_tree_below_a_workspace_is_a_project_of_its_own(tmp_path: Path) -> None:
    made = Repository(tmp_path.resolve() / "repo")
    made.commit("one", "pkg/a.py")
    made.git("worktree", "add", "-q", ".agent/tree")
    tree = made.root / ".agent/tree"
    assert workspace_of(tree / "pkg", [made.root], OWN) == tree
    assert workspace_of(made.root / "pkg", [made.root, tree], OWN) == made.root
    assert workspace_of(tree / "pkg", [made.root, tree / "pkg"], OWN) == tree / "pkg"


def test_a_folder_of_the_system_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder(tmp_path / "Windows/System32")
    assert check_project(inner, OWN) == inner
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path / "Windows"))
    with pytest.raises(ConfigError):
        check_project(inner, OWN)


def test_ask_path_is_absolute_and_only_its_last_name_may_be_a_symlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    (real / "other").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    assert resolve_parent(Path("link/other")) == real / "other"
    assert resolve_parent(Path("real/../link")) == tmp_path / "link"
    assert folders([Path("link"), Path()]) == [real, tmp_path]
    assert folders(None) == []


def test_command_settings_come_from_the_users_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    for name in ("config.toml", "byok.toml", ".byok.toml", ".env"):
        write_settings("[server]\nport = 9001\n", workspace / name)
    monkeypatch.chdir(workspace)
    assert load()[0].server.port == 8317
    write_settings("[server]\nport = 9002\n")
    assert load()[0].server.port == 9002
