"""Finds loops in a conversation: calls that repeat, turns that do not end.

byok stores nothing for this: clients send the whole history with every request, and it
is read from its start. A successful call that is new, or whose result is new, is
progress and resets every count of repetitions: an agent that edits and runs the tests
after each edit may do so as often as it likes. Only a call that fails with the very
same text is also counted across progress, where it takes twice as many to end a turn.

A turn is ended only after its model was warned. A turn begins with a user's message.

The note for the model follows a tool's result. It depends only on the history before
it: every later request of the conversation repeats it byte for byte, so upstreams keep
their cache.
"""

from collections import Counter, deque
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import orjson
from msgspec import Struct

from byok.core.escapes import escape
from byok.features.settings import LoopSettings

_MAX_NAME_CHARS, _MAX_ARGUMENT_CHARS, _MAX_ERROR_CHARS = 60, 120, 160
_RECENT_CALLS = 40  # in which equal failures are counted across progress
_WARN_INTERVAL = 50  # steps after which the model of a long turn is warned again
_Warned: TypeAlias = frozenset[tuple["LoopKind", bytes]]


class AnsweredCall(Struct, frozen=True):
    """A call of the model, and its result.

    `arguments` is the JSON text of an object, `content` the text of the result.
    """

    name: str
    arguments: str
    content: str
    is_error: bool = False

    @property
    def key(self) -> bytes:
        """Equal for the same tool and arguments, in any order and spacing."""
        return _digest(self.name, _canonical(self.arguments))

    @property
    def result(self) -> bytes:
        """Equal for the same text of a result."""
        return _digest("error" if self.is_error else "", self.content)

    @property
    def summary(self) -> str:
        """The tool and the start of its arguments, on one line."""
        arguments = _one_line(self.arguments, _MAX_ARGUMENT_CHARS)
        return f"{self.short_name} with {arguments}"

    @property
    def short_name(self) -> str:
        """The name of the tool, on one line."""
        return _one_line(self.name, _MAX_NAME_CHARS)

    @property
    def short_error(self) -> str:
        """The start of the result, on one line."""
        return _one_line(self.content.strip(), _MAX_ERROR_CHARS) or "no result"


class LoopKind(StrEnum):
    """The kind of a loop."""

    FAILING = "failing"
    REPEATED = "repeated"
    STEPS = "steps"


