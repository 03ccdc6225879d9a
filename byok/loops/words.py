"""What byok tells the model and the user about a loop.

The note for the model follows a tool's result. It follows from the history
alone: every later request of the conversation repeats it byte for byte, so upstreams
keep their cache.
"""

from enum import StrEnum
from typing import NamedTuple

from byok.loops.calls import AnsweredCall


class LoopKind(StrEnum):
    """What goes on for too long."""

    FAILING = "failing"
    REPEATED = "repeated"
    STEPS = "steps"


class Loop(NamedTuple):
    """A turn in a loop: equal calls, or too many steps.

    `times` counts those like `call`, or the steps; `ends`: it is not to go on.
    """

    kind: LoopKind
    times: int
    call: AnsweredCall
    ends: bool

    @property
    def fact(self) -> str:
        """Kind and number, for the log."""
        return f"{'ended' if self.ends else 'warned'}-{self.kind}-{self.times}"

    @property
    def for_model(self) -> str:
        """A sentence for the model."""
        match self.kind:
            case LoopKind.FAILING:
                said = (
                    f"{self.call.shown} has failed {self.times} times in this turn, "
                    f'last with "{self.call.shown_error}". The same call will fail '
                    "again: change its arguments, take another way, or tell the user "
                    "what is in the way."
                )
            case LoopKind.REPEATED:
                said = (
                    f"{self.call.shown} has now given the same result {self.times} "
                    "times, and nothing new came in between. Use what it gave, take "
                    "another way, or answer the user."
                )
            case LoopKind.STEPS:
                said = (
                    f"this turn has {self.times} steps so far. Finish what matters, or "
                    "tell the user what is done and what is left."
                )
        return f"\n\n[Note from byok: {said}]"

    @property
    def for_user(self) -> str:
        """Why the turn ended, and what to do; without arguments and results."""
        name = self.call.shown_name
        match self.kind:
            case LoopKind.FAILING:
                why = f"{name} failed {self.times} times with the same arguments"
            case LoopKind.REPEATED:
                why = f"{name} gave the same result {self.times} times"
            case LoopKind.STEPS:
                why = f"it had {self.times} steps"
        return (
            f"byok ended this turn because the model went round in circles: {why}. "
            "Tell it what to do differently, or to go on: the count begins anew. "
            "The limits are under [loops] in the settings."
        )
