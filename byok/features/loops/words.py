"""A tool call that repeats, and what byok tells the model and the user of a loop.

The note for the model follows a tool's result. It follows from the history
alone: every later request of the conversation repeats it byte for byte, so upstreams
keep their cache.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

import orjson

from byok.escapes import escape

_LONGEST_NAME, _LONGEST_ARGUMENTS, _LONGEST_ERROR = 60, 120, 160
_CANONICAL = orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of the model, and what the client says became of it.

    `arguments` is the JSON text of an object, `content` the tool's words.
    """

    name: str
    arguments: str
    content: str
    is_error: bool = False

    @property
    def key(self) -> bytes:
        """Equal for the same tool with the same arguments, in any order and spacing."""
        return _digest(self.name, _canonical(self.arguments))

    @property
    def result(self) -> bytes:
        """Equal for the same words of a tool."""
        return _digest("error" if self.is_error else "", self.content)

    @property
    def shown(self) -> str:
        """The tool and the start of its arguments, on one line."""
        arguments = _line(self.arguments, _LONGEST_ARGUMENTS)
        return f"{self.shown_name} with {arguments}"

    @property
    def shown_name(self) -> str:
        """The name of the tool, on one line."""
        return _line(self.name, _LONGEST_NAME)

    @property
    def shown_error(self) -> str:
        """The first words of the result, on one line."""
        return _line(self.content.strip(), _LONGEST_ERROR) or "no result"


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


def _canonical(arguments: str) -> str:
    """Return one text for equal values; a text that is no JSON stands for itself."""
    try:
        value = orjson.loads(arguments)
        return orjson.dumps(value, option=_CANONICAL).decode()
    except (ValueError, TypeError):  # no JSON, nested too deeply, half an emoji
        return arguments


def _digest(kind: str, text: str) -> bytes:
    data = f"{len(kind)} {kind}{text}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=12).digest()


def _line(text: str, longest: int) -> str:
    """Return the start of a stranger's text on one line, in which all can be seen."""
    line = escape(" ".join(text[: 4 * longest].split()))
    return line if len(line) <= longest else f"{line[:longest]}…"