class Loop(NamedTuple):
    """A turn in a loop: equal calls, or too many steps.

    `times` is the number of calls that equal `call`, or of steps; `ends`: the turn must
    end.
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
        """The note for the model."""
        match self.kind:
            case LoopKind.FAILING:
                text = (
                    f"{self.call.summary} has failed {self.times} times in this turn, "
                    f'last with "{self.call.short_error}". The same call will fail '
                    "again: change its arguments, take another way, or tell the user "
                    "what is in the way."
                )
            case LoopKind.REPEATED:
                text = (
                    f"{self.call.summary} has now given the same result {self.times} "
                    "times, and nothing new came in between. Use what it gave, take "
                    "another way, or answer the user."
                )
            case LoopKind.STEPS:
                text = (
                    f"this turn has {self.times} steps so far. Finish what matters, or "
                    "tell the user what is done and what is left."
                )
        return f"\n\n[Note from byok: {text}]"

    @property
    def for_user(self) -> str:
        """Why the turn ended, and what to do; without arguments and results."""
        name = self.call.short_name
        match self.kind:
            case LoopKind.FAILING:
                reason = f"{name} failed {self.times} times with the same arguments"
            case LoopKind.REPEATED:
                reason = f"{name} gave the same result {self.times} times"
            case LoopKind.STEPS:
                reason = f"it had {self.times} steps"
        return (
            f"byok ended this turn because the model went round in circles: {reason}. "
            "Tell it what to do differently, or to go on: the count begins anew. "
            "The limits are under [loops] in the settings."
        )


def _canonical(arguments: str) -> str:
    """Return the same text for equal values, and a text that is no JSON unchanged."""
    try:
        value = orjson.loads(arguments)
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (ValueError, TypeError):  # no JSON, nested too deeply, half an emoji
        return arguments


def _digest(kind: str, text: str) -> bytes:
    data = f"{len(kind)} {kind}{text}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=12).digest()


def _one_line(text: str, longest: int) -> str:
    """Return the start of an untrusted text on one line, with all signs visible."""
    line = escape(" ".join(text[: 4 * longest].split()))
    return line if len(line) <= longest else f"{line[:longest]}…"


class LoopWatch:
    """Follows a conversation, step by step; linear in time and in memory."""

    def __init__(self, limits: LoopSettings) -> None:
        self._limits = limits
        self.begin_turn()

    def begin_turn(self) -> None:
        """Reset the counts: the user has sent a message."""
        self._steps = 0
        self._succeeded: set[tuple[bytes, bytes]] = set()  # calls and results
        self._failed: Counter[bytes] = Counter()  # since the last progress, by call
        self._repeated: Counter[bytes] = Counter()
        self._recent: deque[tuple[bytes, bytes] | None] = deque()
        self._recent_failed: Counter[tuple[bytes, bytes] | None] = Counter()
        self._warned: set[tuple[LoopKind, bytes]] = set()

    def add_step(self, calls: Sequence[AnsweredCall]) -> Loop | None:
        """Add the calls of one answer with their results; return the worst loop."""
        if not (calls and self._limits.on):
            return None
        self._steps += 1
        # A note about a parallel call was no warning: the model had not seen it yet.
        warned = frozenset(self._warned)
        loops = [loop for call in calls if (loop := self._check_call(call, warned))]
        loops += self._check_length(calls[-1])
        return max(loops, key=lambda loop: (loop.ends, loop.times), default=None)

    def _check_call(self, call: AnsweredCall, warned: _Warned) -> Loop | None:
        key, result = call.key, call.result
        self._add_recent((key, result) if call.is_error else None)
        limits = self._limits
        if call.is_error:
            self._failed[key] += 1
            count, recent = self._failed[key], self._recent_failed[key, result]
            ends = 0 < limits.failing_end <= max(count, recent // 2)
            loop = Loop(LoopKind.FAILING, max(count, recent), call, ends)
            return self._report(loop, key, limits.failing_warn, warned)
        if (key, result) not in self._succeeded:
            self._succeeded.add((key, result))
            self._failed.clear()
            self._repeated.clear()
        if call.name in limits.polling:
            return None
        self._repeated[key + result] += 1
        count = self._repeated[key + result]
        loop = Loop(LoopKind.REPEATED, count, call, 0 < limits.repeated_end <= count)
        return self._report(loop, key, limits.repeated_warn, warned)

    def _report(
        self, loop: Loop, key: bytes, warn: int, warned: _Warned
    ) -> Loop | None:
        """Return the loop if it must be reported; it ends no turn before a warning."""
        if not warn:
            return loop if loop.ends else None
        if loop.times < warn:
            return None
        self._warned.add((loop.kind, key))
        return loop if (loop.kind, key) in warned else loop._replace(ends=False)

    def _add_recent(self, failure: tuple[bytes, bytes] | None) -> None:
        """Add a call, None for a successful one; drop the oldest of too many."""
        self._recent.append(failure)
        self._recent_failed[failure] += 1
        if len(self._recent) > _RECENT_CALLS:
            oldest = self._recent.popleft()
            self._recent_failed[oldest] -= 1
            if not self._recent_failed[oldest]:
                del self._recent_failed[oldest]

    def _check_length(self, call: AnsweredCall) -> list[Loop]:
        steps, warn, end = self._steps, self._limits.steps_warn, self._limits.steps_end
        ends = 0 < end <= steps
        warns = 0 < warn <= steps and (steps - warn) % _WARN_INTERVAL == 0
        return [Loop(LoopKind.STEPS, steps, call, ends)] if ends or warns else []
