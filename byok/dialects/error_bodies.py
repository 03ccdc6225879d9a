"""Error bodies of model APIs, decoded into an error with a hint for the user."""

import contextlib
import html
import re
from typing import Any

from byok.core.chat import Json
from byok.core.errors import (
    ContextLengthExceeded,
    RefusalDetails,
    RefusalKind,
    UpstreamRefused,
)
from byok.core.wire.json_body import parse_json
from byok.dialects.rate_limits import (
    overflow_of,
    quotas_exceeded,
    requested_wait,
    reset_time,
    wait_in_words,
)
from byok.dialects.refusals import Refusal, classify_refusal

_MAX_SHOWN_CHARS = 300
_MAX_READ_CHARS = 4096
_MAX_DEPTH = 8
_MESSAGE_FIELDS = ("message", "msg", "status_msg", "detail", "errors")
_KIND_FIELDS = ("code", "type", "status", "error_type", "status_code", "reason")
_STATUS = re.compile(r"[45]\d\d\Z")
_ZAI_CODE = re.compile(r"1\d{3}\Z")  # also Zhipu
_MINIMAX_CODE = re.compile(r"\((\d{4})\)\.?\Z")  # at the end of a message
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})", re.IGNORECASE)
# The beginning of a server-sent event, before the JSON of an error.
_EVENT_PREFIX = re.compile(r"\A\s*(?:event:.*\s+)?data:")
_FIREWALL = re.compile(
    r"cloudflare|cdn-cgi|captcha|you have been blocked|just a moment"
)
_BLOCKED = Refusal(
    RefusalKind.REGION,
    "A firewall before it blocks this machine: try it without VPN or proxy.",
)
# Seconds; a shorter wait after a used-up quota is for a retry, not until its reset.
_MIN_RESET_SECONDS = 120.0
_ROUTER_MESSAGE = "provider returned error"


def error_text(body: Any) -> tuple[str, str]:
    """Return the message and the type or code of an error body; either may be "".

    Known forms are `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
    `{"message"}`, `{"detail"}`, a list with one of these inside (Gemini), and
    `{"base_resp": {"status_code", "status_msg"}}` (MiniMax). A code that only repeats
    an HTTP status is ignored.
    """
    message, kinds = _read_error(body)
    return message, next((k for k in kinds.values() if not _STATUS.match(k)), "")


def refusal_of(
    body: Any, status: int = 0, retry_after: float | None = None, now: float = 0.0
) -> UpstreamRefused:
    """Decode an error body; `status` 0 means that it came inside a stream.

    `now` is the time in seconds since 1970, 0 if it is not known.
    """
    body = _unwrap(body)
    message, kinds = _read_error(body)
    inner = _inner(body)
    words = [*kinds.values(), _line(quotas_exceeded(inner))]
    any_status = status or next((int(k) for k in words if _STATUS.match(k)), 0)
    codes = [*kinds.values(), *_vendor_codes(body, message, kinds)]
    refusal = classify_refusal(message, codes, inner, any_status)
    if _is_page(body):
        text = body[:_MAX_READ_CHARS].lower()
        if any_status in (403, 429, 503) and _FIREWALL.search(text):
            refusal = _BLOCKED
    # The kind is more specific than a type such as invalid_request_error.
    is_known = refusal.kind is not RefusalKind.UNKNOWN
    code = kinds.get("code", "") if is_known else error_text(body)[1]
    reason = _shorten(message or " ".join(words)) or "no reason given"
    may_wait = refusal.retryable or refusal.kind is RefusalKind.RATE_LIMIT
    if retry_after is None:
        wait = requested_wait(message, inner, now)
        is_quota = refusal.kind is RefusalKind.QUOTA
        if may_wait or (is_quota and (wait or 0.0) > _MIN_RESET_SECONDS):
            retry_after = wait
    sentence = (
        f"it answered {status}: {reason}"
        if status
        else f"it broke off with an error: {reason}"
    ).rstrip(" .:")
    if not sentence.endswith(("?", "!", "…")):
        sentence += "."
    details: RefusalDetails = {
        "upstream_status": status,
        "upstream_code": "" if _STATUS.match(code) else _shorten(code),
        "retry_after": retry_after,
        "hint": _hint(refusal, retry_after, message),
        # A client that obeys Retry-After must not wait for days.
        "status": 429 if status == 429 and may_wait and retry_after is not None else 0,
        "retryable": refusal.retryable,
        "reason": message or " ".join(words),
    }
    if refusal.kind is RefusalKind.CONTEXT_LENGTH:
        overflow = overflow_of(message, inner)
        return ContextLengthExceeded(
            sentence, window=overflow.window, counted=overflow.counted, **details
        )
    return UpstreamRefused(sentence, kind=refusal.kind, **details)


