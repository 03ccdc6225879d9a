"""The dialect of Anthropic's Messages API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.chat import ChatRequest
from byok.dialects.anthropic.answer import AnthropicAnswer
from byok.dialects.anthropic.models import FIRST_PAGE, read_models
from byok.dialects.anthropic.remedies import REMEDIES
from byok.dialects.anthropic.request import encode_request
from byok.dialects.base import (
    Dialect,
    ErrorResponse,
    ModelPage,
    Target,
    UpstreamRequest,
)
from byok.dialects.error_bodies import refusal_of_response
from byok.dialects.presets import ANTHROPIC
from byok.dialects.remedies import RemedyTable
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.sse import SSEDecoder

_VERSION = "2023-06-01"


@dataclass(frozen=True)
class AnthropicMessages(Dialect):
    """Dialect: the Messages API, which all its servers speak alike."""

    name: ClassVar[str] = ANTHROPIC
    serves: ClassVar[frozenset[str]] = frozenset({"messages", "messages/count_tokens"})
    remedies: ClassVar[RemedyTable] = REMEDIES

    @classmethod
    def of(cls, vendor: str) -> "AnthropicMessages":
        """Return the dialect of a vendor, named by its preset."""
        return cls()

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a request for `messages`."""
        return encode_request(chat, target)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Decode the events of a message, or one whole message."""
        return chain(SSEDecoder(), AnthropicAnswer(sent.tool_names, sent.origin))

    @property
    def sends_thoughts(self) -> bool:
        """Whether earlier reasoning is sent back: all of it, as it was signed."""
        return True

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the version is needed with and without a key."""
        headers = {
            "Accept": "text/event-stream, application/json",
            "anthropic-version": _VERSION,
        }
        return headers | {"x-api-key": key} if key else headers

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode an error body, and the wait from the headers."""
        return refusal_of_response(response)

    def models_path(self) -> str:
        """Return the path of the first page."""
        return FIRST_PAGE

    def read_models(self, body: Any) -> ModelPage:
        """Decode a page of the list, with windows, limits and capabilities."""
        return read_models(body)
