"""The files of a tantivy index: whether they are whole, and which are left over.

Each ends with a checksum. tantivy looks at it only when asked, which its Python binding
cannot do; a damaged file would give wrong hits, or a panic, whenever it is first read.
Layout: body, a footer in JSON with the CRC-32 of the body, its length, a magic number.
"""

import logging
import os
import zlib
from pathlib import Path

import orjson

_log = logging.getLogger(__name__)
_FILES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_AT_ONCE = 2**20
_TRAILER = 8


def damaged(folder: Path) -> str:
    """Return the name of the first file of an index that is not whole, "" if none."""
    names = _committed(folder)
    if names is None:
        return "meta.json"
    return next((name for name in names if not _is_whole(folder / name)), "")


def remove_leftovers(folder: Path) -> None:
    """Remove what a commit left that broke off; only for who holds the writer's lock.

    The numbers in names of `.del` files come again after a kill, and tantivy cannot
    write a file that exists: every later commit would fail.
    """
    names = _committed(folder)
    if names is None:
        return
    keep = {"meta.json", *names}
    for path in folder.iterdir():
        hidden = path.name.startswith(".") and not path.name.startswith(".tmp")
        if path.name not in keep and not hidden:
            try:
                path.unlink()
            except OSError as error:  # Windows, where a search has it open
                _log.info("%s is left over: %s", path, error)


def _committed(folder: Path) -> list[str] | None:
    """Return the files that the last commit names, None if that cannot be read."""
    try:
        meta = orjson.loads((folder / "meta.json").read_bytes())
        return [name for segment in meta["segments"] for name in _names(segment)]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _names(segment: dict[str, object]) -> list[str]:
    stem = str(segment["segment_id"]).replace("-", "")
    names = [f"{stem}.{end}" for end in _FILES]
    deletes = segment["deletes"]
    if isinstance(deletes, dict):
        names.append(f"{stem}.{deletes['opstamp']}.del")
    return names


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(-_TRAILER, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(size - length)
            wanted = orjson.loads(file.read(length))["crc"]
            file.seek(0)
            left, crc = size - length, 0
            while left > 0 and (some := file.read(min(left, _AT_ONCE))):
                left -= len(some)
                crc = zlib.crc32(some, crc)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(crc == wanted)
