"""What members call the same repository, wherever each has cloned it."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from byok.index.workspace.git_history import origin

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
