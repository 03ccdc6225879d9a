"""Numbers in refusals: how long to wait, which quota is used up, counts of tokens.

The wait is in a header, in the fields or details of the error, or only in the message.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct

from byok.core.chat import Json
from byok.core.late import compile_late
from byok.core.wire.json_fields import read_object, read_objects

_UNIT_SECONDS = {
    "ms": 0.001,
    "mi": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_UNIT = r"(?:ms|milli|[smhd])"
_PART = rf"\d{{1,9}}(?:\.\d{{1,15}})?\s?{_UNIT}[a-z]*"
_PARTS = compile_late(rf"(\d{{1,9}}(?:\.\d{{1,15}})?)\s?({_UNIT})")
# "try again in 1m26.4s", "retry after 26 seconds", "please wait 2 hours and 5 minutes"
_WAIT_REQUEST = compile_late(
    r"(?:(?:retry|try(?: it)? again|resets?|available(?: again)?) (?:in|after)|\bwait)"
    rf"(?: (?:for|about|at least))? ((?:{_PART},?(?:\s?and\s|\s?)){{1,4}})"
)
_SPAN = compile_late(rf"(?:{_PART}\s?){{1,4}}")
_MAX_UNIT_COUNT = 119  # more seconds are shown as minutes, more minutes as hours
_WAIT_FIELDS = (  # seconds
    "retry_after",
    "retry_after_seconds",
    "retryAfter",
    "resets_in_seconds",
    "reset_after",
)
_TIME_FIELDS = ("resets_at", "reset_at", "resetAt", "quotaResetTimeStamp")
_DATE = compile_late(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
)
_RESET = compile_late(
    r"reset|refresh|renew|available|until|重置|恢复|刷新", re.IGNORECASE
)
_MAX_NUMBER_CHARS = 18
_MIN_EPOCH = 1e9  # a smaller number is a span in seconds; from 1e12, milliseconds

# Texts of refusals because of an overflow of the context window; in lower case, as all
# patterns below. A word for the window alone is not enough: parameters have it in their
# names. Rate limits and quotas mention tokens as well, so these patterns count only if
# a refusal is neither (`refusals.py`).
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
    r"must be at least 1, got -\d",  # the rest of the window
    r"(?:prompt|输入|上下文|内容).{0,6}(?:超长|过长)|超[过出].{0,9}(?:上下文|最大长度|token)",
)  # fmt: skip
# Counts of tokens in overflows: the first pattern that matches decides.
_N = r"(\d[\d,_]*)"
# The context window of the model.
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
# The tokens of the prompt, without those reserved for the answer.
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
_OVERFLOW_FIELDS = ("n_ctx", "n_prompt_tokens")  # llama.cpp
_PLAUSIBLE_TOKENS = range(64, 2**31)
_WINDOW_PATTERNS = [*map(re.compile, _WINDOW)]
_COUNT_PATTERNS = [*map(re.compile, _COUNTED)]


def requested_wait(message: str, error: Any, now: float = 0.0) -> float | None:
    """Return the seconds to wait that an error body names, or None.

    `now` is the time in seconds since 1970; if it is 0, times of a reset are ignored.
    """
    for detail in read_objects(error, "details"):
        if isinstance(delay := detail.get("retryDelay"), str) and delay:
            return _seconds(delay)
    for holder in _holders(error):
        for name in _WAIT_FIELDS:
            if (seconds := _field(holder.get(name))) is not None:
                return seconds
    if match := _WAIT_REQUEST.search(message.lower()):
        return _seconds(match[1])
    return _until_reset(message, error, now) if now else None


def reset_time(message: str) -> str:
    """Return the time of a reset that a message names, unchanged, or "".

    Many times have no zone, so they are only shown, and no wait is computed from them.
    """
    date = _DATE.search(message) if _RESET.search(message) else None
    return date[0] if date else ""


def _until_reset(message: str, error: Any, now: float) -> float | None:
    """Return the seconds until the time of a reset, None if it has no zone."""
    values = [holder.get(name) for holder in _holders(error) for name in _TIME_FIELDS]
    for value in (*values, reset_time(message)):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value:
            continue
        if (number := _number(value)) is not None:
            return _until(value, now) if number >= _MIN_EPOCH else None
        text = re.sub(r" ?(?:UTC|GMT)$", "Z", value)
        text = re.sub(r" ([+-])", r"\1", text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        if moment.tzinfo is not None:
            return max(0.0, moment.timestamp() - now)
    return None


def quotas_exceeded(error: Any) -> str:
    """Return the names of the quotas that were used up, such as `...PerDay...`."""
    names = [
        violation.get("quotaId")
        for detail in read_objects(error, "details")
        for violation in read_objects(detail, "violations")
    ]
    details = read_objects(error, "details")
    names += [read_object(detail, "metadata").get("quota_limit") for detail in details]
    return " ".join(name for name in names if isinstance(name, str))


def read_error_reasons(error: Any) -> list[str]:
    """Return the reasons of Google's `ErrorInfo`, in lower case."""
    reasons = (detail.get("reason") for detail in read_objects(error, "details"))
    return [reason.lower() for reason in reasons if isinstance(reason, str)]


