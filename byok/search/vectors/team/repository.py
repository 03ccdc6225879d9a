"""What members of a team call the same repository, and a blob's repositories."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from byok.search.index.engine import ContextEngine
from byok.search.index.workspace.git_history import origin

_LONGEST = 500
_SCP = re.compile(r"(?:[^@/:\s]+@)?([^@/:\s]{2,}):(?!//)/*(\S+)")  # [user@]host:path


def repository_name(address: str) -> str:
    """Return host and path of a repository's address, such as host/owner/name.

    The same for each way to clone it: users, passwords, ports, `.git` and letter case
    do not count. "" for what is no address of another machine, such as a folder.
    """
    address = address.strip()
    if len(address) > _LONGEST or not address.isprintable():
        return ""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme not in ("http", "https", "ssh", "git", "git+ssh"):
            return ""
    elif match := _SCP.fullmatch(address):
        host, path = match.groups()
    else:
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}".lower() if host and path else ""


def repository_name_of(root: Path) -> str:
    """Return the name of the repository that a folder is in, "" if it has none.

    Runs git for a few milliseconds.
    """
    return repository_name(origin(root))


def repository_names(roots: Iterable[Path]) -> list[str]:
    """Return the names of the repositories that these folders are in, each once."""
    names = map(repository_name_of, roots)
    return [*dict.fromkeys(name for name in names if name)]


# Names the repositories that a blob belongs to, for a team's index.


_SECONDS = 30.0


class Repositories:
    """The repositories of the workspaces; git is asked once for each of them.

    `names_of` returns the names of the repositories that folders are in; it blocks.
    """

    def __init__(
        self,
        engine: ContextEngine,
        names_of: Callable[[Iterable[Path]], Sequence[str]] = repository_names,
    ) -> None:
        self._engine = engine
        self._names_of = names_of
        self._names: dict[int, Sequence[str]] = {}  # by workspace

    async def follow(self) -> None:
        """Learn the names of all workspaces, and of new ones, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_SECONDS)

    async def look(self) -> None:
        """Learn the names of workspaces that are new."""
        for space in self._engine.workspaces:
            if space.id not in self._names:
                names = await asyncio.to_thread(self._names_of, [space.root])
                self._names[space.id] = names

    def of_blob(self, blob_id: int) -> Sequence[str]:
        """Return the names for a blob, each once; none if it is in no repository."""
        return self.of_blobs([blob_id])

    def of_blobs(self, blob_ids: Collection[int]) -> Sequence[str]:
        """Return the names for some blobs, each once."""
        names = (
            name
            for space in self._engine.workspaces
            if not space.ids().isdisjoint(blob_ids)
            for name in self._names.get(space.id, ())
        )
        return [*dict.fromkeys(names)]
