"""Fallback: if the chosen model cannot answer, other models of the user are asked.

Another model is asked only while the client has received no more than thoughts, and
only after failures that another upstream need not have: an upstream that cannot be
reached, is overloaded, at a limit, without a valid key or the model, has too small a
window, refuses to answer, or calls a tool wrongly. An error of the request itself would
be refused elsewhere, too.

If all of them fail, and one of them only for a while, that one is waited for as if it
were the only one: a list of models must not reduce the patience with an upstream.
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

_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 1000
_MAX_STAY_SECONDS = 3600.0  # after the last request; no cache is kept for longer
_STAY_WITHOUT_CONVERSATION = 60.0  # seconds
_SLOW_COOLDOWN = 300.0  # seconds; to ask a model that is too slow costs minutes
_KINDS_THAT_DIFFER = frozenset(  # between upstreams
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


Topic: TypeAlias = tuple[Purpose, str, str]  # the purpose, conversation, chosen model


class FallbackMemory:
    """Remembers which model a turn fell back to; it outlives new settings.

    That model has the prompt in its cache, so it answers the rest of the turn. The
    user's next message goes to the chosen model again, unless that one is in a cooldown
    because it named a later time, or was too slow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stays = BoundedMap[Topic, tuple[str, float]](_MAX_REMEMBERED)
        self._cooldowns = BoundedMap[str, float](_MAX_REMEMBERED)  # by model: the end

    def find(self, topic: Topic) -> str:
        """Return the id of the model that a conversation stays with, or ""."""
        model_id, until = self._stays.get(topic) or ("", 0.0)
        return model_id if self._clock() < until else ""

    def stays(self, topic: Topic, *, continues: bool) -> bool:
        """Tell whether the model that answered the last request gets this one, too.

        `continues`: the request only brings the results of tools.
        """
        _, conversation, chosen = topic
        is_cooling_down = self._clock() < (self._cooldowns.get(chosen) or 0.0)
        return continues or is_cooling_down or not conversation

    def record_failure(self, model_id: str, error: ByokError) -> None:
        """Start a cooldown as long as a model asks for, or if it was too slow."""
        seconds = _SLOW_COOLDOWN if isinstance(error, UpstreamTimeout) else 0.0
        if isinstance(error, UpstreamRefused) and error.retry_after:
            seconds = min(error.retry_after, _MAX_STAY_SECONDS)
        self._cooldowns.pop(model_id)
        if seconds:
            self._cooldowns[model_id] = self._clock() + seconds

    def stay_with(self, topic: Topic, model_id: str) -> None:
        """Let a conversation stay with a model; "" is the chosen one."""
        last, until = self._stays.pop(topic) or ("", 0.0)
        if not model_id:
            return
        if topic[1]:
            until = self._clock() + _MAX_STAY_SECONDS
        elif last != model_id or until <= self._clock():
            until = self._clock() + _STAY_WITHOUT_CONVERSATION
        self._stays[topic] = (model_id, until)


def helps_elsewhere(error: ByokError) -> bool:
    """Tell whether another upstream may answer a request that failed with an error."""
    match error:
        case UpstreamRefused(kind=RefusalKind.UNKNOWN):
            return error.retryable
        case UpstreamRefused(kind=kind):
            return kind in _KINDS_THAT_DIFFER
        case UpstreamError() | NotReady() | ConfigError():
            return True
        case _:
            return False


class AnotherModel(Recovery, Struct, eq=False):
    """Asks the models of a chain for one request; the first is the chosen one."""

    chain: Sequence[Destination]
    memory: FallbackMemory
    topic: Topic

    @property
    def first(self) -> Destination:
        """The model that answered the conversation last, else the chosen one."""
        last = self.memory.find(self.topic)
        matches = (model for model in self.chain if model.model_id == last)
        return next(matches, self.chain[0])

    async def prepare(self, plan: Plan) -> Plan:
        """Begin with the model that answered last, a new question with the chosen."""
        if not (plan.failures or plan.has_others):
            plan = plan.having(has_others=True)
            continues = not plan.request.is_question
            if not self.memory.stays(self.topic, continues=continues):
                plan = plan.having(destination=self.chain[0])
        record = current_record()
        record.upstream, record.model = plan.name, plan.model
        return plan

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Ask the next model; once another one was asked, after any failure."""
        if not (plan.failures or helps_elsewhere(failure)):
            return failure
        destination = plan.destination
        self.memory.record_failure(destination.model_id, failure)
        failures = [*plan.failures, (destination, failure)]
        if not plan.has_others:
            return _sum_up(failures)
        failed_ids = {failed.model_id for failed, _ in failures}
        untried = (other for other in self.chain if other.model_id not in failed_ids)
        busy = (failed for failed, error in failures if passes(error))
        if following := next(untried, None):
            has_others = True
        elif following := next(busy, None):
            has_others = False
        else:
            return _sum_up(failures)
        _log.warning(
            "asking %.120s: %s failed: %s",
            following.model_id,
            plan.name,
            failure.log_text,
        )
        return plan.send_to(following, failure, has_others=has_others)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return who answers instead of whom, and whether earlier thoughts are void."""
        if not plan.failures:
            return
        is_void, (failed, failure) = plan.has_void_thoughts, plan.failures[0]
        if plan.destination.model_id != failed.model_id:
            text = (
                f"{plan.destination.model_id} answers instead of {failed.model_id}: "
                f"{reason_of(failure)}."
            )
            yield Notice(text, is_restart=is_void)
        elif is_void:
            text = f"{failed.model_id} was asked again: {reason_of(failure)}."
            yield Notice(text, is_restart=True)

    def on_answer_start(self, plan: Plan) -> None:
        """Let the conversation stay with this model, which now caches its prompt."""
        model_id = plan.destination.model_id
        is_chosen = model_id == self.chain[0].model_id
        self.memory.stay_with(self.topic, "" if is_chosen else model_id)


def _sum_up(failures: Sequence[tuple[Destination, ByokError]]) -> ByokError:
    """Return the chosen model's last error, with the reasons of the others' errors."""
    last_errors = {failed.model_id: error for failed, error in failures}
    chosen, *others = last_errors
    error = last_errors[chosen]
    if not others:
        return error
    reasons = " ".join(f"{model}: {reason_of(last_errors[model])}." for model in others)
    return error.with_hint(f"{error.hint} The others failed too. {reasons}".strip())


class Fallbacks(Struct, frozen=True):
    """Adds the user's other models to a chosen one.

    `named` returns the ids of the models for a purpose, `local` are the names of the
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
        """Return the destinations for a purpose, in the order in which they are asked.

        Code goes only to upstreams that the user chose or put into the list. A user who
        chooses a model on this machine may do so to keep code here. A model elsewhere
        replaces it only if the list has it too, so that the user has seen both
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
