"""Shows a trial of models: a line for each task that ended, and the table."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from byok.cli.output import count_noun, say, say_table, tell
from byok.escapes import escape

if TYPE_CHECKING:
    from rich.status import Status

    from byok.trials.outcome import TrialOutcome, TrialRow
    from byok.trials.tasks import TrialTask

_COLUMNS = ("steps", "tokens in", "tokens out", "wrong calls", "files printed")


class TrialProgress(AbstractContextManager["TrialProgress"]):
    """Tells on stderr what is being done, on a terminal with a line that moves."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._row: TrialRow | None = None
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def begin_row(self, row: "TrialRow") -> None:
        """Begin with a model, whose outcomes `end` adds to the row."""
        self._row = row
        self._tell(f"{row.model}{f' with {row.prompts}' if row.prompts else ''}")

    def begin(self, task: "TrialTask") -> None:
        """Begin with a task."""
        if self._status is not None and self._row is not None:
            from rich.text import Text

            place = f"{len(self._row.outcomes) + 1} of {self._tasks}"
            self._status.update(Text(escape(f"{place}: {task.about}")))

    def end(self, outcome: "TrialOutcome") -> None:
        """Note the outcome of a task."""
        if self._row is not None:
            self._row.outcomes.append(outcome)
            place = f"{len(self._row.outcomes)}/{self._tasks}"
            self._tell(f"  {place} {describe(outcome)}")

    def _tell(self, line: str) -> None:
        if self._status is None:
            tell(line)
            return
        from rich.text import Text

        self._status.console.print(Text(escape(line)))


def describe(outcome: "TrialOutcome") -> str:
    """Return an outcome as one line."""
    if not outcome.asked:
        return f"{outcome.task}: {outcome.fault}"
    how = "solved" if outcome.is_solved else f"not solved: {outcome.fault}"
    cost = f"{count_noun(outcome.steps, 'step')}, {outcome.seconds:.0f} s"
    return f"{outcome.task}: {how} ({cost})"


def say_rows(rows: "Sequence[TrialRow]", *, with_prompts: bool) -> None:
    """Print the table, and why tasks were not solved."""
    names = ["model", *(["prompts"] if with_prompts else []), "solved"]
    say_table(
        *names, *_COLUMNS, "seconds", rows=(_cells(r, with_prompts) for r in rows)
    )
    for row in rows:
        left = [one for one in row.outcomes if not one.is_solved]
        if left:
            say()
            said = f" with {row.prompts}" if with_prompts else ""
            say(f"{row.model}{said} did not solve:")
        for one in left:
            say(f"  {one.task}: {one.fault}")


def _cells(row: "TrialRow", with_prompts: bool) -> tuple[str, ...]:
    return (
        row.model,
        *([row.prompts] if with_prompts else []),
        f"{row.total('is_solved')} of {len(row.outcomes)}",
        f"{row.total('steps'):,}",
        f"{row.total('input_tokens'):,}",
        f"{row.total('output_tokens'):,}",
        _wrong_calls(row),
        f"{row.total('printed'):,}",
        f"{row.seconds:.0f}",
    )


def _wrong_calls(row: "TrialRow") -> str:
    """Return the number of wrong calls, and of each kind."""
    total = row.total("wrong_calls")
    return f"{total} ({', '.join(_kinds(row))})" if total else "0"


def _kinds(row: "TrialRow") -> Iterator[str]:
    kinds = dict.fromkeys(kind for one in row.outcomes for kind in one.wrong)
    for kind in sorted(kinds):
        number = sum(one.wrong.get(kind, 0) for one in row.outcomes)
        yield f"{number} {kind.value.replace('_', ' ')}"
