"""OpenAI Chat Completions, and everything that imitates it."""

from collections.abc import Iterable, Mapping
from typing import Any

from byok.chat import NO_ORIGIN, ChatRequest, Json, Origin
from byok.dialects.base import Mended, Remedy, Target, UpstreamRequest
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.models import model_ids, model_windows
from byok.dialects.openai_chat.remedies import (
    apply_remedies,
    presumed_remedies,
    remedy_for,
)
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.quirks import Quirks
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage
from byok.wire.sse import ServerSentEvent


class OpenAIChat:
    """Dialect."""

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write a chat/completions request."""
        return encode_request(chat, target)

    def auth(self, key: str, quirks: Quirks) -> Mapping[str, str]:
        """Carry the key as a bearer token, or bare in the vendor's own header."""
        header = quirks.auth_header
        return {header: f"Bearer {key}" if header == "Authorization" else key}

    def decoder(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> Stage[ServerSentEvent, StreamEvent]:
        """Read chat.completion.chunk events, or one chat.completion."""
        return OpenAIAnswer(tool_names, origin)

    def refusal(
        self, body: Any, status: int, retry_after: float | None
    ) -> UpstreamRefused:
        """Read an error body."""
        return refusal_of(body, status, retry_after)

    def presume(self, quirks: Quirks) -> tuple[Remedy, ...]:
        """Leave out tools beyond the most that the vendor takes."""
        return presumed_remedies(quirks)

    def remedy(
        self,
        body: Json,
        error: UpstreamRefused,
        known: Iterable[Remedy],
        extra: Iterable[str],
    ) -> Remedy | None:
        """Find what to change after a refusal."""
        return remedy_for(body, error, known, extra)

    def apply(
        self, body: Json, remedies: Iterable[Remedy], *, new: bool, agent: bool
    ) -> Mended:
        """Make changes, and say what the user should hear of them."""
        return apply_remedies(body, remedies, new=new, agent=agent)

    def models(self, body: Any) -> list[str]:
        """Read the names in a list of models."""
        return model_ids(body)

    def windows(self, body: Any) -> dict[str, int]:
        """Read the windows that a list of models tells."""
        return model_windows(body)
