"""Ask the daemon about code, or an index in this process if no daemon runs."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from msgspec import Struct

from byok.cli.command_context import load
from byok.cli.completion import complete_workspace
from byok.cli.daemon_client import Ask, LocalClient, ask_instance
from byok.cli.terminal import show_progress
from byok.core.chat import Json
from byok.core.errors import ByokError, ConfigError, IndexInUse
from byok.core.platform.paths import find_paths
from byok.core.platform.programs import project_of
from byok.core.routing import Service
from byok.search.index.files.repository import is_other_work_tree
from byok.search.index.files.roots import OwnFolders, check_root, choose_root

T = TypeVar("T")
WorkspacesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--workspace",
        "-w",
        help="A folder; repeat for more.",
        metavar="DIR",
        autocompletion=complete_workspace,
    ),
]


def with_client(
    work: Callable[[LocalClient], Awaitable[T]], *, config: Path | None = None
) -> T:
    """Run `work` with a client of the index."""

    async def run() -> T:
        async with LocalClient(find_paths(), index_opener(config)) as client:
            return await work(client)

    return asyncio.run(run())


def ask_index(
    service: Service,
    config: Path | None,
    body: Json | None = None,
    *,
    words: str = "opening the index",
    hidden: bool = False,
) -> Json:
    """Return one answer about the index; `words` are shown meanwhile."""

    async def work(client: LocalClient) -> Json:
        with show_progress(words, hidden=hidden):
            return await client.ask(service, body or {})

    return with_client(work, config=config)


def index_opener(
    config: Path | None,
) -> Callable[[Iterable[Path]], AbstractAsyncContextManager[Ask]]:
    """Return a function that reads the settings and opens the index in this process."""

    @asynccontextmanager
    async def open_index(roots: Iterable[Path]) -> AsyncIterator[Ask]:
        from byok.server.code_endpoints import open_answers  # it loads the server

        settings, paths = load(config)
        async with open_answers(settings, paths, roots) as ask:
            yield ask

    return open_index


def resolve_parent(path: Path) -> Path:
    """Return an absolute path with links resolved in all parts but the last."""
    absolute = path.expanduser().absolute()
    return absolute.parent.resolve() / absolute.name


def folders(paths: Iterable[Path] | None) -> list[Path]:
    """Return absolute paths with links resolved; they need not exist."""
    return [path.expanduser().absolute().resolve() for path in paths or ()]


class Agent(Struct, eq=False):
    """Answers one agent's questions about the folder that it works in.

    Only one process can have the index open, but agents run in several windows. If
    another process has it open, `start` starts a daemon that answers all of them. Until
    that runs, or if it must not be started, `read_text` answers by a text search.

    `requested` are the folders that the user named; without any, the workspace or the
    project that contains the `working_folder` is searched.
    """

    client: LocalClient
    requested: Sequence[Path]
    working_folder: Path
    read_text: Callable[[str, Sequence[Path]], Awaitable[str]]
    start: Callable[[], None] = lambda: None
    _roots: list[str] | None = None

    async def refresh(self) -> None:
        """Start indexing before the first question; switch to a daemon that runs.

        Raises:
            ByokError: neither a daemon nor this process can answer.
        """
        try:
            await self.client.daemon()
            await self._scope()
        except IndexInUse:
            self.start()

    async def ask(self, service: Service, body: Json) -> Json:
        """Ask the daemon, or the index of this process.

        Raises:
            ByokError: neither can answer.
        """
        return await self.client.ask(service, body)

    async def remembers(self) -> bool:
        """Tell whether a daemon runs that remembers conversations."""
        try:
            if (daemon := await self.client.daemon()) is None:
                return False
            answer = await ask_instance(daemon, self.client.paths, "memory", {})
            return answer.get("on") is True
        except ByokError:  # the next call of a tool reports it
            return False

    async def find_roots(self, workspace: str) -> list[str]:
        """Return the workspaces to search: the named one, else that of the folder.

        Raises:
            ByokError: the named one may not be searched.
        """
        roots = await self._scope()
        if not workspace:
            return roots
        if not self.requested:
            status = await self.client.ask(Service.INDEX_STATUS, {})
            roots = [space["root"] for space in status["workspaces"]]
        return [choose_root(roots, workspace)]

    async def search_text(self, question: str, error: IndexInUse) -> str:
        """Start the daemon; until it runs, answer by a text search.

        Raises:
            IndexInUse: there is no folder to search.
        """
        self.start()
        folders = self.requested or [self._project(error)]
        return await self.read_text(question, folders)

    async def _scope(self) -> list[str]:
        """Return the workspaces to search, which the index follows from now on."""
        if self._roots is None:
            answer = await self.client.ask(Service.INDEX_STATUS, {})
            if self.requested:
                self._roots = [str(root) for root in self.requested]
            else:
                indexed = [Path(space["root"]) for space in answer["workspaces"]]
                self._roots = await self._find_workspace(indexed)
        return self._roots

    async def _find_workspace(self, indexed: Sequence[Path]) -> list[str]:
        try:
            root = workspace_of(self.working_folder, indexed, self.client.own_folders)
        except ConfigError:  # such as the home folder: the question must name a path
            return []
        if root not in indexed:
            await self.client.follow([root])
        return [str(root)]

    def _project(self, error: ByokError) -> Path:
        try:
            return check_project(
                project_of(self.working_folder), self.client.own_folders
            )
        except ConfigError:
            raise error from None


def workspace_of(folder: Path, indexed: Iterable[Path], own: OwnFolders) -> Path:
    """Return the innermost workspace that contains a folder, else its project.

    Another git work tree below a workspace is a project of its own: it is not indexed
    with the workspace.

    Raises:
        ConfigError: it is in no workspace, and cannot be one itself.
    """
    project = project_of(folder)
    containing = [root for root in indexed if folder.is_relative_to(root)]
    innermost = max(containing, key=lambda root: len(root.parts), default=None)
    if innermost is None or is_other_work_tree(str(project), innermost):
        return check_project(project, own)
    return innermost


def check_project(folder: Path, own: OwnFolders) -> Path:
    """Return a folder if it can be the project of a program started in it.

    Raises:
        ConfigError: it cannot be a workspace, or is a system folder.
    """
    system = os.environ.get("SYSTEMROOT")  # where Windows starts programs
    if system and folder.is_relative_to(system):
        raise ConfigError(f"{folder} is a system folder.")
    return check_root(folder, own)
