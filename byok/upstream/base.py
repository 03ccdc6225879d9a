"""What the rest of byok knows of an upstream."""

from collections.abc import AsyncGenerator
from typing import Protocol

from byok.chat import ChatRequest
from byok.events import StreamEvent


class Upstream(Protocol):
    """One configured upstream."""

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

    async def models(self) -> list[str]:
        """Ask for the models it offers.

        Raises:
            UpstreamError: it does not tell.
        """
        ...
