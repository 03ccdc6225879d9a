"""FIM: Ollama's own endpoint for prompts.

`POST /api/generate` fills the gap before `suffix` by the marks of the model's template,
or takes a prompt with these marks as it is (`raw`). Source: its API reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from byok.chat import ChatRequest, FimRequest, Sampling
from byok.dialects.base import Codec, Target, UpstreamRequest
from byok.dialects.fim.codecs import write_template
from byok.dialects.fim.modes import FimMode
from byok.dialects.ollama.answer import OllamaAnswer
from byok.dialects.ollama.request import with_options
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.json_lines import JsonLines

GENERATE_PATH = "/api/generate"


@dataclass(frozen=True)
class OllamaFimCodec(Codec):
    """Sends the code around the gap; `write` returns the fields of one mode."""

    write: Callable[[FimRequest, str], dict[str, Any]]
    raw: bool = False

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode the gap; the window stays that of chats, or the model is reloaded."""
        fim = chat.fim or FimRequest("", "")
        fields = self.write(fim, target.model)
        stop = tuple(fields.pop("stop", ())) + (("\n",) if fim.one_line else ())
        body = {"model": target.model, **fields, "stream": True}
        body |= {"raw": True} if self.raw else {}
        body |= {"truncate": False, "shift": False, "think": False}
        given = chat.sampling
        sampling = Sampling(
            given.temperature, given.top_p, given.max_tokens, stop=(*given.stop, *stop)
        )
        return UpstreamRequest(GENERATE_PATH, with_options(body, sampling, target))

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Read the code for the gap."""
        return chain(JsonLines(), OllamaAnswer())


def _suffix(fim: FimRequest, model: str) -> dict[str, Any]:
    """Return the gap; without a suffix the server would see a question of a chat."""
    return {"prompt": fim.prefix, "suffix": fim.suffix or "\n"}


def ollama_codecs() -> Mapping[FimMode, Codec]:
    """Return the codecs of Ollama's own API."""
    return {
        FimMode.SUFFIX: OllamaFimCodec(_suffix),
        FimMode.TEMPLATE: OllamaFimCodec(write_template, raw=True),
    }
