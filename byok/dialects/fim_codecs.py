"""FIM: encoding the request of each mode and decoding its answer; CHAT has no codec.

Except for Ollama's, the endpoints belong to servers that speak OpenAI's API, and share
its base URL, headers and error bodies. Next edits use the same endpoints with the
prompts of `next_edit_formats`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from byok.core.chat import ChatRequest, FimRequest, NextEditRequest, Sampling
from byok.core.errors import UpstreamError
from byok.core.events import Finish, StreamEvent, TextDelta
from byok.core.stage import Stage, chain
from byok.core.wire.json_fields import read_objects, read_text
from byok.core.wire.json_lines import JsonLines
from byok.core.wire.sse import ServerSentEvent, SSEDecoder
from byok.dialects.answer_reader import EventReader, read_finish
from byok.dialects.base import Codec, Target, UpstreamRequest
from byok.dialects.error_bodies import refusal_of
from byok.dialects.fim_templates import FimMode, FimProfile, fim_profile_of, template_of
from byok.dialects.next_edit_formats import format_of, named_format
from byok.dialects.ollama.answer import OllamaAnswer
from byok.dialects.ollama.request import with_options
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.chunks import read_usage
from byok.dialects.presets import OLLAMA, OPENAI_CHAT, preset_of
from byok.dialects.remedies import RemedyTable, drop_row
from byok.dialects.safe_names import without_none

_CAPS = ("max_tokens", "n_predict")
_REMEDIES: RemedyTable = {"parameter": drop_row(("temperature", "top_p", *_CAPS))}
GENERATE_PATH = "/api/generate"


class FimAnswer(EventReader):
    """A Stage[ServerSentEvent, StreamEvent] that decodes the answer to a FIM request.

    llama.cpp's /infill sends `{"content", "stop"}`, all others send `choices[0].text`;
    both streamed or as one document.
    """

    dialect = OPENAI_CHAT

    def __init__(self) -> None:
        super().__init__()
        self._usage: Any = None

    def _end(self) -> None:
        self._emit_end(read_usage(self._usage))

    def _read_done_mark(self) -> None:
        if self._has_begun:
            self._end()

    def _flush_parts(self) -> None:
        self._add_text(self._text.flush())

    def _read_document(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error"):
            raise refusal_of(chunk)
        self._has_begun = True
        self._usage = chunk.get("usage") or self._usage
        self._add_text(self._text.feed(self._text_of(chunk)))
        if chunk.get("stop") is True:
            self._end()

    def _add_text(self, text: str) -> None:
        if text:
            self._events.append(TextDelta(text))

    def _text_of(self, chunk: dict[str, Any]) -> str:
        if isinstance(chunk.get("choices"), list):
            choices = read_objects(chunk, "choices")
            choice = next((c for c in choices if not c.get("index")), {})
            if reason := read_text(choice, "finish_reason"):
                self._finish = read_finish(reason)
            return read_text(choice, "text")
        if chunk.get("stop") is True:
            is_limited = chunk.get("stopped_limit") is True  # from older servers
            kind = "limit" if is_limited else read_text(chunk, "stop_type")
            self._finish = read_finish(kind)
        return read_text(chunk, "content")


def modes_for(modes: Iterable[FimMode], model: str) -> list[FimMode]:
    """Return the modes that work with a model, judged by its name.

    Raises:
        UpstreamError: no mode works with it.
    """
    usable = [m for m in modes if m is not FimMode.TEMPLATE or template_of(model)]
    if not usable:
        raise UpstreamError(
            f"no template is known for {model}.",
            code="no_template",
            hint='Set way = "auto" in [completion].',
        )
    return usable


@dataclass(frozen=True)
class FimCodec(Codec):
    """A codec that sends the code around the gap instead of the messages.

    `write` returns the fields of one mode for a gap and a model. `cap` is the field
    that limits the tokens of the answer. `streams`: the endpoint can stream.
    """

    path: str
    write: Callable[[FimRequest, str], dict[str, Any]]
    answer: Callable[[], Stage[ServerSentEvent, StreamEvent]] = FimAnswer
    cap: str = "max_tokens"
    streams: bool = True

    remedies: ClassVar[RemedyTable] = _REMEDIES

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode the gap of a chat request."""
        fim = chat.fim or FimRequest("", "")
        body = {"model": target.model, **self.write(fim, target.model)}
        fields = {
            "stream": self.streams,
            self.cap: chat.sampling.max_tokens,
            "temperature": chat.sampling.temperature,
            "top_p": chat.sampling.top_p,
        }
        body |= without_none(fields)
        if fim.one_line:
            body["stop"] = [*body.get("stop", ()), "\n"]
        return UpstreamRequest(self.path, body)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Return a reader of the code for the gap."""
        return chain(SSEDecoder(), self.answer())


def codecs_of(profile: FimProfile) -> Mapping[FimMode, Codec]:
    """Return the codecs of all modes except CHAT.

    llama.cpp's endpoint is next to its /v1 and knows the FIM tokens of the model.
    Mistral's answer has the format of a chat.
    """
    return {
        FimMode.INFILL: FimCodec(
            "/infill",
            lambda fim, _: {
                "input_prefix": fim.prefix,
                "input_suffix": fim.suffix,
                "input_extra": [],
                "cache_prompt": True,
            },
            cap="n_predict",
        ),
        FimMode.SUFFIX: FimCodec(profile.suffix_path, _suffix),
        FimMode.FIM: FimCodec("fim/completions", _suffix, partial(OpenAIAnswer, {})),
        FimMode.TEMPLATE: FimCodec("completions", write_template),
    }


def _suffix(fim: FimRequest, model: str) -> dict[str, Any]:
    return {"prompt": fim.prefix, "suffix": fim.suffix}


def write_template(fim: FimRequest, model: str) -> dict[str, Any]:
    """Return the fields of the mode TEMPLATE, for a model that has a template."""
    if (template := template_of(model)) is None:
        raise ValueError(model)  # modes_for excludes such models
    prompt = template.prompt(fim.prefix, fim.suffix)
    return {"prompt": prompt, "stop": list(template.stop)}


@dataclass(frozen=True)
class OllamaFimCodec(Codec):
    """A codec for `POST /api/generate` of Ollama (source: its API reference).

    It fills the gap before `suffix` by the template of the model, or takes a prompt
    with the model's special tokens as it is (`raw`). `write` returns the fields of one
    mode.
    """

    write: Callable[[FimRequest, str], dict[str, Any]]
    raw: bool = False

    settings: ClassVar[Collection[str]] = ("options",)

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode the gap; another window than that of chats would reload the model."""
        fim = chat.fim or FimRequest("", "")
        fields = self.write(fim, target.model)
        stop = tuple(fields.pop("stop", ())) + (("\n",) if fim.one_line else ())
        body = {"model": target.model, **fields, "stream": True}
        body |= {"raw": True} if self.raw else {}
        body |= {"truncate": False, "shift": False, "think": False}
        sampling = replace(chat.sampling, stop=(*chat.sampling.stop, *stop))
        return UpstreamRequest(GENERATE_PATH, with_options(body, sampling, target))

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Return a reader of the code for the gap."""
        return chain(JsonLines(), OllamaAnswer())


def ollama_codecs() -> Mapping[FimMode, Codec]:
    """Return the codecs of Ollama's own API."""
    return {
        # The server treats a prompt without a suffix as a chat.
        FimMode.SUFFIX: OllamaFimCodec(
            lambda fim, _: {"prompt": fim.prefix, "suffix": fim.suffix or "\n"}
        ),
        FimMode.TEMPLATE: OllamaFimCodec(write_template, raw=True),
    }


