"""The interface of an upstream, as the rest of byok uses it."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from byok.chat import ChatRequest
from byok.events import StreamEvent

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    """A response that is forwarded unchanged: its headers, and its body as it comes.

    Reading raises an UpstreamError if the connection breaks.
    """

    headers: Mapping[str, str]
    reads: AsyncIterator[bytes]
    status: int = 200


class Upstream(Protocol):
    """A configured upstream: streams the model's events and lists its models."""

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        ...

    @property
    def rest_seconds(self) -> float:
        """For how long it is not asked, because it could not be reached; usually 0."""
        ...

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of the answer, those of one network read as one list.

        The last event is a Finish, else an UpstreamError is raised; events before the
        error have been yielded. Closing the generator closes the connection.
        """
        ...

    def serves(self, path: str, model: str) -> bool:
        """Tell whether requests for a path of /v1 can be forwarded for a model."""
        ...

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """Forward a request; `path` is relative to the base URL of an API.

        `headers` are those of the client that the API needs to know. Leaving the
        context closes the connection.

        Raises:
            BadRequest: the upstream has no API that serves the path.
            UpstreamError: it gave no usable response.
        """
        ...

    async def models(self) -> list[str]:
        """List the ids of its models.

        Raises:
            UpstreamError: it gave no list.
        """
        ...


class UpstreamLayer:
    """An upstream in front of another one, which does the rest."""

    def __init__(self, inner: Upstream) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """See Upstream.name."""
        return self._inner.name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return self._inner.rest_seconds

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        return self._inner.stream(chat, model)

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves."""
        return self._inner.serves(path, model)

    def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """See Upstream.forward."""
        return self._inner.forward(path, content, headers)

    async def models(self) -> list[str]:
        """See Upstream.models."""
        return await self._inner.models()
