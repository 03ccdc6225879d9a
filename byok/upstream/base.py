"""What the rest of byok knows of an upstream."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from byok.chat import ChatRequest
from byok.events import StreamEvent


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An answer that is passed on as it is: headers that describe it, and its reads.

    Reading raises an UpstreamError where the answer breaks off.
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
        """Yield the answer's events, those of one network read together.

        Closing the generator hangs up. It ends after a Finish, or raises an
        UpstreamError; events that came before the error were yielded.
        """
        ...

    def forward(
        self, path: str, content: bytes
    ) -> AbstractAsyncContextManager[Forwarded]:
        """Send a request of the upstream's own API and give the answer that began.

        Leaving the context hangs up.

        Raises:
            ByokError: there is no such API, or no usable answer.
        """
        ...

    async def models(self) -> list[str]:
        """Ask for the models it offers.

        Raises:
            UpstreamError: it does not tell.
        """
        ...
