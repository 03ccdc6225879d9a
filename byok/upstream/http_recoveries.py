"""What is tried at one upstream over HTTP: a remedy, another key, to wait."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from byok.errors import ByokError, UpstreamError
from byok.events import Notice
from byok.record import current_record
from byok.upstream.base import Plan, Recovery
from byok.upstream.http_call import UpstreamKeys
from byok.upstream.model_facts import KnownModels
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.reasons import another_key_notice
from byok.upstream.remedies import Remedies
from byok.upstream.retry import Patience, patience_of, rest_of_key


class AnotherRemedy(Recovery):
    """Writes a refused request otherwise, and remembers what helped.

    `loads_window`: a request says with which window the server loads the model, so it
    is asked first what it knows of it.
    """

    def __init__(
        self, remedies: Remedies, known: KnownModels, *, loads_window: bool
    ) -> None:
        self._remedies = remedies
        self._known = known
        self._loads_window = loads_window
        self._prompts = PromptChanges()

    async def prepare(self, plan: Plan) -> Plan:
        """Encode the request with the remedies that the model is known to need."""
        if plan.written is not None:
            return plan
        if (remedies := plan.remedies) is None:
            if self._loads_window:
                await self._known.ask(plan.model)
            remedies = self._remedies.begin(self._known.facts(plan.model), plan.codec)
        elif plan.shortenings:  # the refusal may have told the window
            remedies = replace(remedies, facts=self._known.facts(plan.model))
        return plan.having(remedies=remedies, written=remedies.write(plan.outgoing))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Learn from a refusal, and add the remedy for it, if there is another one."""
        if not isinstance(failure, UpstreamError):
            return failure
        self._known.learn_from(failure, plan.model)
        if plan.remedies is None or plan.written is None:
            return failure
        remedies = plan.remedies.find(failure, plan.outgoing, plan.written.head)
        if remedies is None:
            return failure
        return plan.having(remedies=remedies, written=None)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return what had to be left out of the request."""
        return map(Notice, plan.written.head.notices if plan.written else ())

    def note_begin(self, plan: Plan) -> None:
        """Use these remedies from now on, and note where the prompt changed."""
        if plan.remedies is None or plan.written is None:
            return
        plan.remedies.remember()
        self._known.learn(plan.remedies.learned_facts())
        if conversation := plan.request.conversation:
            key = (conversation, plan.written.head.origin)
            change = self._prompts.note(key, plan.written.content)
            current_record().prompt_change = change


class AnotherKey(Recovery):
    """Uses another one of the user's keys where one is refused or at its limit."""

    def __init__(self, keys: UpstreamKeys) -> None:
        self._keys = keys

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the key of the conversation."""
        if plan.key is not None:
            return plan
        return plan.having(key=self._keys.begin(plan.request.conversation))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Let the key rest if the failure is its own, and take the next one."""
        if plan.key is None or not isinstance(failure, UpstreamError):
            return failure
        rest = rest_of_key(failure)
        if rest is None or not plan.key.replace(rest):
            return failure
        return plan.having(refused_key=failure)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Tell that another key is used."""
        if plan.refused_key is None:
            return ()
        return (another_key_notice(plan.name, plan.refused_key),)


class Wait(Recovery):
    """Sends the same request later, as long as somebody waits for its answer.

    People wait `seconds`; `clock` gives seconds, `luck` random numbers from 0 to 1.
    """

    def __init__(
        self,
        seconds: float,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock
        self._luck = luck

    async def prepare(self, plan: Plan) -> Plan:
        """Wait as long as it was planned."""
        if plan.patience is None:
            seconds = patience_of(plan.request, self._seconds)
            return plan.having(patience=Patience(seconds, plan.has_others))
        if not plan.patience.pause:
            return plan
        await self._sleep(plan.patience.pause)
        return plan.having(patience=replace(plan.patience, pause=0.0))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Plan a wait, if the failure passes and there is patience left for it."""
        if plan.patience is None or not isinstance(failure, UpstreamError):
            return failure
        now = self._clock()
        planned = plan.patience.plan_wait(failure, now, self._luck())
        if planned is None:
            return plan.patience.explain(failure, now)
        planned, notice = planned.write_notice(plan.name, failure, now)
        return plan.having(patience=planned, urgent=(notice,) if notice else ())
