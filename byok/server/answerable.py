"""The two phases of a request: read its body, then answer without holding the body.

A body may have tens of megabytes, and ten times that once it is parsed; an answer may
take minutes. So `understand()` methods read a body and return an `Answerable`, which
holds what the answer needs and nothing of the body; `Endpoints` lets the body go and
gives up its place among the large ones before it calls `answer()`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp.web import StreamResponse

from byok.core.chat import Json
from byok.server.http.reply import HttpExchange, json_response
from byok.server.http.stream import static_stream


class Answerable(Protocol):
    """A decoded request that is ready to be answered, without its body."""

    async def answer(self) -> StreamResponse:
        """Answer it; called once.

        Raises:
            ByokError: before anything was sent.
        """


@dataclass(frozen=True, slots=True)
class ConstantAnswer:
    """Answers with one object that is known already."""

    body: Json

    async def answer(self) -> StreamResponse:
        """Answer with it."""
        return json_response(self.body)


@dataclass(frozen=True, slots=True)
class ConstantStream:
    """Answers with a stream whose lines are known already."""

    exchange: HttpExchange
    lines: tuple[Json, ...]

    async def answer(self) -> StreamResponse:
        """Answer with them."""
        return await static_stream(self.exchange, *self.lines)


@dataclass(frozen=True, slots=True)
class ObjectAnswer:
    """Answers with the object that a handler returns; it may hold a small body."""

    handler: Callable[[], Awaitable[Json]]

    async def answer(self) -> StreamResponse:
        """Answer with it."""
        return json_response(await self.handler())
