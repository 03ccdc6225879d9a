"""Finds loops in a conversation: equal calls again and again, turns that do not end.

byok keeps nothing for this: clients send the whole history with every request, and it
is read from its start. What counts is progress. A successful call that is new, or whose
result is new, ends every count of repetitions: an agent that edits and runs the tests
after each edit may do so as often as it likes. Only a call that fails with the very
same words is also counted across progress, where it takes twice as many to end a turn.

No turn is ended whose model was not told before. A turn begins with the user's words.
"""

from collections import Counter, deque
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import orjson
from msgspec import Struct

from byok.core.escapes import escape
from byok.features.loops.settings import LoopSettings

# A tool call that repeats, and what byok tells the model and the user of a loop.
#
# The note for the model follows a tool's result. It follows from the history alone:
# every later request of the conversation repeats it byte for byte, so upstreams keep
# their cache.


_LONGEST_NAME, _LONGEST_ARGUMENTS, _LONGEST_ERROR = 60, 120, 160
_CANONICAL = orjson.OPT_SORT_KEYS


class AnsweredCall(Struct, frozen=True):
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


_NEAR = 40  # calls in which equal failures are counted across progress
_AGAIN = 50  # steps after which a long turn is told again
_Told: TypeAlias = frozenset[tuple[LoopKind, bytes]]


class LoopWatch:
    """Follows a conversation, step by step; linear in time and in memory."""

    def __init__(self, limits: LoopSettings) -> None:
        self._limits = limits
        self.begin_turn()

    def begin_turn(self) -> None:
        """Reset the counts: the user has sent a message."""
        self._steps = 0
        self._known: set[tuple[bytes, bytes]] = set()  # successes of this turn
        self._failed: Counter[bytes] = Counter()  # since the last progress, by call
        self._repeated: Counter[bytes] = Counter()
        self._near: deque[tuple[bytes, bytes] | None] = deque()  # the last calls
        self._near_failed: Counter[tuple[bytes, bytes] | None] = Counter()
        self._told: set[tuple[LoopKind, bytes]] = set()

    def add_step(self, calls: Sequence[AnsweredCall]) -> Loop | None:
        """Take the calls of one answer with their results; return the worst loop."""
        if not (calls and self._limits.on):
            return None
        self._steps += 1
        told = frozenset(self._told)  # the model saw no result of a parallel call
        found = [loop for call in calls if (loop := self._judge(call, told))]
        found += self._judge_length(calls[-1])
        return max(found, key=lambda loop: (loop.ends, loop.times), default=None)

    def _judge(self, call: AnsweredCall, told: _Told) -> Loop | None:
        key, result = call.key, call.result
        self._note_near((key, result) if call.is_error else None)
        limits = self._limits
        if call.is_error:
            self._failed[key] += 1
            here, near = self._failed[key], self._near_failed[key, result]
            ends = 0 < limits.failing_end <= max(here, near // 2)
            loop = Loop(LoopKind.FAILING, max(here, near), call, ends)
            return self._weigh(loop, key, limits.failing_warn, told)
        if (key, result) not in self._known:
            self._known.add((key, result))
            self._failed.clear()
            self._repeated.clear()
        if call.name in limits.polling:
            return None
        self._repeated[key + result] += 1
        count = self._repeated[key + result]
        loop = Loop(LoopKind.REPEATED, count, call, 0 < limits.repeated_end <= count)
        return self._weigh(loop, key, limits.repeated_warn, told)

    def _weigh(self, loop: Loop, key: bytes, warn: int, told: _Told) -> Loop | None:
        """Return a loop that is to be told; it ends no turn before it was told."""
        if not warn:
            return loop if loop.ends else None
        if loop.times < warn:
            return None
        self._told.add((loop.kind, key))
        return loop if (loop.kind, key) in told else loop._replace(ends=False)

    def _note_near(self, failure: tuple[bytes, bytes] | None) -> None:
        """Take a call, a failed one as what failed how; forget what is long ago."""
        self._near.append(failure)
        self._near_failed[failure] += 1
        if len(self._near) > _NEAR:
            old = self._near.popleft()
            self._near_failed[old] -= 1
            if not self._near_failed[old]:
                del self._near_failed[old]

    def _judge_length(self, call: AnsweredCall) -> list[Loop]:
        steps, warn, end = self._steps, self._limits.steps_warn, self._limits.steps_end
        ends = 0 < end <= steps
        told = 0 < warn <= steps and (steps - warn) % _AGAIN == 0
        return [Loop(LoopKind.STEPS, steps, call, ends)] if ends or told else []
