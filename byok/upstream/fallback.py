"""Fallback: where the chosen model cannot answer, others do that the user named.

Another model is asked only while no more than thoughts was shown, and only for failures
that another upstream need not have: one that cannot be reached, is overloaded, at a
limit, without a valid key or the model, has too small a window, refuses to answer, or
calls a tool wrongly. What is wrong with
the request itself would be refused elsewhere too.

Where all of them fail, and one of them only for a while, that one is waited for, as if
it stood alone: a list of models must not make an upstream less patient.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.events import Notice
from byok.core.record import current_record
from byok.core.routing import Purpose, split_id
from byok.upstream.base import Destination, Plan, Recovery
from byok.upstream.demo import RefusingUpstream
from byok.upstream.reasons import reason_of
from byok.upstream.retry import passes
from byok.upstream.router import Router

# Which model answers the rest of a turn that fell back to another one.
#
# Its prompt is cached there. The user's next message goes to the chosen model again,
# unless that one named a later time, or was too slow to ask it once more.


_MAX_REMEMBERED = 1000
_REST_SECONDS = 3600.0  # without a request; no cache is kept for longer
_SLOW_REST = 300.0  # of a model that did not answer in time: asking it costs minutes
_MINUTE = 60.0  # that requests without a conversation stay elsewhere

Topic: TypeAlias = tuple[Purpose, str, str]  # the purpose, conversation, chosen model


class FallbackMemory:
    """Which model a conversation stays with; kept while the settings change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept = BoundedMap[Topic, tuple[str, float]](_MAX_REMEMBERED)
        self._rests = BoundedMap[str, float](_MAX_REMEMBERED)  # of models, until when

    def find(self, topic: Topic) -> str:
        """Return the id of the model that a conversation stays with, or ""."""
        model_id, until = self._kept.get(topic) or ("", 0.0)
        return model_id if self._clock() < until else ""

    def stays(self, topic: Topic, *, continues: bool) -> bool:
        """Tell whether a request goes on with the model that answered the last one.

        `continues`: it only brings the results of tools.
        """
        _, conversation, chosen = topic
        rests = self._clock() < (self._rests.get(chosen) or 0.0)
        return continues or rests or not conversation

    def note_failure(self, model_id: str, error: ByokError) -> None:
        """Let a model rest as long as it asked for, or if it was too slow."""
        seconds = _SLOW_REST if isinstance(error, UpstreamTimeout) else 0.0
        if isinstance(error, UpstreamRefused) and error.retry_after:
            seconds = min(error.retry_after, _REST_SECONDS)
        self._rests.pop(model_id)
        if seconds:
            self._rests[model_id] = self._clock() + seconds

    def keep(self, topic: Topic, model_id: str) -> None:
        """Stay with a model from now on; "" goes back to the chosen one."""
        before, until = self._kept.pop(topic) or ("", 0.0)
        if not model_id:
            return
        if topic[1]:
            until = self._clock() + _REST_SECONDS
        elif before != model_id or until <= self._clock():
            until = self._clock() + _MINUTE
        self._kept[topic] = (model_id, until)


_log = logging.getLogger(__name__)
_ELSEWHERE = frozenset(
    {
        RefusalKind.AUTH,
        RefusalKind.CONTENT_FILTER,
        RefusalKind.CONTEXT_LENGTH,
        RefusalKind.FAILED,
        RefusalKind.LOADING,
        RefusalKind.NO_MEMORY,
        RefusalKind.NOT_FOUND,
        RefusalKind.OVERLOADED,
        RefusalKind.QUOTA,
        RefusalKind.RATE_LIMIT,
        RefusalKind.REDIRECT,
        RefusalKind.REGION,
        RefusalKind.TOOL_FAILED,
        RefusalKind.WRONG_API,
    }
)


def helps_elsewhere(error: ByokError) -> bool:
    """Tell whether another upstream may answer what failed in this way."""
    match error:
        case UpstreamRefused(kind=RefusalKind.UNKNOWN):
            return error.retryable
        case UpstreamRefused(kind=kind):
            return kind in _ELSEWHERE
        case UpstreamError() | NotReady() | ConfigError():
            return True
        case _:
            return False


