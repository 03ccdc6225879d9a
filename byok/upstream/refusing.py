"""Upstreams that refuse requests: one that is not configured, one without a model.

A request for one upstream is never sent to another one: the user may have chosen a
local model so that no code leaves the machine. Nor is a model invented for a server
that has none.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from byok.dialects.presets import OLLAMA, SUGGESTED_MODEL
from byok.errors import MODEL_NOT_FOUND, BadRequest
from byok.events import StreamEvent
from byok.upstream.base import NO_HEADERS, ForwardedResponse, Plan, Recovery

# What no section of the settings can be called is not repeated: it may be anything.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_UNNAMED = "unknown"


class RefusingUpstream:
    """Upstream that refuses every request."""

    recoveries: tuple[Recovery, ...] = ()

    def __init__(self, name: str, message: str, hint: str) -> None:
        self._name = name
        self._message = message
        self._hint = hint

    @property
    def name(self) -> str:
        """The name in the model id."""
        return self._name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return 0.0

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.send."""
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
            self._message, code=MODEL_NOT_FOUND, hint=self._hint, status=status
        )


def unconfigured_upstream(name: str) -> RefusingUpstream:
    """Return the upstream of a model id whose upstream is not in the settings."""
    name = name if _NAME.fullmatch(name) else _UNNAMED
    return RefusingUpstream(
        name,
        f"The chosen model belongs to the upstream {name!r}, which is not configured.",
        "Choose another model (byok models lists them), or add "
        f"[upstreams.{name}] to the settings.",
    )


def upstream_without_models(name: str, vendor: str) -> RefusingUpstream:
    """Return the upstream of a server that says it has no model."""
    hint = f"Load one there, or name it as model under [upstreams.{name}]."
    if vendor == OLLAMA:
        hint = f"Get one on that machine, such as: ollama pull {SUGGESTED_MODEL}."
    return RefusingUpstream(name, f"{name} has no model yet.", hint)
