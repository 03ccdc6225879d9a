"""Recoveries within one upstream: a remedy, another key, a wait, another FIM mode.

`fallback.py` asks another model, `context_window.py` shortens the conversation.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, RefusalKind, UpstreamError, UpstreamRefused
from byok.core.events import Notice
from byok.core.record import current_record
from byok.dialects.base import Codec
from byok.dialects.fim_codecs import NextEditCodec, modes_for
from byok.dialects.fim_templates import FimMode
from byok.dialects.next_edit_formats import format_of, named_format
from byok.upstream.base import Plan, Recovery
from byok.upstream.http_sender import UpstreamKeys
from byok.upstream.model_facts import KnownModels
from byok.upstream.reasons import reason_of
from byok.upstream.remedies import Remedies
from byok.upstream.retry import Patience, key_cooldown, patience_of

_log = logging.getLogger(__name__)
_MAX_MODELS = 1000
# Another FIM mode helps only if the upstream does not serve this one.
_NOT_SERVED_STATUS = frozenset({400, 404, 405, 422, 501})
_NOT_SERVED_KIND = frozenset(
    {
        RefusalKind.UNKNOWN,
        RefusalKind.NOT_FOUND,
        RefusalKind.BAD_PARAMETER,
        RefusalKind.WRONG_API,
    }
)


class AnotherRemedy(Recovery, Struct, eq=False):
    """Encodes a refused request differently, and remembers which remedies helped.

    `loads_window`: a request says with which window the server loads the model, so the
    server is asked for its facts about the model first.
    """

    remedies: Remedies
    known: KnownModels
    loads_window: bool

    async def prepare(self, plan: Plan) -> Plan:
        """Encode the request with the remedies that the model is known to need."""
        if plan.written is not None:
            return plan
        if (remedies := plan.remedies) is None:
            if self.loads_window:
                await self.known.ask(plan.model)
            remedies = self.remedies.begin(self.known.facts(plan.model), plan.codec)
        elif plan.shortenings:  # the refusal may have named the window
            remedies = replace(remedies, facts=self.known.facts(plan.model))
        return plan.having(remedies=remedies, written=remedies.write(plan.outgoing))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Learn from a refusal, and add the remedy for it, if there is another one."""
        if not isinstance(failure, UpstreamError):
            return failure
        self.known.learn_from(failure, plan.model)
        if plan.remedies is None or plan.written is None:
            return failure
        head = plan.written.head
        remedies = plan.remedies.add_remedy(failure, plan.outgoing, head)
        if remedies is None:
            return failure
        return plan.having(remedies=remedies, written=None)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return the notices about what was left out of the request."""
        return map(Notice, plan.written.head.notices if plan.written else ())

    def on_answer_start(self, plan: Plan) -> None:
        """Apply these remedies from now on."""
        if plan.remedies and (plan.remedies.applied or plan.remedies.earlier):
            plan.remedies.remember()
            self.known.learn(plan.remedies.learned_facts())


class AnotherKey(Recovery):
    """Uses another of the user's keys if one is refused or at its limit."""

    def __init__(self, keys: UpstreamKeys) -> None:
        self._keys = keys

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the key of the conversation."""
        if plan.key is not None:
            return plan
        return plan.having(key=self._keys.begin(plan.request.conversation))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Start a cooldown of the key if the failure is its own; use the next key."""
        if plan.key is None or not isinstance(failure, UpstreamError):
            return failure
        cooldown = key_cooldown(failure)
        if cooldown is None or not plan.key.replace(cooldown):
            return failure
        return plan.having(refused_key=failure)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return the notice that another key is used."""
        if plan.refused_key is None:
            return ()
        reason = reason_of(plan.refused_key)
        text = f"{plan.name}: {reason}, so another one of your keys is used."
        return (Notice(text),)


class Wait(Recovery, Struct, eq=False):
    """Sends the same request later, as long as somebody waits for its answer.

    People wait `seconds`; `clock` returns seconds, `luck` a random number from 0 to 1.
    """

    seconds: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    luck: Callable[[], float] = random.random

    async def prepare(self, plan: Plan) -> Plan:
        """Sleep for the planned pause."""
        if plan.patience is None:
            seconds = patience_of(plan.request, self.seconds)
            return plan.having(patience=Patience(seconds, plan.has_others))
        if not plan.patience.pause:
            return plan
        await self.sleep(plan.patience.pause)
        return plan.having(patience=replace(plan.patience, pause=0.0))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Plan a pause, if a retry may help and the patience is not used up."""
        if plan.patience is None or not isinstance(failure, UpstreamError):
            return failure
        now = self.clock()
        planned = plan.patience.plan_wait(failure, now, self.luck())
        if planned is None:
            return plan.patience.explain(failure, now)
        planned, notice = planned.write_notice(plan.name, failure, now)
        return plan.having(patience=planned, urgent=(notice,) if notice else ())


