"""The files of the page: a fixed set from the package, read once when it is opened."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

_FOLDER = "static"
_START = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(NamedTuple):
    """One file: its Content-Type, and its bytes."""

    kind: str
    content: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return all files by their paths below /ui/; the start page is ""."""
    found = dict(_walk(resources.files(__package__) / _FOLDER))
    return {**found, "": found[_START]}


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _walk(entry, path + "/")
        elif kind := _TYPES.get(path[path.rfind(".") :]):
            yield path, StaticFile(kind, entry.read_bytes())
