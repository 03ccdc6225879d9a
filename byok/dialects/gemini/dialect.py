"""The dialect of Gemini's generateContent API, as Google AI and Vertex AI serve it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.chat import ChatRequest
from byok.dialects.base import (
    Dialect,
    ErrorResponse,
    ModelPage,
    Target,
    UpstreamRequest,
)
from byok.dialects.chat_rows import presumed_remedies
from byok.dialects.error_bodies import refusal_of_response
from byok.dialects.gemini.answer import GeminiAnswer
from byok.dialects.gemini.models import MODELS_PATH, read_models
from byok.dialects.gemini.remedies import REMEDIES
from byok.dialects.gemini.request import encode_request
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import GEMINI
from byok.dialects.remedies import Remedy, RemedyTable
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.sse import SSEDecoder

_OAUTH = "ya29."  # how access tokens of Google Cloud begin
_MOST_TOOLS = 512  # functions in one request


@dataclass(frozen=True)
class Gemini(Dialect):
    """Dialect: models/MODEL:streamGenerateContent."""

    name: ClassVar[str] = GEMINI
    remedies: ClassVar[RemedyTable] = REMEDIES

    @classmethod
    def of(cls, vendor: str) -> "Gemini":
        """Return the dialect of a vendor; all of them speak it alike."""
        return cls()

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a streamGenerateContent request."""
        return encode_request(chat, target)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Decode events, an array of chunks, or one GenerateContentResponse."""
        return chain(SSEDecoder(), GeminiAnswer(sent.tool_names, sent.origin))

    def presumed_remedies(self, facts: ModelFacts) -> tuple[Remedy, ...]:
        """Keep to the number of tools that the API accepts."""
        return presumed_remedies(facts, _MOST_TOOLS)

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; an access token of Google Cloud is a bearer token."""
        headers = {"Accept": "text/event-stream, application/json"}
        if key.startswith(_OAUTH):
            return headers | {"Authorization": f"Bearer {key}"}
        return headers | {"x-goog-api-key": key} if key else headers

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode an error body, and the wait from the headers."""
        return refusal_of_response(response)

    def models_path(self) -> str:
        """Return the path of the first page of the list."""
        return MODELS_PATH

    def read_models(self, body: Any) -> ModelPage:
        """Decode a page of the list, with the limits of each model."""
        return read_models(body)
