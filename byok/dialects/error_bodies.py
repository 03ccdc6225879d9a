"""Error bodies of model APIs: decoded into one error with a hint."""

import re
from typing import Any

from byok.chat import Json
from byok.dialects.overflow import overflow_of
from byok.dialects.rate_limits import quotas_exceeded, requested_wait, wait_in_words
from byok.dialects.refusal_rows import Refusal
from byok.dialects.refusals import class_of
from byok.errors import (
    ContextLengthExceeded,
    RefusalDetails,
    RefusalKind,
    UpstreamRefused,
)
from byok.wire.json_body import parse_json

_LONGEST = 300
_READ = 4096
_DEEPEST = 8
_TELLING = ("message", "msg", "status_msg", "detail", "errors")
_KINDS = ("code", "type", "status", "error_type", "status_code")
_STATUS = re.compile(r"[45]\d\d\Z")
_ROUTERS_OWN = "provider returned error"


def error_text(body: Any) -> tuple[str, str]:
    """Return the message and the type or code of an error body, either may be "".

    Read are `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
    `{"message"}`, `{"detail"}`, a list with one of these inside (Gemini), and
    `{"base_resp": {"status_code", "status_msg"}}` (MiniMax).
    A code that only repeats an HTTP status is none.
    """
    message, kinds = _read(body)
    return message, next((k for k in kinds.values() if not _STATUS.match(k)), "")


def refusal_of(
    body: Any, status: int = 0, retry_after: float | None = None
) -> UpstreamRefused:
    """Decode an error body; `status` 0 means that it came inside a stream."""
    message, kinds = _read(body)
    words = [*kinds.values(), _line(quotas_exceeded(_inner(body)))]
    seen = status or next((int(k) for k in words if _STATUS.match(k)), 0)
    refusal = class_of(" ".join((message, *words)), seen)
    # The kind is more specific than a type such as invalid_request_error.
    known = refusal.kind is not RefusalKind.UNKNOWN
    code = kinds.get("code", "") if known else error_text(body)[1]
    said = f"it answered {status}" if status else "it broke off with an error"
    reason = _short(message or " ".join(words)) or "no reason given"
    may_wait = refusal.retryable or refusal.kind is RefusalKind.RATE_LIMIT
    if retry_after is None and may_wait:
        retry_after = requested_wait(message, _inner(body))
    sentence = _sentence(f"{said}: {reason}")
    details: RefusalDetails = {
        "upstream_status": status,
        "upstream_code": "" if _STATUS.match(code) else _short(code),
        "retry_after": retry_after,
        "hint": _hint(refusal, retry_after),
        "status": 429 if status == 429 and retry_after is not None else 0,
        "retryable": refusal.retryable,
        "reason": message or " ".join(words),
    }
    if refusal.kind is RefusalKind.CONTEXT_LENGTH:
        overflow = overflow_of(message, _inner(body))
        return ContextLengthExceeded(
            sentence, window=overflow.window, counted=overflow.counted, **details
        )
    return UpstreamRefused(sentence, kind=refusal.kind, **details)


def _hint(refusal: Refusal, retry_after: float | None) -> str:
    """Return the hint; of a rate limit it names the wait, which may have been cut."""
    is_rate = refusal.kind is RefusalKind.RATE_LIMIT
    if retry_after is not None and is_rate and refusal.retryable:
        return f"Wait {wait_in_words(retry_after)} and try again."
    return refusal.hint


def _first(body: Any) -> Any:
    """Take the error out of a list (Gemini) or a frame (MiniMax)."""
    while isinstance(body, list) and body:
        body = body[0]
    frame = body.get("base_resp") if isinstance(body, dict) else None
    return frame if isinstance(frame, dict) and "error" not in body else body


def _inner(body: Any) -> Any:
    """Return the object that holds the fields of an error."""
    body = _first(body)
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else body


def _read(body: Any) -> tuple[str, dict[str, str]]:
    """Return the message, and every field that names the kind of error."""
    body, inner = _first(body), _inner(body)
    if not isinstance(body, dict):
        return (_line(body) if isinstance(body, str) else ""), {}
    error = body.get("error")
    message = _line(_message(error, body))
    if message.lower() == _ROUTERS_OWN:
        message = _line(_provider_message(inner.get("metadata"))) or message
    kinds = {name: _line(_words(inner.get(name))) for name in _KINDS}
    return message, {name: kind for name, kind in kinds.items() if kind}


def _message(error: Any, body: Json) -> str:
    if isinstance(error, dict):
        return _words(error) or _words(body)
    said = _words(error) if isinstance(error, (str, list)) else ""
    return ": ".join(dict.fromkeys(w for w in (said, _words(body)) if w))


def _words(value: Any, depth: int = 0) -> str:
    """Read a message, which may be a list of details with their places (FastAPI)."""
    if depth > _DEEPEST or value is None:
        return ""
    match value:
        case str():
            return value
        case list():
            return "; ".join(w for v in value[:9] if (w := _words(v, depth + 1)))
        case dict():
            found = (w for n in _TELLING if (w := _words(value.get(n), depth + 1)))
            words, place = next(found, ""), value.get("loc")
            if words and isinstance(place, list):
                return ".".join(_words(p, _DEEPEST) for p in place) + f": {words}"
            return words
        case _:
            return str(value)


def _provider_message(metadata: Any) -> str:
    """Return what the provider behind a router said."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return _words(raw)
    try:
        return _read(parse_json(raw.encode("utf-8", "replace")))[0] or raw
    except (ValueError, RecursionError):
        return raw


def _sentence(text: str) -> str:
    text = text.rstrip(" .:")
    return text if text.endswith(("?", "!", "…")) else f"{text}."


def _line(text: str) -> str:
    return " ".join(text[:_READ].split())


def _short(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    # Cut between words only: half a key would no longer be recognised as one.
    return line[:_LONGEST].rpartition(" ")[0] + " …"
