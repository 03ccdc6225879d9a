"""The files of a tantivy index: checksums, and leftovers of broken commits.

Each ends with a checksum. tantivy checks it only on request, which its Python binding
does not offer; a damaged file would give wrong hits, or a panic, when it is first read.
Layout: body, a footer in JSON with the CRC-32 of the body, its length, a magic number.

Only files with a name of tantivy's form are ever removed or moved, so a folder that was
named or linked by mistake keeps its files.
"""

import contextlib
import logging
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import orjson

from byok.errors import ConfigError

_log = logging.getLogger(__name__)
_FILES = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_PART = re.compile(
    rf"[0-9a-f]{{32}}\.({'|'.join(_FILES)}|[0-9]+\.del)|\.tmp[0-9A-Za-z]{{6}}"
)
_FIXED = ("meta.json", ".managed.json", ".tantivy-meta.lock", ".tantivy-writer.lock")
_AT_ONCE = 2**20
_TRAILER = 8


def find_damaged(folder: Path) -> str:
    """Return the name of the first damaged file of an index, "" if none."""
    names = _files_of_commit(folder)
    if names is None:
        return "meta.json"
    return next((name for name in names if not _is_whole(folder / name)), "")


def check_folder(folder: Path) -> None:
    """Refuse a folder that may not be byok's own; a missing one is accepted.

    Raises:
        ConfigError: it is a link, a mount, not a folder, or holds other files and no
            index.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or folder.is_mount():
        raise _refusal(
            folder, "is a link or a disk of its own", "Put a plain folder in its place"
        )
    if not folder.is_dir():
        raise _refusal(folder, "is no folder", "Move it away")
    foreign = sorted(path.name for path in folder.iterdir() if not _is_own(path))
    if foreign and _files_of_commit(folder) is None:
        raise _refusal(
            folder, f"holds files that are not byok's ({foreign[0]!r})", "Move it away"
        )


def _refusal(folder: Path, why: str, cure: str) -> ConfigError:
    return ConfigError(
        f"{folder} {why}; byok keeps its index there and has left it as it is.",
        hint=f"{cure}, or let BYOK_HOME name a folder of byok's own.",
        status=422,
    )


def _is_own(path: Path) -> bool:
    """Tell whether a file bears a name that tantivy gives."""
    named = path.name in _FIXED or _PART.fullmatch(path.name)
    return bool(named) and path.is_file() and not path.is_symlink()


def own_files(folder: Path) -> Iterator[Path]:
    """Give the files of an index; others may lie beside them."""
    if folder.is_dir():
        yield from [path for path in folder.iterdir() if _is_own(path)]


def size_of(folder: Path) -> int:
    """Return how many bytes the files of an index have; some may go meanwhile."""
    size = 0
    for path in own_files(folder):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def remove_leftovers(folder: Path) -> None:
    """Remove the files of an unfinished commit; the caller holds the writer's lock.

    After a kill tantivy uses the numbers in names of `.del` files again, and cannot
    write a file that exists: every later commit would fail.
    """
    names = _files_of_commit(folder)
    if names is None:
        return
    for path in own_files(folder):
        if path.name not in (*_FIXED, *names):
            try:
                path.unlink()
            except OSError as error:  # Windows, where a search has it open
                _log.info("%s is left over: %s", path, error)


def move_files(folder: Path, to: Path) -> None:
    """Move the files of an index, in place of those that lie there."""
    check_folder(to)
    for path in own_files(to):
        path.unlink()
    to.mkdir(mode=0o700, exist_ok=True)
    for path in own_files(folder):
        path.rename(to / path.name)


def _files_of_commit(folder: Path) -> list[str] | None:
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
