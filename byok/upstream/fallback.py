"""Fallback: where the chosen model cannot answer, others do that the user named.

Another model is asked only while nothing of an answer was shown, and only for failures
that another upstream need not have: one that cannot be reached, is overloaded, at a
limit, without a valid key or the model, or has too small a window. What is wrong with
the request itself would be refused elsewhere too.
"""

import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing

from byok.chat import ChatRequest
from byok.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
)
from byok.events import Notice, StreamEvent, begins_answer
from byok.record import current_record
from byok.upstream.base import NO_HEADERS, ForwardedResponse, Upstream
from byok.upstream.fallback_memory import FallbackMemory, Topic
from byok.upstream.reasons import reason_of
from byok.upstream.router import Destination

_log = logging.getLogger(__name__)
_FORGOTTEN = ChatRequest(())
_ELSEWHERE = frozenset(
    {
        RefusalKind.AUTH,
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
        failures = _Failures()
        for asked in self._order():
            begun = False
            try:
                stream = self._ask(asked, chat, failures)
                async with aclosing(stream) as batches:
                    async for batch in batches:
                        if not begun and begins_answer(batch):
                            begun = True
                            chat = _FORGOTTEN  # it may be large
                            self._stay()
                            batch = [*failures.notices(asked), *batch]
                        yield batch
                return
            except ByokError as error:
                if begun or not (failures.first or helps_elsewhere(error)):
                    raise
                failures.add(asked, error)
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

    def _order(self) -> Iterator[Destination]:
        """Give who is asked now, then the others, the chosen one first."""
        first = self.now
        yield first
        yield from (asked for asked in self.chain if asked is not first)

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


class _Failures:
    """Who was asked in vain, and why."""

    def __init__(self) -> None:
        self._made: list[tuple[Destination, ByokError]] = []

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
        return [
            Notice(
                f"{answering.model_id} answers instead of {asked.model_id}: "
                f"{reason_of(error)}."
            )
        ]

    def summary(self) -> ByokError:
        """Return the first error, with what became of the others."""
        (_, error), *others = self._made
        told = "; ".join(f"{a.model_id}: {reason_of(e)}" for a, e in others)
        return error.with_hint(f"{error.hint} The others failed too: {told}.".strip())
