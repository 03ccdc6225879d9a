"""An upstream that only lists its models, when it is let; and canned HTTP answers."""

import asyncio
from collections.abc import AsyncGenerator, Callable

import httpx

from byok.chat import ChatRequest
from byok.errors import ByokError
from byok.events import StreamEvent
from byok.upstream.transport import Route, Transports


class Lister:
    """Upstream without answers; clear `open` to keep askers waiting."""

    def __init__(self, name: str, *models: str) -> None:
        self._name = name
        self.listed = list(models)
        self.failure: ByokError | None = None
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()

    @property
    def name(self) -> str:
        return self._name

    async def models(self) -> list[str]:
        self.asked += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return list(self.listed)

    async def close(self) -> None:
        """Nothing to let go of."""

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        raise NotImplementedError


class Canned(Transports):
    """Transports that answer out of a function, without a network."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        super().__init__()
        self._client = httpx.AsyncClient(transport=httpx.MockTransport(answer))

    def client(self, route: Route) -> httpx.AsyncClient:
        del route
        return self._client