class AnotherModel(Recovery, Struct, eq=False):
    """Asks the models of a chain, for one request; the first is the chosen one."""

    chain: Sequence[Destination]
    memory: FallbackMemory
    topic: Topic

    @property
    def first(self) -> Destination:
        """Who answered the conversation last, else the chosen one."""
        wanted = self.memory.find(self.topic)
        found = (asked for asked in self.chain if asked.model_id == wanted)
        return next(found, self.chain[0])

    async def prepare(self, plan: Plan) -> Plan:
        """Begin with who was asked last, or with the chosen one at a new question."""
        if not (plan.failures or plan.has_others):
            plan = plan.having(has_others=True)
            continues = not plan.request.is_question
            if not self.memory.stays(self.topic, continues=continues):
                plan = plan.having(destination=self.chain[0])
        record = current_record()
        record.upstream, record.model = plan.name, plan.model
        return plan

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Ask the next one; after the first any failure is a reason."""
        if not (plan.failures or helps_elsewhere(failure)):
            return failure
        asked = plan.destination
        self.memory.note_failure(asked.model_id, failure)
        failed = [*plan.failures, (asked, failure)]
        if not plan.has_others:
            return _sum_up(failed)
        ids = {who.model_id for who, _ in failed}
        left = (one for one in self.chain if one.model_id not in ids)
        busy = (who for who, why in failed if passes(why))
        if following := next(left, None):
            has_others = True
        elif following := next(busy, None):
            has_others = False
        else:
            return _sum_up(failed)
        _log.warning(
            "asking %.120s: %s failed: %s",
            following.model_id,
            plan.name,
            failure.log_text,
        )
        return plan.send_to(following, failure, has_others=has_others)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Tell who answers instead of whom, and that earlier thoughts are void."""
        if not plan.failures:
            return
        void, (asked, failure) = plan.has_void_thoughts, plan.failures[0]
        if plan.destination.model_id != asked.model_id:
            text = (
                f"{plan.destination.model_id} answers instead of {asked.model_id}: "
                f"{reason_of(failure)}."
            )
            yield Notice(text, is_restart=void)
        elif void:
            text = f"{asked.model_id} was asked again: {reason_of(failure)}."
            yield Notice(text, is_restart=True)

    def on_answer_start(self, plan: Plan) -> None:
        """Let the conversation stay with who answers it: its prompt is cached there."""
        model_id = plan.destination.model_id
        is_chosen = model_id == self.chain[0].model_id
        self.memory.keep(self.topic, "" if is_chosen else model_id)


def _sum_up(failed: Sequence[tuple[Destination, ByokError]]) -> ByokError:
    """Return the chosen one's last error, with what became of the others."""
    last = {asked.model_id: error for asked, error in failed}
    first, *others = last
    told = " ".join(f"{other}: {reason_of(last[other])}." for other in others)
    error = last[first]
    if not others:
        return error
    return error.with_hint(f"{error.hint} The others failed too. {told}".strip())


class Fallbacks(Struct, frozen=True):
    """Puts the user's other models behind a chosen one.

    `named` gives the ids of the models for a purpose, `local` are the names of the
    upstreams on this machine.
    """

    router: Router
    named: Callable[[Purpose], Sequence[str]]
    local: Collection[str]
    memory: FallbackMemory

    async def prepare(
        self, chosen: Destination, purpose: Purpose, conversation: str = ""
    ) -> Destination:
        """Return a destination that falls back, or the chosen one if none is named."""
        chain = await self.chain_of(chosen, purpose)
        if len(chain) == 1:
            return chosen
        topic = (purpose, conversation, chosen.model_id)
        recovery = AnotherModel(chain, self.memory, topic)
        recoveries = (*chosen.recoveries, recovery)
        return replace(recovery.first, recoveries=recoveries)

    async def chain_of(
        self, chosen: Destination, purpose: Purpose
    ) -> list[Destination]:
        """Return who is asked for a purpose, one if the other fails.

        Code goes only to upstreams that the user chose or put into the list. Who
        chooses a model on this machine may do so to keep code here; it is replaced by
        one elsewhere only if the list has it too, so that the user has seen both
        together.
        """
        others = self._others(chosen, self.named(purpose))
        return [chosen, *[await self.router.choose(model) for model in others]]

    def _others(self, chosen: Destination, named: Sequence[str]) -> list[str]:
        if not named or isinstance(chosen.upstream, RefusingUpstream):
            return []
        ids = list(dict.fromkeys(map(self.router.resolve, named)))
        others = [model for model in ids if model != chosen.model_id]
        if chosen.upstream.name in self.local and chosen.model_id not in ids:
            return [model for model in others if self._is_local(model)]
        return others

    def _is_local(self, model_id: str) -> bool:
        upstream, _ = split_id(model_id) or ("", "")
        return upstream in self.local