def wait_in_words(seconds: float) -> str:
    """Return a wait for display: `36 s`, `2 min`, `5 h`, `6 days`."""
    if seconds <= _MAX_UNIT_COUNT:
        return f"{max(1, math.ceil(seconds))} s"
    for size, unit in ((60, "min"), (3600, "h")):
        if seconds <= _MAX_UNIT_COUNT * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds / 86400)} days"


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that the headers of an error request, or None.

    Retry-After has seconds or an HTTP date (RFC 9110, 10.2.3), OpenAI's and Azure's
    retry-after-ms milliseconds. Without both, the reset of used-up quotas counts.
    `now` is the time in seconds since 1970.
    """
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    text = headers.get("retry-after", "").strip()
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return _span(text) if text else _wait_for_quotas(headers, now)


def _wait_for_quotas(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until every used-up quota is reset, or None.

    `x-ratelimit-reset-tokens` belongs to `x-ratelimit-remaining-tokens`, and
    `anthropic-ratelimit-tokens-reset` to `anthropic-ratelimit-tokens-remaining`. The
    headers of OpenRouter and the IETF name no quota.
    """
    waits: list[float] = []
    for name, value in headers.items():
        name = name.lower()
        if "ratelimit" not in name or "reset" not in name:
            continue
        remaining = headers.get(name.replace("reset", "remaining"), "0").strip()
        if _number(remaining) == 0 and (wait := _until(value.strip(), now)) is not None:
            waits.append(wait)
    return max(waits, default=None)


def _until(value: str, now: float) -> float | None:
    """Read a time or a span: seconds, seconds since 1970, RFC 3339, or `6m0s`."""
    if (number := _number(value)) is not None:
        if number < _MIN_EPOCH:
            return number
        return max(
            0.0, (number / 1000 if number >= 1000 * _MIN_EPOCH else number) - now
        )
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return _span(value)
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)


def _holders(error: Any) -> Iterator[Json]:
    """Yield the error, and the metadata of a router and of the error's details."""
    if isinstance(error, dict):
        yield error
        yield read_object(error, "metadata")
    yield from (
        read_object(detail, "metadata") for detail in read_objects(error, "details")
    )


def _field(value: Any) -> float | None:
    if isinstance(value, str):
        return _number(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MIN_EPOCH else None


def _seconds(text: str) -> float | None:
    parts = _PARTS.findall(text.lower())
    return (
        sum(float(n) * _UNIT_SECONDS[unit[:2]] for n, unit in parts) if parts else None
    )


def _span(text: str) -> float | None:
    """Read `6m0s`; None for any other text."""
    return _seconds(text) if _SPAN.fullmatch(text.lower()) else None


def _number(text: str) -> float | None:
    text = text.strip()
    is_number = len(text) <= _MAX_NUMBER_CHARS and text.replace(".", "", 1).isdecimal()
    return float(text) if is_number else None


class Overflow(Struct, frozen=True):
    """Token counts of a refusal: the model's context window, and the prompt's."""

    window: int | None = None
    counted: int | None = None


def overflow_of(message: str, error: Any) -> Overflow:
    """Extract the token counts from a refusal's text or from its fields."""
    fields = error if isinstance(error, dict) else {}
    text = message.lower()
    window, counted = (_plausible(fields.get(name)) for name in _OVERFLOW_FIELDS)
    return Overflow(
        window or _last_number(_WINDOW_PATTERNS, text),
        counted or _last_number(_COUNT_PATTERNS, text),
    )


def _last_number(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    """Return the last number of the first pattern that matches, or None."""
    for pattern in patterns:
        if match := pattern.search(text):
            return _plausible(int(re.sub(r"[,_]", "", match.groups()[-1][:20])))
    return None


def _plausible(value: Any) -> int | None:
    return value if type(value) is int and value in _PLAUSIBLE_TOKENS else None
