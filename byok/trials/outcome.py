"""What came out of a task, and of all tasks of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class WrongCall(StrEnum):
    """What is wrong with a tool call; each call counts once, as the first that fits."""

    UNKNOWN_TOOL = "unknown_tool"
    BROKEN_ARGUMENTS = "broken_arguments"
    REPEATED = "repeated"
    FAILED = "failed"


@dataclass(slots=True)
class TrialOutcome:
    """What a model did with a task; `fault` says why it is not solved, "" if it is.

    `asked` is False where the model was not asked. `steps` are the requests to the
    model, of which it answered `answers`; `printed` are the files in its texts,
    `prompt` is as in RequestRecord.
    """

    task: str
    model: str
    fault: str = ""
    asked: bool = True
    steps: int = 0
    answers: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    wrong: dict[WrongCall, int] = field(default_factory=dict)
    printed: int = 0
    seconds: float = 0.0
    prompt: str = ""
    answer: str = ""

    @property
    def is_solved(self) -> bool:
        """Whether the files and the answer are as wanted."""
        return not self.fault

    @property
    def wrong_calls(self) -> int:
        """How many calls were wrong."""
        return sum(self.wrong.values())

    def count_wrong(self, kind: WrongCall, number: int = 1) -> None:
        """Count wrong calls."""
        self.wrong[kind] = self.wrong.get(kind, 0) + number

    def as_json(self) -> dict[str, Any]:
        """Return it for a script."""
        return {
            "task": self.task,
            "solved": self.is_solved,
            "fault": self.fault,
            "asked": self.asked,
            "steps": self.steps,
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "wrong_calls": {kind.value: self.wrong.get(kind, 0) for kind in WrongCall},
            "files_printed": self.printed,
            "seconds": round(self.seconds, 1),
            "prompt": self.prompt,
            "answer": self.answer,
        }


@dataclass(frozen=True, slots=True)
class TrialRow:
    """The outcomes of one model with one folder of prompts, "" for the user's own."""

    model: str
    prompts: str
    outcomes: list[TrialOutcome]

    def total(self, name: str) -> int:
        """Return the sum of a number of the outcomes, by its name."""
        return sum(int(getattr(one, name)) for one in self.outcomes)

    @property
    def seconds(self) -> float:
        """How long all tasks took."""
        return sum(one.seconds for one in self.outcomes)

    def as_json(self) -> Mapping[str, Any]:
        """Return it for a script."""
        return {
            "model": self.model,
            "prompts": self.prompts,
            "solved": self.total("is_solved"),
            "tasks": [one.as_json() for one in self.outcomes],
        }
