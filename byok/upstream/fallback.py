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
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace

from byok.chat import ChatRequest, Role
from byok.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
)
from byok.events import Notice, StreamEvent, begins_answer, is_thinking
from byok.record import current_record
from byok.upstream.base import NO_HEADERS, ForwardedResponse, Upstream
from byok.upstream.fallback_memory import FallbackMemory, Topic
from byok.upstream.reasons import reason_of
from byok.upstream.retry import passes
from byok.upstream.router import Destination

_log = logging.getLogger(__name__)
_FORGOTTEN = ChatRequest(())
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


class FallbackUpstream:
    """An upstream for one request: the chosen model, or the first other that answers.

    `chain` begins with the chosen one; `now` is who is asked, or was asked last.
    """

    def __init__(
        self, chain: Sequence[Destination], memory: FallbackMemory, topic: Topic
    ) -> None:
        self.chain = chain
        self._memory = memory
        self._topic = topic
        wanted = memory.find(topic)
        found = (asked for asked in chain if asked.model_id == wanted)
        self.now = next(found, chain[0])

    @property
    def name(self) -> str:
        """See Upstream.name."""
        return self._asked.name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return self._asked.rest_seconds

    @property
    def _asked(self) -> Upstream:
        return self.now.upstream

    async def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream; the model is that of `now`."""
        del model
        if not self._memory.stays(self._topic, continues=_continues(chat)):
            self.now = self.chain[0]
        failures = _Failures()
        brief = replace(chat, has_others=True)
        for asked, is_last in self._order(failures):
            begun = is_named = False
            try:
                sent = chat if is_last else brief
                stream = self._ask(asked, sent, failures)
                del sent
                async with aclosing(stream) as batches:
                    async for batch in batches:
                        if not begun and begins_answer(batch):
                            if not is_named:
                                batch = [*failures.notices(asked), *batch]
                                is_named = True
                            if is_thinking(batch):
                                failures.has_thoughts = True
                            else:
                                begun = True
                                chat = brief = _FORGOTTEN  # they may be large
                                self._stay()
                        yield batch
                return
            except ByokError as error:
                if begun or not (failures.first or helps_elsewhere(error)):
                    raise
                failures.add(asked, error)
                self._memory.note_failure(asked.model_id, error)
        raise failures.summary()

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves."""
        return self._asked.serves(path, model)

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """See Upstream.forward; nothing falls back: the body names the model."""
        return self._asked.forward(path, content, headers)

    async def models(self) -> list[str]:
        """See Upstream.models."""
        return await self._asked.models()

    def _order(self, failures: "_Failures") -> Iterator[tuple[Destination, bool]]:
        """Give whom to ask: who is asked now, the others, at last who is only busy.

        Each comes with whether it is waited for with all patience.
        """
        first = self.now
        for asked in (first, *(asked for asked in self.chain if asked is not first)):
            yield asked, False
        if (busy := failures.find_busy()) is not None:
            yield busy, True

    def _ask(
        self, asked: Destination, chat: ChatRequest, failures: "_Failures"
    ) -> AsyncGenerator[list[StreamEvent], None]:
        if failures.first:
            _log.warning("asking %.120s: %s", asked.model_id, failures.log_text)
        record = current_record()
        record.upstream, record.model = asked.upstream.name, asked.model
        self.now = asked
        return asked.upstream.stream(chat, asked.model)

    def _stay(self) -> None:
        chosen = self.now is self.chain[0]
        self._memory.keep(self._topic, "" if chosen else self.now.model_id)


def _continues(chat: ChatRequest) -> bool:
    """Tell whether a request only brings the results of tools."""
    return bool(chat.messages) and chat.messages[-1].role is not Role.USER


class _Failures:
    """Who was asked in vain, and why; `has_thoughts`: some of theirs were shown."""

    def __init__(self) -> None:
        self._made: list[tuple[Destination, ByokError]] = []
        self.has_thoughts = False

    @property
    def first(self) -> ByokError | None:
        return self._made[0][1] if self._made else None

    @property
    def log_text(self) -> str:
        asked, error = self._made[-1]
        return f"{asked.upstream.name} failed: {error.log_text}"

    def add(self, asked: Destination, error: ByokError) -> None:
        self._made.append((asked, error))

    def notices(self, answering: Destination) -> list[Notice]:
        """Return what the user is told when another one answers."""
        if not self._made:
            return []
        asked, error = self._made[0]
        void, self.has_thoughts = self.has_thoughts, False
        if answering is asked:
            text = f"{asked.model_id} was asked again: {reason_of(error)}."
            return [Notice(text, is_restart=True)] if void else []
        text = f"{answering.model_id} answers instead of {asked.model_id}: "
        return [Notice(f"{text}{reason_of(error)}.", is_restart=void)]

    def find_busy(self) -> Destination | None:
        """Return the first one that will answer again by itself."""
        return next((asked for asked, error in self._made if passes(error)), None)

    def summary(self) -> ByokError:
        """Return the chosen one's last error, with what became of the others."""
        last = {asked.model_id: (asked, error) for asked, error in self._made}
        (_, error), *others = last.values()
        told = "; ".join(f"{a.model_id}: {reason_of(e)}" for a, e in others)
        return error.with_hint(f"{error.hint} The others failed too: {told}.".strip())
