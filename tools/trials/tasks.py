"""The tasks: files of a small repository, a question, and the correct results.

They are TOML files in `tasks/`; the name of a file is that of its task.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from byok.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TrialTask:
    """One task.

    Attributes:
        name: the name of the task.
        about: what the task shows, in one line.
        question: what the user asks for.
        before: the texts of the files by their paths.
        wanted: by path, the correct texts afterwards, any of which is accepted. All
            other files must stay as they are.
        answer: the last answer must contain one text of each group; upper and lower
            case are equal.
    """

    name: str
    about: str
    question: str
    before: Mapping[str, str]
    wanted: Mapping[str, tuple[str, ...]]
    answer: tuple[tuple[str, ...], ...] = ()


@cache
def all_tasks() -> tuple[TrialTask, ...]:
    """Return the tasks, sorted by name."""
    files = sorted((Path(__file__).parent / "tasks").glob("*.toml"))
    return tuple(_read_task(file.stem, file.read_text("utf-8")) for file in files)


def choose_tasks(names: Iterable[str]) -> tuple[TrialTask, ...]:
    """Return the tasks of these names, without duplicates; all tasks without names.

    Raises:
        ConfigError: there is no such task.
    """
    tasks = {task.name: task for task in all_tasks()}
    selected = [*dict.fromkeys(names)] or [*tasks]
    if unknown := next((name for name in selected if name not in tasks), None):
        raise ConfigError(
            f"There is no task {unknown[:40]!r}.", hint=f"Tasks: {', '.join(tasks)}."
        )
    return tuple(tasks[name] for name in selected)


def _read_task(name: str, text: str) -> TrialTask:
    """Read a task from TOML; the files are byok's own, so they are not validated."""
    row: dict[str, Any] = tomllib.loads(text)
    files: list[dict[str, Any]] = row["file"]
    return TrialTask(
        name,
        row["about"],
        " ".join(row["question"].split()),
        {f["path"]: f["before"] for f in files if "before" in f},
        {f["path"]: tuple(f["after"]) for f in files if "after" in f},
        tuple(tuple(group) for group in row.get("answer", ())),
    )
