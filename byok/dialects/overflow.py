"""Context overflow: the words that refusals have for it, and the counts that they name.

Rate limits and quotas mention tokens as well, so these words count only where a refusal
is neither (`refusals.py`). The counts are looked for in overflows alone. The first row
that matches decides; text is in lower case.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# A word for the window alone is no sign: parameters have it in their names.
OVERFLOW_SIGNS = (
    r"^(?=.*(?:exceed|too (?:long|large)|maximum|reduce|longer|greater|\d{3}))"
    r".*context[ _]?(?:length|size|window|limit)",
    r"(?:prompt|input) (?:is |tokens )?too long", r"prompt exceeds max",
    r"too many tokens(?! in )", r"maximum prompt length",
    r"token count.* exceeds the (?:limit|maximum)", r"exceeded model token limit",
    r"reduce the length of the (?:messages|prompt|input)",
    r"range of input length", r"input tokens.* exceed", r"input length.* exceeds",
    r"prompt length.* exceeds", r"exceed max message tokens", r"max_seq_len",
    r"max_new_tokens` must be", r"inputs` must have less",
    r"max size: \d+ tokens", r"tokens_limit_reached", r"expected maxlength",
    r"too many prompt tokens", r"reduce the (?:prompt|input|conversation)",
    r"(?:prompt|输入|上下文|内容).{0,6}(?:超长|过长)|超[过出].{0,9}(?:上下文|最大长度|token)",
)  # fmt: skip
_N = r"(\d[\d,_]*)"
# The most tokens that the model takes.
_WINDOW = (
    rf"context length (?:is|of)(?: only)? {_N}",  # OpenAI, vLLM, DeepSeek, LM Studio
    rf"context length \({_N}",  # Together, SGLang
    rf"with {_N} maximum context length",  # Mistral
    rf"tokens > {_N} maximum",  # Anthropic
    rf"context limit: {_N} \+ {_N} > {_N}",
    rf"maximum number of tokens allowed \({_N}",  # Gemini
    rf"only supports up to {_N}",
    rf"maximum prompt length is {_N}",  # xAI
    rf"available context size \({_N}",  # llama.cpp
    rf"\bn_ctx: ?{_N}",  # LM Studio
    rf"context window of {_N}",  # llama-cpp-python
    rf"context window limit \({_N}",  # Cloudflare
    rf"token limit: ?{_N}",  # Moonshot
    rf"limit for this model is {_N}",  # Cohere
    rf"exceeds the limit of {_N}",  # Copilot
    rf"range of input length should be \[\d+, ?{_N}",  # DashScope
    rf"configured limit of {_N}",  # OpenAI
    rf"max size: {_N} tokens",  # GitHub, Azure
    rf"max_seq_len \({_N}",  # SiliconFlow
    rf"must be <= {_N}",  # Text Generation Inference
    rf"must have less than {_N} tokens",
    rf"exceeds the maximum length {_N}",  # Volcengine
    rf"maximum context length: {_N}",  # Fireworks
    rf"while limit is {_N}",  # Cerebras
    rf"maximum input length \({_N}",  # TensorRT-LLM
    rf"total tokens limit {_N}",  # watsonx
)
# The tokens of what was sent, without those that are kept for the answer.
_COUNTED = (
    rf"messages resulted in {_N}",  # OpenAI
    rf"\({_N} in the messages",
    rf"\({_N} of text input",  # OpenRouter
    rf"contains at least {_N} input tokens",  # vLLM
    rf"request has {_N} input tokens",
    rf"context limit: {_N}",  # Anthropic
    rf"prompt is too long: {_N}",
    rf"input token count \({_N}",  # Gemini
    rf"(?:input|request) \({_N} tokens\)",  # Together, llama.cpp
    rf"prompt contains {_N} tokens",  # Mistral
    rf"request contains {_N}",  # xAI
    rf"requested tokens \({_N}",  # llama-cpp-python
    rf"prompt token count of {_N}",  # Copilot
    rf"prompt_tokens \({_N}",  # SiliconFlow
    rf"given: {_N} `inputs`",  # Text Generation Inference
    rf"input length {_N} exceeds",  # Volcengine
    rf"current length is {_N}",  # Cerebras
    rf"prompt length \({_N}",  # TensorRT-LLM
    rf"\(requested: {_N}",  # Moonshot
    rf"number of input tokens {_N}",  # watsonx
)
_FIELDS = ("n_ctx", "n_prompt_tokens")  # llama.cpp
_SANE = range(64, 2**31)


@dataclass(frozen=True, slots=True)
class Overflow:
    """Token counts of a refusal: the model's context window, and the prompt's."""

    window: int | None = None
    counted: int | None = None


def overflow_of(message: str, error: Any) -> Overflow:
    """Extract the token counts from a refusal's text or from its fields."""
    fields = error if isinstance(error, dict) else {}
    text = message.lower()
    window, counted = (_sane(fields.get(name)) for name in _FIELDS)
    return Overflow(
        window or _last_number(_WINDOWS, text), counted or _last_number(_COUNTS, text)
    )


def _compile(rows: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(row) for row in rows)


_WINDOWS, _COUNTS = _compile(_WINDOW), _compile(_COUNTED)


def _last_number(rows: Iterable[re.Pattern[str]], text: str) -> int | None:
    """Return the last number of the first row that is found."""
    for row in rows:
        if match := row.search(text):
            return _sane(int(re.sub(r"[,_]", "", match.groups()[-1][:20])))
    return None


def _sane(value: Any) -> int | None:
    return value if type(value) is int and value in _SANE else None
