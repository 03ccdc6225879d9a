"""Reads the files in the user's folder of prompts.

The folder is the user's own, but what lies in it may come from anywhere: only plain
files of a limited size are read that no other user can change, and no link in the
folder is followed out of it. The folder itself may be a link.
"""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from byok.escapes import shell_word
from byok.prompts.checking import LARGEST, PromptProblem, check_name
from byok.prompts.shipped import END

_MOST_FILES, _MOST_NAMES = 200, 10_000  # there are fewer prompts and variants
_MOST_BYTES = 16 * LARGEST  # of all files
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would block
)


def read_folder(folder: Path) -> tuple[dict[str, str], list[PromptProblem]]:
    """Return the texts of the user's prompts by name, and the files that cannot be.

    A folder that is not there is empty.
    """
    texts: dict[str, str] = {}
    problems: list[PromptProblem] = []
    try:
        place = folder.resolve(strict=True)
        with os.scandir(place) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES + 1)]
        problems += _others(place, folder.name)
    except FileNotFoundError as error:
        if os.path.lexists(folder):
            problems.append(_unreadable(folder.name, error))
        return texts, problems
    except (OSError, RuntimeError) as error:
        return texts, [_unreadable(folder.name, error)]
    files = sorted(name for name in names if not _is_passing(name))
    if len(names) > _MOST_NAMES or len(files) > _MOST_FILES:
        problems.append(_too_many(folder.name))
    room = _MOST_BYTES
    for file in files[:_MOST_FILES]:
        found = _read(place, file, room)
        if isinstance(found, PromptProblem):
            problems.append(found)
        elif found is not None:
            texts[file.removesuffix(END)] = found
            room -= len(found)
    return texts, problems


def _is_passing(name: str) -> bool:
    """Tell whether a file is hidden, or an editor's copy of another one."""
    return name.startswith((".", "#")) or name.endswith("~")


def _too_many(folder: str) -> PromptProblem:
    problem = f"it holds more than {_MOST_FILES} files"
    return PromptProblem(folder, 0, problem, "Keep there only prompts of your own.")


def _unreadable(name: str, error: Exception) -> PromptProblem:
    why = getattr(error, "strerror", None) or "its links lead round in a circle"
    return PromptProblem(name, 0, f"it cannot be read ({why})", "Mend or remove it.")


def _others(
    path: Path, name: str, facts: os.stat_result | None = None
) -> Iterator[PromptProblem]:
    """Give what is wrong if other users can change a file or a folder."""
    facts = facts or path.stat()
    if not hasattr(os, "geteuid"):
        return  # Windows: the user's profile folder is private by its access list
    if facts.st_uid != os.geteuid():
        cure = "Replace it by a copy of your own."
        yield PromptProblem(name, 0, "it belongs to another user", cure)
    elif facts.st_mode & 0o022:
        problem = "it can be changed by other users"
        yield PromptProblem(name, 0, problem, f"Run: chmod go-w {shell_word(path)}")


def _read(folder: Path, file: str, room: int) -> str | PromptProblem | None:
    """Return the text of a file, what is wrong with it, or None if it is gone."""
    name = file.removesuffix(END)
    if name == file:
        cure = f"Name it NAME{END}, or keep it elsewhere."
        return PromptProblem(file, 0, "it is no prompt", cure)
    if (unknown := check_name(name)) is not None:
        return unknown
    path = folder / file
    try:
        content = _read_bytes(path, folder)
    except FileNotFoundError as error:  # removed, or replaced just now
        return _unreadable(file, error) if os.path.lexists(path) else None
    except (OSError, RuntimeError) as error:
        return _unreadable(file, error)
    if isinstance(content, PromptProblem):
        return content
    if len(content) > LARGEST:
        problem = f"it is larger than {LARGEST // 1024} KiB"
        return PromptProblem(file, 0, problem, "Shorten it.")
    if len(content) > room:
        problem = f"all files are larger than {_MOST_BYTES // 1024} KiB together"
        return PromptProblem(file, 0, problem, "Shorten some of them.")
    return _decode(file, content)


def _read_bytes(path: Path, folder: Path) -> bytes | PromptProblem:
    """Return the first bytes of a plain file inside the folder, or what it is."""
    real = path.resolve(strict=True)
    if not real.is_relative_to(folder):
        link = "it is a link that leads out of the folder"
        return PromptProblem(path.name, 0, link, "Copy the file.")
    if not stat.S_ISREG(real.lstat().st_mode):  # opening a device may start something
        return _no_file(path.name)
    descriptor = os.open(real, _FLAGS)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - of a descriptor
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):  # it was replaced just now
            return _no_file(path.name)
        problem = next(_others(real, path.name, facts), None)
        return problem or opened.read(LARGEST + 1)


def _no_file(name: str) -> PromptProblem:
    return PromptProblem(name, 0, "it is no file", "Put a text file in its place.")


def _decode(file: str, content: bytes) -> str | PromptProblem:
    """Return the text with line ends as on Unix."""

    def refuse(offset: int, problem: str, cure: str) -> PromptProblem:
        line = 1 + content.count(b"\n", 0, offset)
        return PromptProblem(file, line, problem, cure)

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return refuse(error.start, "it is not UTF-8", "Save it as UTF-8.")
    if "\0" in text:
        problem = "it has a NUL character"
        return refuse(content.index(0), problem, "Save it as text, in UTF-8.")
    if not text.strip():
        cure = "Write a text, or remove it. A comment alone, <!-- none -->, is no text."
        return PromptProblem(file, 0, "it is empty", cure)
    return text.replace("\r\n", "\n").replace("\r", "\n")
