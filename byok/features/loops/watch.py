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
from typing import TypeAlias

from byok.features.loops.settings import LoopSettings
from byok.features.loops.words import AnsweredCall, Loop, LoopKind

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
