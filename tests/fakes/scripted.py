"""Upstreams in memory: one answers by a function, one lists models; canned HTTP."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import httpx

from byok.core.chat import ChatRequest
from byok.core.errors import ByokError, ContextLengthExceeded
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.upstream.ask import ask
from byok.upstream.base import (
    Destination,
    ForwardedResponse,
    Plan,
    Recovery,
    Upstream,
)
from byok.upstream.http_sender import NO_HEADERS
from byok.upstream.transport import Route, Transports

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


class NamedUpstream:
    """What every upstream in memory has: a name, and nothing that it forwards."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rest_seconds = 0.0
        self.recoveries: tuple[Recovery, ...] = ()

    def serves(self, path: str, model: str) -> bool:
        return False

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        raise NotImplementedError(f"{path} {content!r}")


class Scripted(NamedUpstream):
    """Upstream whose answers a function gives; it may raise instead."""

    def __init__(
        self,
        answer: Callable[[ChatRequest], Answer] = lambda chat: said(),
        name: str = "box",
    ) -> None:
        super().__init__(name)
        self.answer = answer
        self.asked: list[tuple[ChatRequest, str]] = []
        self.closed = 0

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


class Lister(NamedUpstream):
    """Upstream without answers; clear `open` to keep askers waiting."""

    def __init__(self, name: str, *models: str) -> None:
        super().__init__(name)
        self.listed = list(models)
        self.failure: ByokError | None = None
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()

    async def models(self) -> list[str]:
        self.asked += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return list(self.listed)

    def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        raise NotImplementedError


class CannedTransport(httpx.AsyncBaseTransport):
    """Answers out of a function; unlike MockTransport's, the bodies are unread."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        made = self._answer(request)
        body = _Unread(await made.aread())
        return httpx.Response(made.status_code, headers=made.headers, stream=body)


class _Unread(httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class Canned(Transports):
    """Transports that answer out of a function, without a network."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        super().__init__()
        self._transport = CannedTransport(answer)

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        del route
        return self._transport


def listing() -> httpx.Response:
    """The answer of an upstream that has one model."""
    return httpx.Response(200, stream=httpx.ByteStream(b'{"data": [{"id": "m"}]}'))


class FakeTransports(Transports):
    """Answers the request for the models of some hosts, and notes who was asked how."""

    def __init__(self, answers: dict[str, httpx.Response] | None = None) -> None:
        super().__init__()
        self.requests: list[httpx.Request] = []
        self.routes: list[Route] = []
        self._answers = answers or {}

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        self.routes.append(route)
        return CannedTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        base = str(request.url).removesuffix("/models").removesuffix("/api/tags")
        if base in self._answers:
            return self._answers[base]
        raise httpx.ConnectError("refused")