@dataclass(frozen=True)
class NextEditCodec(Codec):
    """A codec for next edits in one format, by the codec of its mode.

    The Finish of an answer names the format, because only the client's reply, which
    knows the file, can decode it.
    """

    format: str
    codec: Codec

    remedies: ClassVar[RemedyTable] = _REMEDIES

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode the request, with `max_tokens` for the longest suggestion."""
        request = chat.next_edit or NextEditRequest("", "")
        row = named_format(self.format)
        limit = row.most_tokens(request)
        temperature = None if row.mode is FimMode.EDIT else 0.0
        sampling = Sampling(
            temperature, max_tokens=min(limit, chat.sampling.max_tokens or limit)
        )
        return self.codec.encode(replace(chat, fim=request, sampling=sampling), target)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Return a reader that adds the format to the Finish."""
        return chain(self.codec.reader(sent), _FormatMarker(self.format))


@dataclass(frozen=True)
class _FormatMarker:
    """A Stage[StreamEvent, StreamEvent] that adds the format to the Finish."""

    format: str

    def feed(self, event: StreamEvent, /) -> tuple[StreamEvent]:
        if isinstance(event, Finish):
            event.format = self.format
        return (event,)

    def flush(self) -> tuple[()]:
        return ()


def next_edit_codecs(vendor: str) -> Mapping[FimMode, Codec]:
    """Return the codecs for next edits of a vendor's models, by mode."""
    if vendor == OLLAMA:
        return {FimMode.TEMPLATE: OllamaFimCodec(_write_next_edit, raw=True)}
    profile, path = fim_profile_of(vendor), preset_of(vendor).edit_path
    known: dict[FimMode, Codec] = {
        FimMode.FIM: codecs_of(profile)[FimMode.FIM],
        FimMode.TEMPLATE: FimCodec("completions", _write_next_edit),
    }
    codecs = {mode: known[mode] for mode in profile.modes if mode in known}
    if path:
        codecs[FimMode.EDIT] = FimCodec(
            path,
            lambda fim, model: {
                "messages": [{"role": "user", "content": _prompt(fim, model)}]
            },
            partial(OpenAIAnswer, {}),
            streams=False,
        )
    return codecs


def _write_next_edit(fim: FimRequest, model: str) -> dict[str, Any]:
    stop = named_format(format_of(model)).stop
    return {"prompt": _prompt(fim, model), "stop": list(stop)}


def _prompt(fim: FimRequest, model: str) -> str:
    if not isinstance(fim, NextEditRequest):
        raise TypeError(fim)
    return named_format(format_of(model)).prompt(fim)