def _hint(refusal: Refusal, retry_after: float | None, message: str) -> str:
    """Return the hint; for a limit it says how long to wait, or when it is reset."""
    is_rate = refusal.kind is RefusalKind.RATE_LIMIT
    if retry_after is not None and is_rate and refusal.retryable:
        return f"Wait {wait_in_words(retry_after)} and try again."
    if refusal.kind is RefusalKind.QUOTA:
        reset = reset_time(message)
        reset = f"at {reset}" if reset else ""
        if retry_after is not None and retry_after > _MIN_RESET_SECONDS:
            reset = f"in {wait_in_words(retry_after)}"
        if reset:
            return f"It is reset {reset}: go on then, or choose another model or plan."
    return refusal.hint


def _unwrap(body: Any) -> Any:
    """Return the error body that a gateway wraps as the text of its own error.

    Ollama wraps the errors of llama.cpp's server so, and proxies those of Google.
    """
    for _ in range(_MAX_DEPTH):
        inner = _inner(body)
        text = inner
        if isinstance(inner, dict):
            text = inner.get("error") or inner.get("message")
        if not isinstance(text, str):
            return body
        text = _EVENT_PREFIX.sub("", text, count=1).lstrip()
        if text[:1] not in ("{", "["):
            return body
        inner_body: Any = None
        with contextlib.suppress(ValueError, RecursionError):  # it only looks like JSON
            inner_body = parse_json(text.encode("utf-8", "replace"))
        if not isinstance(inner_body, (dict, list)) or not _read_error(inner_body)[0]:
            return body
        body = inner_body
    return body


def _vendor_codes(body: Any, message: str, kinds: dict[str, str]) -> list[str]:
    """Return numeric codes in the form of `CODES`: with the name of their vendor."""
    if isinstance(body, dict) and isinstance(body.get("base_resp"), dict):
        return [f"minimax:{kinds.get('status_code', '')}"]
    if match := _MINIMAX_CODE.search(message):
        return [f"minimax:{match[1]}"]
    code = kinds.get("code", "")
    return [f"zai:{code}"] if _ZAI_CODE.match(code) else []


def _is_page(body: Any) -> bool:
    return isinstance(body, str) and body.lstrip()[:1] == "<"


def _unwrap_list(body: Any) -> Any:
    """Return the error body inside a list (Gemini) or a frame (MiniMax)."""
    while isinstance(body, list) and body:
        body = body[0]
    frame = body.get("base_resp") if isinstance(body, dict) else None
    return frame if isinstance(frame, dict) and "error" not in body else body


def _inner(body: Any) -> Any:
    body = _unwrap_list(body)
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else body


def _read_error(body: Any) -> tuple[str, dict[str, str]]:
    """Return the message, and every field that names the kind of error."""
    body, inner = _unwrap_list(body), _inner(body)
    if _is_page(body):
        title = _TITLE.search(body[:_MAX_READ_CHARS])
        page = f"a web page: {html.unescape(title[1])}" if title else "a web page"
        return _line(page), {}
    if not isinstance(body, dict):
        return (_line(body) if isinstance(body, str) else ""), {}
    error = body.get("error")
    message = _line(_message(error, body))
    if message.lower().endswith(_ROUTER_MESSAGE):
        message = _line(_provider_message(inner.get("metadata"))) or message
    kinds = {name: _line(_words(inner.get(name))) for name in _KIND_FIELDS}
    return message, {name: kind for name, kind in kinds.items() if kind}


def _message(error: Any, body: Json) -> str:
    if isinstance(error, dict):
        return _words(error) or _words(body)
    words = _words(error) if isinstance(error, (str, list)) else ""
    return ": ".join(dict.fromkeys(w for w in (words, _words(body)) if w))


def _words(value: Any, depth: int = 0) -> str:
    """Return a message, which may be a list of details with their paths (FastAPI)."""
    if depth > _MAX_DEPTH or value is None:
        return ""
    match value:
        case str():
            return value
        case list():
            return "; ".join(w for v in value[:9] if (w := _words(v, depth + 1)))
        case dict():
            messages = (
                w for n in _MESSAGE_FIELDS if (w := _words(value.get(n), depth + 1))
            )
            words, location = next(messages, ""), value.get("loc")
            if words and isinstance(location, list):
                return ".".join(_words(p, _MAX_DEPTH) for p in location) + f": {words}"
            # Xiaomi puts the explanation of its message into this field.
            explanation = value.get("param")
            if words and isinstance(explanation, str) and " " in explanation:
                return f"{words}: {explanation}"
            return words
        case _:
            return str(value)


def _provider_message(metadata: Any) -> str:
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return _words(raw)
    try:
        return _read_error(parse_json(raw.encode("utf-8", "replace")))[0] or raw
    except (ValueError, RecursionError):
        return raw


def _line(text: str) -> str:
    return " ".join(text[:_MAX_READ_CHARS].split())


def _shorten(line: str) -> str:
    if len(line) <= _MAX_SHOWN_CHARS:
        return line
    # Cut between words only: half a key would no longer be recognised as one.
    return line[:_MAX_SHOWN_CHARS].rpartition(" ")[0] + " …"
