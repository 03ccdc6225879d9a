"""Write and remove the files of a service: only those that byok wrote."""

import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from byok.errors import ConfigError
from byok.platform.paths import sync_folder, write_private
from byok.service.base import ServiceFile, find_mark

_LONGEST = 64 * 1024


def read_file(path: Path) -> str | None:
    """Return the content of a file; None if there is none.

    Raises:
        ConfigError: it is a link, no plain file, or too large for one of byok's.
    """
    try:
        facts = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > _LONGEST:
        raise _foreign(path)
    with path.open("rb") as file:
        raw = file.read(_LONGEST)
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(encoding, "replace")


def read_mark(path: Path) -> str:
    """Return the mark of a file of byok's; "" if there is no file.

    Raises:
        ConfigError: the file is not byok's.
    """
    content = read_file(path)
    if content is None:
        return ""
    mark = find_mark(content)
    if not mark:
        raise _foreign(path)
    return mark


def write_files(files: Sequence[ServiceFile]) -> None:
    """Write all files, each as a whole.

    Raises:
        ConfigError: one would replace a file that is not byok's; none is written.
    """
    for file in files:
        read_mark(file.path)
    for file in files:
        write_private(file.path, file.content.encode(file.encoding))


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove the files that byok wrote, and return them.

    Raises:
        ConfigError: one is not byok's; none is removed.
    """
    ours = [path for path in paths if read_mark(path)]
    for path in ours:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    return ours


def _foreign(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} was not written by byok; it was not changed.",
        hint="Move it away, then try again.",
    )
