"""Filling a gap in code: the request in each of the ways but a chat."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from byok.chat import NO_ORIGIN, ChatRequest, FimRequest, Origin, Sampling
from byok.dialects.base import Dialect, Target, UpstreamRequest
from byok.dialects.fim.answers import FimAnswer
from byok.dialects.fim.templates import template_of
from byok.dialects.fim_mode import FimMode
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.errors import UpstreamError
from byok.events import StreamEvent
from byok.stage import Stage
from byok.wire.sse import ServerSentEvent


def modes_for(ways: Iterable[FimMode], model: str) -> list[FimMode]:
    """Return the ways that a model's name allows, in their order.

    Raises:
        UpstreamError: there is none.
    """
    fit = [w for w in ways if w is not FimMode.TEMPLATE or template_of(model)]
    if not fit:
        raise UpstreamError(
            f"no template is known for {model}.",
            code="no_template",
            hint='Set way = "auto" in [completion].',
        )
    return fit


class FimDialect(OpenAIChat):
    """Dialect that sends what stands around the gap, instead of the messages."""

    def __init__(
        self,
        write: Callable[[FimRequest, Target], tuple[str, dict[str, Any]]],
        answer: Callable[[], Stage[ServerSentEvent, StreamEvent]] = FimAnswer,
        cap: str = "max_tokens",
    ) -> None:
        self._write = write
        self._answer = answer
        self._cap = cap

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write the request for a chat that has a gap."""
        fill = chat.fim or FimRequest("", "")
        path, body = self._write(fill, target)
        body |= {"stream": True, **self._limits(chat.sampling)}
        if fill.one_line:
            body["stop"] = [*body.get("stop", ()), "\n"]
        return UpstreamRequest(path, {**body, **target.extra_body})

    def decoder(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> Stage[ServerSentEvent, StreamEvent]:
        """Read the text for the gap."""
        del tool_names, origin
        return self._answer()

    def _limits(self, sampling: Sampling) -> dict[str, Any]:
        given = {
            self._cap: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        return {name: value for name, value in given.items() if value is not None}


def _infill(fill: FimRequest, target: Target) -> tuple[str, dict[str, Any]]:
    """Ask llama.cpp; its endpoint lies beside /v1, and knows the model's marks."""
    return "/infill", {
        "model": target.model,  # for those that serve several
        "input_prefix": fill.prefix,
        "input_suffix": fill.suffix,
        "input_extra": [],
        "cache_prompt": True,
    }


def _suffix(fill: FimRequest, target: Target) -> tuple[str, dict[str, Any]]:
    body = {"model": target.model, "prompt": fill.prefix, "suffix": fill.suffix}
    return target.quirks.suffix_path, body


def _fim(fill: FimRequest, target: Target) -> tuple[str, dict[str, Any]]:
    _, body = _suffix(fill, target)
    return "fim/completions", body


def _template(fill: FimRequest, target: Target) -> tuple[str, dict[str, Any]]:
    if (template := template_of(target.model)) is None:
        raise ValueError(target.model)  # ways_for leaves it out
    prompt = template.prompt(fill.prefix, fill.suffix)
    stop = list(template.stop)
    return "completions", {"model": target.model, "prompt": prompt, "stop": stop}


# Mistral's answer is that of a chat.
FIM_DIALECTS: Mapping[FimMode, Dialect] = {
    FimMode.INFILL: FimDialect(_infill, cap="n_predict"),
    FimMode.SUFFIX: FimDialect(_suffix),
    FimMode.FIM: FimDialect(_fim, lambda: OpenAIAnswer({})),
    FimMode.TEMPLATE: FimDialect(_template),
}
