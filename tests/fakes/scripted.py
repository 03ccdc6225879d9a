"""An upstream in memory that answers by a function, and notes what it was asked."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from byok.core.chat import ChatRequest
from byok.core.errors import ContextLengthExceeded
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.upstream.ask import ask
from byok.upstream.base import (
    NO_HEADERS,
    Destination,
    ForwardedResponse,
    Plan,
    Recovery,
    Upstream,
)

Answer = list[list[StreamEvent]]


def said(text: str = "Fine.", tokens: int = 0) -> Answer:
    """An answer in two reads; `tokens` is the count of the prompt, 0 for none."""
    counted: list[StreamEvent] = [Usage(tokens, 2)] if tokens else []
    return [[TextDelta(text)], [*counted, Finish(FinishReason.STOP)]]


def too_long(
    window: int | None = None, counted: int | None = None
) -> ContextLengthExceeded:
    """The refusal of a conversation that is too long."""
    return ContextLengthExceeded("It is too long.", window=window, counted=counted)


async def events_of(
    upstream: Upstream, chat: ChatRequest, model: str = "m"
) -> list[StreamEvent]:
    """Ask, and give the events of the answer."""
    batches = ask(Destination(upstream, model), chat)
    return [event async for batch in batches for event in batch]


class Scripted:
    """Upstream whose answers a function gives; it may raise instead."""

    def __init__(
        self,
        answer: Callable[[ChatRequest], Answer] = lambda chat: said(),
        name: str = "box",
    ) -> None:
        self.answer = answer
        self._name = name
        self.recoveries: tuple[Recovery, ...] = ()
        self.asked: list[tuple[ChatRequest, str]] = []
        self.closed = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def rest_seconds(self) -> float:
        return 0.0

    @property
    def chats(self) -> list[ChatRequest]:
        """What was asked, without the model's name."""
        return [chat for chat, _ in self.asked]

    async def models(self) -> list[str]:
        return ["m"]

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        self.asked.append((plan.outgoing, plan.model))
        del plan
        try:
            for batch in self.answer(self.asked[-1][0]):
                yield batch
        finally:
            self.closed += 1

    def serves(self, path: str, model: str) -> bool:
        return False

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        raise NotImplementedError(f"{path} {content!r}")