class AnotherFimMode(Recovery, Struct, eq=False):
    """Tries FIM modes in order, and remembers which one a model accepted.

    FIM asks for code between a prefix and a suffix. `codecs` are the upstream's codecs
    by mode, and `next_edit` those for next edits, which a model is asked for in its own
    format first; None stands for a chat.
    """

    upstream: str
    codecs: Mapping[FimMode, Codec | None]
    next_edit: Mapping[FimMode, Codec]
    # The mode that was accepted last, by model and by whether a gap was filled.
    _accepted: BoundedMap[tuple[str, bool], FimMode] = field(
        default_factory=lambda: BoundedMap(_MAX_MODELS)
    )
    _logged: set[FimMode] = field(default_factory=set)

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the mode of a request that fills a gap, or changes a file."""
        request = plan.request
        if plan.mode is not None or (request.fim or request.next_edit) is None:
            return plan
        codecs, mode = self._codecs_for(plan), self._accepted.get(_mode_key(plan))
        return self._with_mode(plan, mode if mode in codecs else next(iter(codecs)))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Try the next mode if the upstream does not serve this one."""
        if plan.mode is None or not isinstance(failure, UpstreamRefused):
            return failure
        # A refusal inside a stream has no status, and never refuses the mode.
        is_refused = failure.upstream_status in _NOT_SERVED_STATUS
        if not is_refused or failure.kind not in _NOT_SERVED_KIND:
            return failure
        self._accepted.pop(_mode_key(plan))
        modes = [*self._codecs_for(plan)]
        remaining = modes[modes.index(plan.mode) + 1 :]
        if not remaining:
            return failure
        if plan.mode not in self._logged:
            self._logged.add(plan.mode)
            _log.info("%s does not serve FIM by %s", self.upstream, plan.mode)
        return self._with_mode(plan, remaining[0])

    def on_answer_start(self, plan: Plan) -> None:
        """Try this mode first from now on."""
        if plan.mode is not None:
            self._accepted[_mode_key(plan)] = plan.mode
        if plan.codec is not None:
            current_record().prompt = ""  # only a chat is sent a system prompt

    def _with_mode(self, plan: Plan, mode: FimMode) -> Plan:
        """Return the plan in a mode, without what was learned in another mode."""
        return plan.having(
            mode=mode,
            codec=self._codecs_for(plan)[mode],
            patience=None,
            remedies=None,
            written=None,
        )

    def _codecs_for(self, plan: Plan) -> dict[FimMode, Codec | None]:
        """Return the codecs for a request, in the order in which they are tried."""
        if plan.request.next_edit is not None:
            name = format_of(plan.model, self.next_edit)
            mode = named_format(name).mode if name else FimMode.CHAT
            codec = NextEditCodec(name, self.next_edit[mode]) if name else None
            return {mode: codec, FimMode.CHAT: None}
        try:
            modes = modes_for(self.codecs, plan.model)
        except UpstreamError as error:
            error.upstream = self.upstream
            raise
        return {mode: self.codecs[mode] for mode in modes}


def _mode_key(plan: Plan) -> tuple[str, bool]:
    return plan.model, plan.request.next_edit is None
