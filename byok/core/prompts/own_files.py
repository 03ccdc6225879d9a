"""The user's own prompts: their files read, checked and loaded.

The folder is the user's own, but its files may come from anywhere. So byok reads only
plain files of a limited size that no other user can change, and follows no link in the
folder out of it. The folder itself may be a link.
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

MAX_FILE_BYTES = 64 * 1024
_MAX_PROBLEMS = 20  # of a file
_MAX_SLOT_USES = 10  # of one slot in a file
_MAX_NAME_CHARS = 60  # of an unknown name in a message
_MAX_FILES, _MAX_NAMES = 200, 10_000  # there are fewer prompts and variants
_MAX_TOTAL_BYTES = 16 * MAX_FILE_BYTES  # of all files
_MAX_LISTED = 10


class PromptProblem(NamedTuple):
    """A problem of a prompt file; `line` is 0 if it concerns the file as a whole."""

    file: str
    line: int
    problem: str
    cure: str

    def __str__(self) -> str:
        """Return one line, with invisible characters of the file as escapes."""
        position = f"{self.file}:{self.line}" if self.line else self.file
        return escape(f"{position}: {self.problem}. {self.cure}")


def load_prompts(folder: Path) -> PromptSet:
    """Return the prompts in force: the shipped ones and those of the user's folder.

    Raises:
        ConfigError: files of the folder cannot be used; it lists the first problems.
    """
    prompts, problems = check_folder(folder)
    if problems:
        raise unusable_folder_error(folder, problems)
    return PromptSet(shipped_prompts().templates, prompts)


def unusable_folder_error(folder: Path, problems: list[PromptProblem]) -> ConfigError:
    """Return the error that lists the first problems, one on each line."""
    lines = [*map(str, problems[:_MAX_LISTED])]
    if (unlisted := len(problems) - len(lines)) > 0:
        lines.append(f"and {unlisted:,} more")
    return ConfigError(
        "\n".join(lines),
        hint=f"These are files of {folder}; `byok prompts check` lists them again.",
    )


def check_folder(folder: Path) -> tuple[dict[str, Template], list[PromptProblem]]:
    """Return the user's own prompts by name, and the problems of their folder."""
    texts, problems = read_folder(folder)
    prompts: dict[str, Template] = {}
    for name, text in texts.items():
        template = read_prompt(name, text)
        if isinstance(template, Template):
            prompts[name] = template
        else:
            problems += template
    return prompts, problems


def check_name(name: str) -> PromptProblem | None:
    """Return the problem of the name of a file without `.md`, if there is one."""
    kind, point, variant = name.partition(".")
    end = f".{variant}" if variant in VARIANTS else ""
    if name in VARIANTS:
        cure = f"Say of which prompt: {next(iter(KINDS))}.{name}, for example."
        return PromptProblem(f"{name}.md", 0, "this is a variant", cure)
    if kind not in KINDS:
        cure = _suggest(kind, {k: k + end for k in KINDS})
        return PromptProblem(f"{name}.md", 0, "no prompt has this name", cure)
    if point and variant not in VARIANTS:
        cure = _suggest(variant, {v: f"{kind}.{v}" for v in VARIANTS})
        return PromptProblem(f"{name}.md", 0, "there is no such variant", cure)
    return None


def read_prompt(name: str, text: str) -> Template | list[PromptProblem]:
    """Parse the text of a prompt; return its problems instead, if there are any."""
    file = f"{name}.md"
    try:
        template = parse_template(text)
    except TemplateError as error:
        return [PromptProblem(file, error.line, error.problem, error.cure)]
    kind = KINDS[name.partition(".")[0]]
    problems = chain(
        _unknown_names(file, template, kind), _repeated_slots(file, template)
    )
    return [*islice(problems, _MAX_PROBLEMS)] or template


def _repeated_slots(file: str, template: Template) -> Iterator[PromptProblem]:
    """Yield a problem for each slot that would make an endless text of a short one."""
    slots = [part for part in template.walk() if isinstance(part, Slot)]
    for name, times in Counter(slot.name for slot in slots).items():
        if times > _MAX_SLOT_USES:
            line = next(slot.line for slot in slots if slot.name == name)
            problem = f"{{{{{name}}}}} stands there {times:,} times"
            cure = f"Use it at most {_MAX_SLOT_USES} times."
            yield PromptProblem(file, line, problem, cure)


def _unknown_names(
    file: str, template: Template, kind: PromptKind
) -> Iterator[PromptProblem]:
    slots = _identity_map(sorted({*kind.slots, SHIPPED}))
    tools = [f"{TOOL}NAME"] if kind.tools else []
    families = [f"{FAMILY}{family}" for family in FAMILIES]
    conditions = _identity_map([*sorted(kind.conditions), *tools, *families])
    for part in template.walk():
        match part:
            case Slot(name, line, _) if name not in slots:
                problem = f"{{{{{name[:_MAX_NAME_CHARS]}}}}} is no slot"
                yield PromptProblem(file, line, problem, _suggest(name, slots))
            case Choice(name, _, line) if not _is_condition(name, kind):
                problem = f"{name[:_MAX_NAME_CHARS]} is no condition"
                yield PromptProblem(file, line, problem, _suggest(name, conditions))


