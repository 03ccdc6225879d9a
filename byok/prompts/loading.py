"""Reads the prompts in the user's folder.

The folder is the user's own, but what lies in it may come from anywhere: only plain
files of a limited size are read, and no link is followed out of the folder.
"""

import os
import stat
from pathlib import Path

from byok.errors import ConfigError
from byok.prompts.checking import LARGEST, PromptProblem, check_name, read_prompt
from byok.prompts.prompt_set import PromptSet
from byok.prompts.shipped import END, shipped_prompts
from byok.prompts.template import Template

_MOST_FILES, _MOST_TOLD = 200, 10


def load_prompts(folder: Path) -> PromptSet:
    """Return the prompts in force; a folder that is not there is empty.

    Raises:
        ConfigError: a file of the folder cannot be used; all of them are named.
    """
    own, problems = check_folder(folder)
    if problems:
        raise ConfigError(
            "\n".join(map(str, problems[:_MOST_TOLD])),
            hint=f"These are files of {folder}; `byok prompts check` lists them again.",
        )
    return PromptSet(shipped_prompts().templates, own)


def check_folder(folder: Path) -> tuple[dict[str, Template], list[PromptProblem]]:
    """Return the user's own prompts by name, and what is wrong in their folder."""
    texts, problems = read_folder(folder)
    own: dict[str, Template] = {}
    for name, text in texts.items():
        read = read_prompt(name, text)
        if isinstance(read, Template):
            own[name] = read
        else:
            problems += read
    return own, problems


def read_folder(folder: Path) -> tuple[dict[str, str], list[PromptProblem]]:
    """Return the texts of the user's prompts by name, and the files that cannot be."""
    texts: dict[str, str] = {}
    problems: list[PromptProblem] = []
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except FileNotFoundError:
        return texts, problems
    except OSError as error:
        problem = f"the folder cannot be read ({error.strerror})"
        return texts, [PromptProblem(str(folder), 0, problem, "Mend its permissions.")]
    for file in [name for name in names if not name.startswith(".")][:_MOST_FILES]:
        name = file.removesuffix(END)
        if name == file:
            cure = f"Name it NAME{END}, or keep it elsewhere."
            problems.append(PromptProblem(file, 0, "it is no prompt", cure))
        elif (unknown := check_name(name)) is not None:
            problems.append(unknown)
        else:
            found = _read(folder / file)
            if isinstance(found, PromptProblem):
                problems.append(found)
            else:
                texts[name] = found
    return texts, problems


def _read(path: Path) -> str | PromptProblem:
    def refuse(problem: str, cure: str) -> PromptProblem:
        return PromptProblem(path.name, 0, problem, cure)

    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(path.parent.resolve()):
            return refuse("it is a link that leads out of the folder", "Copy the file.")
        if not stat.S_ISREG(real.stat().st_mode):
            return refuse("it is no file", "Put a text file in its place.")
        with open(os.open(real, flags), "rb") as file:  # noqa: PTH123 - of a descriptor
            content = file.read(LARGEST + 1)
    except OSError as error:
        return refuse(f"it cannot be read ({error.strerror})", "Mend or remove it.")
    if len(content) > LARGEST:
        return refuse(f"it is larger than {LARGEST // 1024} KiB", "Shorten it.")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        return PromptProblem(path.name, line, "it is not UTF-8", "Save it as UTF-8.")
