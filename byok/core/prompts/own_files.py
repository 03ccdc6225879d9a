"""The user's own prompts: their files read, checked and loaded.

The folder is the user's own, but what lies in it may come from anywhere: only plain
files of a limited size are read that no other user can change, and no link in the
folder is followed out of it. The folder itself may be a link.
"""

import difflib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from byok.core.errors import ConfigError
from byok.core.escapes import escape, shell_word
from byok.core.platform.paths import READ_PLAIN
from byok.core.prompts.prompt_set import (
    END,
    FAMILIES,
    FAMILY,
    KINDS,
    SHIPPED,
    TOOL,
    VARIANTS,
    PromptKind,
    PromptSet,
    shipped_prompts,
)
from byok.core.prompts.template import (
    Choice,
    Slot,
    Template,
    TemplateError,
    parse_template,
)

# Says what is wrong with the user's own prompts: file, line, and what to do.


LARGEST = 64 * 1024  # bytes of a file
_MOST_PROBLEMS = 20  # of a file
_MOST_TIMES = 10  # that a slot may stand in a file
_LONGEST = 60  # characters of a name that are told


class PromptProblem(NamedTuple):
    """What is wrong; `line` is 0 where it is the file as a whole."""

    file: str
    line: int
    problem: str
    cure: str

    def __str__(self) -> str:
        """Return one line; what of a file would not be seen is escaped."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return escape(f"{place}: {self.problem}. {self.cure}")


def check_name(name: str) -> PromptProblem | None:
    """Check the name of a file without `.md`."""
    kind, point, variant = name.partition(".")
    end = f".{variant}" if variant in VARIANTS else ""
    if name in VARIANTS:
        cure = f"Say of which prompt: {next(iter(KINDS))}.{name}, for example."
        return PromptProblem(f"{name}.md", 0, "this is a variant", cure)
    if kind not in KINDS:
        cure = _suggest(kind, {one: one + end for one in KINDS})
        return PromptProblem(f"{name}.md", 0, "no prompt has this name", cure)
    if point and variant not in VARIANTS:
        cure = _suggest(variant, {one: f"{kind}.{one}" for one in VARIANTS})
        return PromptProblem(f"{name}.md", 0, "there is no such variant", cure)
    return None


def read_prompt(name: str, text: str) -> Template | list[PromptProblem]:
    """Parse the text of a prompt; return what is wrong instead, if anything is."""
    file = f"{name}.md"
    try:
        template = parse_template(text)
    except TemplateError as error:
        return [PromptProblem(file, error.line, error.problem, error.cure)]
    kind = KINDS[name.partition(".")[0]]
    found = chain(_unknown(file, template, kind), _endless_slots(file, template))
    return [*islice(found, _MOST_PROBLEMS)] or template


def _endless_slots(file: str, template: Template) -> Iterator[PromptProblem]:
    """Give each slot that would make an endless text of a short one."""
    slots = [part for part in template.walk() if isinstance(part, Slot)]
    for name, times in Counter(slot.name for slot in slots).items():
        if times > _MOST_TIMES:
            line = next(slot.line for slot in slots if slot.name == name)
            problem = f"{{{{{name}}}}} stands there {times:,} times"
            cure = f"Use it at most {_MOST_TIMES} times."
            yield PromptProblem(file, line, problem, cure)


def _unknown(
    file: str, template: Template, kind: PromptKind
) -> Iterator[PromptProblem]:
    slots = _same(sorted({*kind.slots, SHIPPED}))
    tools = [f"{TOOL}NAME"] if kind.tools else []
    families = [f"{FAMILY}{family}" for family in FAMILIES]
    conditions = _same([*sorted(kind.conditions), *tools, *families])
    for part in template.walk():
        match part:
            case Slot(name, line, _) if name not in slots:
                problem = f"{{{{{name[:_LONGEST]}}}}} is no slot"
                yield PromptProblem(file, line, problem, _suggest(name, slots))
            case Choice(name, _, line) if not _is_condition(name, kind):
                problem = f"{name[:_LONGEST]} is no condition"
                yield PromptProblem(file, line, problem, _suggest(name, conditions))


def _is_condition(condition: str, kind: PromptKind) -> bool:
    if condition.startswith(TOOL):
        return kind.tools
    if condition.startswith(FAMILY):
        return {*condition.removeprefix(FAMILY).split("|")} <= {*FAMILIES}
    return condition in kind.conditions


def _suggest(name: str, known: Mapping[str, str]) -> str:
    """Return the cure of a name; `known` tells for each name how it is typed."""
    near = difflib.get_close_matches(name[:_LONGEST].lower(), known, 1)
    if near:
        return f"Did you mean {known[near[0]]}?"
    return f"Known are: {', '.join(known.values())}."


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


_MOST_FILES, _MOST_NAMES = 200, 10_000  # there are fewer prompts and variants
_MOST_BYTES = 16 * LARGEST  # of all files


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
    descriptor = os.open(real, READ_PLAIN)
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


# Loads the prompts in force: the shipped ones, and the user's own.


_MOST_TOLD = 10


def load_prompts(folder: Path) -> PromptSet:
    """Return the prompts in force; a folder that is not there is empty.

    Raises:
        ConfigError: a file of the folder cannot be used; the first ones are named.
    """
    own, problems = check_folder(folder)
    if problems:
        raise broken_folder(folder, problems)
    return PromptSet(shipped_prompts().templates, own)


def broken_folder(folder: Path, problems: list[PromptProblem]) -> ConfigError:
    """Return the error that tells the first problems, a line each."""
    told = [*map(str, problems[:_MOST_TOLD])]
    if (more := len(problems) - len(told)) > 0:
        told.append(f"and {more:,} more")
    return ConfigError(
        "\n".join(told),
        hint=f"These are files of {folder}; `byok prompts check` lists them again.",
    )


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
