"""The dialect of Ollama's own API.

Its compatible API under /v1 has no field for the window, and silently leaves out the
beginning of a prompt that exceeds it.
"""

import re
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
from byok.dialects.chat_rows import CHAT_ROWS
from byok.dialects.error_bodies import refusal_of_response
from byok.dialects.model_facts import ModelFacts
from byok.dialects.ollama import models
from byok.dialects.ollama.answer import OllamaAnswer
from byok.dialects.ollama.changes import THINK_ROW
from byok.dialects.ollama.request import encode_request
from byok.dialects.parameter_rows import drop_row
from byok.dialects.presets import OLLAMA
from byok.dialects.remedies import RemedyTable
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.json_lines import JsonLines

_MISSING = re.compile(r"model ['\"]([\w./:-]{1,100})['\"] not found")
_OTHER_PATHS = ("/v1", "/api")  # where users find other clients pointed to


REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "think": THINK_ROW,
    "parameter": drop_row(("format",)),
}


@dataclass(frozen=True)
class Ollama(Dialect):
    """Dialect: Ollama's own API, which it serves on its machine and in its cloud."""

    name: ClassVar[str] = OLLAMA
    loads_window: ClassVar[bool] = True
    remedies: ClassVar[RemedyTable] = REMEDIES

    @classmethod
    def of(cls, vendor: str) -> "Ollama":
        """Return the dialect, which is the same for all vendors."""
        del vendor
        return cls()

    @property
    def sends_thoughts(self) -> bool:
        """Reasoning goes back beside tool calls."""
        return True

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a request of `/api/chat`."""
        return encode_request(chat, target)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Decode lines of JSON, or one document."""
        return chain(JsonLines(), OllamaAnswer(sent.tool_names, sent.origin))

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path; a base URL may end in the path of an API."""
        for ending in _OTHER_PATHS:
            base_url = without_ending(base_url, ending)
        return base_url + path

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; only Ollama's cloud wants a key."""
        headers = {"Accept": "application/x-ndjson, application/json"}
        return headers | ({"Authorization": f"Bearer {key}"} if key else {})

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode `{"error": "text"}`; a model that is not there can be pulled."""
        error = refusal_of_response(response)
        if missing := _MISSING.search(error.message):
            return error.with_hint(
                f"Get it on that machine with: ollama pull {missing[1]}. byok models "
                "lists those that are there."
            )
        return error

    def models_path(self) -> str:
        """Return the path of the list of local models."""
        return models.TAGS

    def read_models(self, body: Any) -> ModelPage:
        """Decode the list, which has one page."""
        return ModelPage(models.read_models(body))

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Ask how a model is loaded, and what it takes."""
        return (Probe(models.PS), Probe(models.SHOW, {"model": model}))

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Decode either answer."""
        return models.read_probe(body, model)
