"""FIM: encode the request of each mode and read its answer; CHAT needs no codec.

They are endpoints of servers that speak OpenAI's API, and share its base URL, headers
and error bodies.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.chat import ChatRequest, FimRequest, Sampling
from byok.dialects.base import Codec, Target, UpstreamRequest
from byok.dialects.fim.answers import FimAnswer
from byok.dialects.fim.modes import FimMode
from byok.dialects.fim.profiles import FimProfile
from byok.dialects.fim.templates import template_of
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.parameter_rows import drop_row
from byok.dialects.remedies import RemedyTable
from byok.errors import UpstreamError
from byok.events import StreamEvent
from byok.stage import Stage, chain
from byok.wire.sse import ServerSentEvent, SSEDecoder

_CAPS = ("max_tokens", "n_predict")
_REMEDIES: RemedyTable = {"parameter": drop_row(("temperature", "top_p", *_CAPS))}


def modes_for(modes: Iterable[FimMode], model: str) -> list[FimMode]:
    """Return the modes that work with a model, judged by its name.

    Raises:
        UpstreamError: there is none.
    """
    fit = [m for m in modes if m is not FimMode.TEMPLATE or template_of(model)]
    if not fit:
        raise UpstreamError(
            f"no template is known for {model}.",
            code="no_template",
            hint='Set way = "auto" in [completion].',
        )
    return fit


@dataclass(frozen=True)
class FimCodec(Codec):
    """Sends the code around the gap instead of the messages.

    `write` returns the fields of one mode for a gap and a model; `cap` is the field
    that limits the tokens of the answer.
    """

    path: str
    write: Callable[[FimRequest, str], dict[str, Any]]
    answer: Callable[[], Stage[ServerSentEvent, StreamEvent]] = FimAnswer
    cap: str = "max_tokens"

    remedies: ClassVar[RemedyTable] = _REMEDIES

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode the gap of a chat request."""
        fim = chat.fim or FimRequest("", "")
        body = {"model": target.model, **self.write(fim, target.model), "stream": True}
        body |= self._limits(chat.sampling)
        if fim.one_line:
            body["stop"] = [*body.get("stop", ()), "\n"]
        return UpstreamRequest(self.path, {**body, **target.extra_body})

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Read the code for the gap."""
        return chain(SSEDecoder(), self.answer())

    def _limits(self, sampling: Sampling) -> dict[str, Any]:
        given = {
            self.cap: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        return {name: value for name, value in given.items() if value is not None}


def codecs_of(profile: FimProfile) -> Mapping[FimMode, Codec]:
    """Return the codecs of all modes except a chat.

    llama.cpp's endpoint is beside its /v1 and knows the FIM tokens of the model.
    Mistral's answer has the format of a chat.
    """
    return {
        FimMode.INFILL: FimCodec("/infill", _infill, cap="n_predict"),
        FimMode.SUFFIX: FimCodec(profile.suffix_path, _suffix),
        FimMode.FIM: FimCodec("fim/completions", _suffix, _chat_answer),
        FimMode.TEMPLATE: FimCodec("completions", write_template),
    }


def _infill(fim: FimRequest, model: str) -> dict[str, Any]:
    return {
        "input_prefix": fim.prefix,
        "input_suffix": fim.suffix,
        "input_extra": [],
        "cache_prompt": True,
    }


def _suffix(fim: FimRequest, model: str) -> dict[str, Any]:
    return {"prompt": fim.prefix, "suffix": fim.suffix}


def write_template(fim: FimRequest, model: str) -> dict[str, Any]:
    """Return the fields of the mode TEMPLATE, for a model that has a template."""
    if (template := template_of(model)) is None:
        raise ValueError(model)  # modes_for leaves it out
    prompt = template.prompt(fim.prefix, fim.suffix)
    return {"prompt": prompt, "stop": list(template.stop)}


def _chat_answer() -> OpenAIAnswer:
    return OpenAIAnswer({})
