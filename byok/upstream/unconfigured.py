"""The upstream of model ids whose upstream is not configured: it refuses requests.

A request for one upstream is never sent to another one: the user may have chosen a
local model so that no code leaves the machine.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from byok.chat import ChatRequest
from byok.errors import MODEL_NOT_FOUND, BadRequest
from byok.events import StreamEvent
from byok.upstream.base import NO_HEADERS, ForwardedResponse

# What no section of the settings can be called is not repeated: it may be anything.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_UNNAMED = "unknown"


class UnconfiguredUpstream:
    """Upstream that is not configured."""

    def __init__(self, name: str) -> None:
        self._name = name if _NAME.fullmatch(name) else _UNNAMED

    @property
    def name(self) -> str:
        """The name in the model id."""
        return self._name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return 0.0

    async def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        raise self._refusal(422)
        yield []  # makes it a generator

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves; forwarding refuses."""
        return True

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward."""
        raise self._refusal(404)  # as OpenAI says it: only /v1 is forwarded
        yield

    async def models(self) -> list[str]:
        """See Upstream.models."""
        return []

    def _refusal(self, status: int) -> BadRequest:
        return BadRequest(
            f"The chosen model belongs to the upstream {self._name!r}, which is not "
            "configured.",
            code=MODEL_NOT_FOUND,
            hint="Choose another model (byok models lists them), or add "
            f"[upstreams.{self._name}] to the settings.",
            status=status,
        )
