"""The dialect of OpenAI Chat Completions and of compatible APIs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.chat import ChatRequest
from byok.dialects.base import (
    Dialect,
    ErrorResponse,
    ModelPage,
    Probe,
    Target,
    UpstreamRequest,
)
from byok.dialects.base_urls import without_ending
from byok.dialects.chat_rows import presumed_remedies
from byok.dialects.error_bodies import refusal_of_response
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.loaded_window import read_loaded_window
from byok.dialects.openai_chat.models import read_models
from byok.dialects.openai_chat.quirks import DEFAULT, Quirks, quirks_of
from byok.dialects.openai_chat.remedies import REMEDIES
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.openai_headers import openai_headers
from byok.dialects.presets import DEFAULT_PATHS, OPENAI_CHAT
from byok.dialects.remedies import Remedy, RemedyTable
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.sse import SSEDecoder


@dataclass(frozen=True)
class OpenAIChat(Dialect):
    """Dialect: Chat Completions as one vendor implements it."""

    quirks: Quirks = DEFAULT

    name: ClassVar[str] = OPENAI_CHAT
    serves: ClassVar[frozenset[str]] = frozenset(
        {"chat/completions", "completions", "embeddings"}
    )
    remedies: ClassVar[RemedyTable] = REMEDIES
    sends_thoughts: ClassVar[bool] = True

    @classmethod
    def of(cls, vendor: str) -> "OpenAIChat":
        """Return the dialect of a vendor, named by its preset."""
        return cls(quirks_of(vendor))

    def presumed_remedies(self, facts: ModelFacts) -> tuple[Remedy, ...]:
        """Keep to the number of tools and the order of roles that the vendor takes."""
        roles = (Remedy("roles"),) if self.quirks.strict_roles else ()
        return (*presumed_remedies(facts, self.quirks.most_tools), *roles)

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a chat/completions request."""
        return encode_request(chat, target, self.quirks)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Decode chat.completion.chunk events, or one chat.completion."""
        return chain(SSEDecoder(), OpenAIAnswer(sent.tool_names, sent.origin))

    @property
    def second_best(self) -> frozenset[str]:
        """Chats, where the vendor has an API of its own that does more."""
        return frozenset({"chat/completions"} if self.quirks.stands_in else ())

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path; a path with a leading "/" is beside /v1."""
        if path.startswith("/"):
            return without_ending(base_url, DEFAULT_PATHS[OPENAI_CHAT]) + path
        return f"{base_url}/{path}"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the key is a bearer token or in the vendor's header."""
        return openai_headers(key, self.quirks.auth_header)

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode an error body, and the wait from the headers."""
        return refusal_of_response(response)

    def models_path(self) -> str:
        """Return the path of the list, which has one page."""
        return "models"

    def read_models(self, body: Any) -> ModelPage:
        """Decode the list: ids, and the windows that some vendors add."""
        return ModelPage(read_models(body))

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Ask a local server about the model that it has loaded."""
        return tuple(map(Probe, self.quirks.loaded))

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Decode the window of a loaded model."""
        return ModelFacts(model, read_loaded_window(body, model))
