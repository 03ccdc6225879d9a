"""Rate limits: how long an upstream asks to wait, and which quota is used up.

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

_UNITS = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT = r"(?:ms|milli|[smhd])"
_PART = rf"\d{{1,9}}(?:\.\d{{1,15}})?\s?{_UNIT}[a-z]*"
_PARTS = compile_late(rf"(\d{{1,9}}(?:\.\d{{1,15}})?)\s?({_UNIT})")
# "try again in 1m26.4s", "retry after 26 seconds", "please wait 2 hours and 5 minutes"
_ASKED = compile_late(
    r"(?:(?:retry|try(?: it)? again|resets?|available(?: again)?) (?:in|after)|\bwait)"
    rf"(?: (?:for|about|at least))? ((?:{_PART},?(?:\s?and\s|\s?)){{1,4}})"
)
_SPAN = compile_late(rf"(?:{_PART}\s?){{1,4}}")
_LONGEST_WORDS = 119  # seconds that are shown as seconds, not minutes
_FIELDS = (
    "retry_after",
    "retry_after_seconds",
    "retryAfter",
    "resets_in_seconds",
    "reset_after",
)
_TIMES = ("resets_at", "reset_at", "resetAt", "quotaResetTimeStamp")
_DATE = compile_late(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
)
_RESET = compile_late(
    r"reset|refresh|renew|available|until|重置|恢复|刷新", re.IGNORECASE
)
_MOST_DIGITS = 18  # of a number, or it is none
_EPOCH = 1e9  # a larger number of seconds is a time, one of 1e12 has milliseconds


def requested_wait(message: str, error: Any, now: float = 0.0) -> float | None:
    """Return the seconds to wait that an error body names, or None.

    `now` is the time in seconds since 1970; where it is 0, times of day do not count.
    """
    for detail in read_objects(error, "details"):
        if isinstance(delay := detail.get("retryDelay"), str) and delay:
            return _seconds(delay)
    for place in _places(error):
        for name in _FIELDS:
            if (seconds := _field(place.get(name))) is not None:
                return seconds
    if found := _ASKED.search(message.lower()):
        return _seconds(found[1])
    return _until_reset(message, error, now) if now else None


def reset_time(message: str) -> str:
    """Return the time at which a message says that a limit is reset, as it has it.

    Many times have no zone, so they are shown, and nothing is calculated with them.
    """
    found = _DATE.search(message) if _RESET.search(message) else None
    return found[0] if found else ""


def _until_reset(message: str, error: Any, now: float) -> float | None:
    """Return the seconds until the time of a reset, which must have a zone."""
    values = [place.get(name) for place in _places(error) for name in _TIMES]
    for value in (*values, reset_time(message)):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value:
            continue
        if (number := _number(value)) is not None:
            return _until(value, now) if number >= _EPOCH else None
        text = re.sub(r" ?(?:UTC|GMT)$", "Z", value)
        text = re.sub(r" ([+-])", r"\1", text)
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            continue
        if when.tzinfo is not None:
            return max(0.0, when.timestamp() - now)
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
    if seconds <= _LONGEST_WORDS:
        return f"{max(1, math.ceil(seconds))} s"
    for size, unit in ((60, "min"), (3600, "h")):
        if seconds <= _LONGEST_WORDS * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds / 86400)} days"


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that the headers of an error ask for, or None.

    Retry-After has seconds or an HTTP date (RFC 9110, 10.2.3), OpenAI's and Azure's
    retry-after-ms milliseconds. Without both, the quotas count that have nothing left.
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
    """Return the seconds until every quota that is used up is filled again.

    Beside `x-ratelimit-reset-tokens` stands `x-ratelimit-remaining-tokens`, beside
    `anthropic-ratelimit-tokens-reset` stands `anthropic-ratelimit-tokens-remaining`;
    OpenRouter's and IETF's headers name no quota.
    """
    waits: list[float] = []
    for name, value in headers.items():
        name = name.lower()
        if "ratelimit" not in name or "reset" not in name:
            continue
        left = headers.get(name.replace("reset", "remaining"), "0").strip()
        if _number(left) == 0 and (wait := _until(value.strip(), now)) is not None:
            waits.append(wait)
    return max(waits, default=None)


def _until(value: str, now: float) -> float | None:
    """Read a time or a span: seconds, seconds since 1970, RFC 3339, or `6m0s`."""
    if (number := _number(value)) is not None:
        if number < _EPOCH:
            return number
        return max(0.0, (number / 1000 if number >= 1000 * _EPOCH else number) - now)
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return _span(value)
    return max(0.0, when.replace(tzinfo=when.tzinfo or UTC).timestamp() - now)


def _places(error: Any) -> Iterator[Json]:
    """Give the error, and what a router or a detail adds to it."""
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
    return float(value) if is_number and 0 <= value < _EPOCH else None


def _seconds(text: str) -> float | None:
    parts = _PARTS.findall(text.lower())
    return sum(float(n) * _UNITS[unit[:2]] for n, unit in parts) if parts else None


def _span(text: str) -> float | None:
    """Read `6m0s`; None for any other text."""
    return _seconds(text) if _SPAN.fullmatch(text.lower()) else None


def _number(text: str) -> float | None:
    text = text.strip()
    is_number = len(text) <= _MOST_DIGITS and text.replace(".", "", 1).isdecimal()
    return float(text) if is_number else None


# Context overflow: the words that refusals have for it, and the counts that they name.
#
# Rate limits and quotas mention tokens as well, so these words count only where a
# refusal is neither (`refusals.py`). The counts are looked for in overflows alone. The
# first row that matches decides; text is in lower case.


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
    r"must be at least 1, got -\d",  # what is left for the answer
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
_OVERFLOW_FIELDS = ("n_ctx", "n_prompt_tokens")  # llama.cpp
_SANE = range(64, 2**31)


class Overflow(Struct, frozen=True):
    """Token counts of a refusal: the model's context window, and the prompt's."""

    window: int | None = None
    counted: int | None = None


def overflow_of(message: str, error: Any) -> Overflow:
    """Extract the token counts from a refusal's text or from its fields."""
    fields = error if isinstance(error, dict) else {}
    text = message.lower()
    window, counted = (_sane(fields.get(name)) for name in _OVERFLOW_FIELDS)
    return Overflow(
        window or _last_number(_WINDOWS, text), counted or _last_number(_COUNTS, text)
    )


_WINDOWS, _COUNTS = [*map(re.compile, _WINDOW)], [*map(re.compile, _COUNTED)]


def _last_number(rows: Iterable[re.Pattern[str]], text: str) -> int | None:
    """Return the last number of the first row that is found."""
    for row in rows:
        if match := row.search(text):
            return _sane(int(re.sub(r"[,_]", "", match.groups()[-1][:20])))
    return None


def _sane(value: Any) -> int | None:
    return value if type(value) is int and value in _SANE else None