def _is_condition(condition: str, kind: PromptKind) -> bool:
    if condition.startswith(TOOL):
        return kind.tools
    if condition.startswith(FAMILY):
        return {*condition.removeprefix(FAMILY).split("|")} <= {*FAMILIES}
    return condition in kind.conditions


def _suggest(name: str, spellings: Mapping[str, str]) -> str:
    """Return the cure of an unknown name; `spellings` has each known name as typed."""
    matches = difflib.get_close_matches(name[:_MAX_NAME_CHARS].lower(), spellings, 1)
    if matches:
        return f"Did you mean {spellings[matches[0]]}?"
    return f"Known are: {', '.join(spellings.values())}."


def _identity_map(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


def read_folder(folder: Path) -> tuple[dict[str, str], list[PromptProblem]]:
    """Return the texts of the user's prompts by name, and the problems of other files.

    A missing folder counts as empty.
    """
    texts: dict[str, str] = {}
    problems: list[PromptProblem] = []
    try:
        resolved = folder.resolve(strict=True)
        with os.scandir(resolved) as entries:
            names = [entry.name for entry in islice(entries, _MAX_NAMES + 1)]
        problems += _ownership_problems(resolved, folder.name)
    except FileNotFoundError as error:
        if os.path.lexists(folder):
            problems.append(_unreadable_problem(folder.name, error))
        return texts, problems
    except (OSError, RuntimeError) as error:
        return texts, [_unreadable_problem(folder.name, error)]
    files = sorted(name for name in names if not _is_temporary(name))
    if len(names) > _MAX_NAMES or len(files) > _MAX_FILES:
        problem = f"it holds more than {_MAX_FILES} files"
        cure = "Keep there only prompts of your own."
        problems.append(PromptProblem(folder.name, 0, problem, cure))
    budget = _MAX_TOTAL_BYTES
    for file in files[:_MAX_FILES]:
        text = _read(resolved, file, budget)
        if isinstance(text, PromptProblem):
            problems.append(text)
        elif text is not None:
            texts[file.removesuffix(END)] = text
            budget -= len(text)
    return texts, problems


def _is_temporary(name: str) -> bool:
    """Tell whether a file is hidden, or an editor's copy of another one."""
    return name.startswith((".", "#")) or name.endswith("~")


def _unreadable_problem(name: str, error: Exception) -> PromptProblem:
    reason = getattr(error, "strerror", None) or "its links lead round in a circle"
    return PromptProblem(name, 0, f"it cannot be read ({reason})", "Mend or remove it.")


def _ownership_problems(
    path: Path, name: str, facts: os.stat_result | None = None
) -> Iterator[PromptProblem]:
    """Yield a problem if other users can change a file or a folder."""
    facts = facts or path.stat()
    if not hasattr(os, "geteuid"):
        return  # Windows: the user's profile folder is private by its access list
    if facts.st_uid != os.geteuid():
        cure = "Replace it by a copy of your own."
        yield PromptProblem(name, 0, "it belongs to another user", cure)
    elif facts.st_mode & 0o022:
        problem = "it can be changed by other users"
        yield PromptProblem(name, 0, problem, f"Run: chmod go-w {shell_word(path)}")


def _read(folder: Path, file: str, budget: int) -> str | PromptProblem | None:
    """Return the text of a file, its problem, or None if the file is gone."""
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
        return _unreadable_problem(file, error) if os.path.lexists(path) else None
    except (OSError, RuntimeError) as error:
        return _unreadable_problem(file, error)
    if isinstance(content, PromptProblem):
        return content
    if len(content) > MAX_FILE_BYTES:
        problem = f"it is larger than {MAX_FILE_BYTES // 1024} KiB"
        return PromptProblem(file, 0, problem, "Shorten it.")
    if len(content) > budget:
        problem = f"all files are larger than {_MAX_TOTAL_BYTES // 1024} KiB together"
        return PromptProblem(file, 0, problem, "Shorten some of them.")
    return _decode(file, content)


def _read_bytes(path: Path, folder: Path) -> bytes | PromptProblem:
    """Return the first bytes of a plain file inside the folder, or its problem."""
    real = path.resolve(strict=True)
    if not real.is_relative_to(folder):
        link = "it is a link that leads out of the folder"
        return PromptProblem(path.name, 0, link, "Copy the file.")
    if not stat.S_ISREG(real.lstat().st_mode):  # opening a device may start something
        return _no_file_problem(path.name)
    descriptor = os.open(real, READ_PLAIN)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - of a descriptor
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):  # it was replaced just now
            return _no_file_problem(path.name)
        problem = next(_ownership_problems(real, path.name, facts), None)
        return problem or opened.read(MAX_FILE_BYTES + 1)


def _no_file_problem(name: str) -> PromptProblem:
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
