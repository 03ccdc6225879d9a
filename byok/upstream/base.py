"""The interface of an upstream, as the rest of byok uses it."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from byok.chat import ChatRequest
from byok.events import StreamEvent


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

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of the answer, those of one network read as one list.

        The last event is a Finish, else an UpstreamError is raised; events before the
        error have been yielded. Closing the generator closes the connection.
        """
        ...

    def forward(
        self, path: str, content: bytes
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        """Forward a request of OpenAI's API; `path` is relative to its base URL.

        Leaving the context closes the connection.

        Raises:
            BadRequest: the upstream does not speak OpenAI's API.
            UpstreamError: it has no such path, or gave no usable response.
        """
        ...

    async def models(self) -> list[str]:
        """List the ids of its models.

        Raises:
            UpstreamError: it gave no list.
        """
        ...
