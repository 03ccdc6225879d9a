"""Error bodies of OpenAI and its imitators, as one sentence with a cure."""

from typing import Any

from byok.errors import UpstreamRefused

_LONGEST = 300
_READ = 4096
# (words in the message or code, our code, what the user can do)
_KNOWN: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("context length", "context_length", "context size", "context window",
         "prompt is too long", "maximum context", "too many tokens",
         "maximum prompt length"),
        "context_length",
        "Start a new conversation, or choose a model with a larger window.",
    ),
    (
        ("insufficient_quota", "billing", "credit balance", "exceeded your current"),
        "upstream_quota",
        "Check the balance of that account.",
    ),
    (
        ("does not support tools", "tool choice requires", "enable-auto-tool"),
        "upstream_no_tools",
        "Choose a model that can call tools, or use the chat mode.",
    ),
)  # fmt: skip


def error_text(body: Any) -> tuple[str, str]:
    """Return the message and the type or code of an error body, either may be "".

    Read are `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
    `{"message"}`, `{"detail"}`, and a list with one of these inside (Gemini).
    """
    while isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return (_line(body) if isinstance(body, str) else ""), ""
    error = body.get("error")
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail") or ""
        code = error.get("code") or error.get("type") or error.get("status") or ""
        return _line(message), _line(code)
    message = error or body.get("message") or body.get("detail") or ""
    return _line(message), _line(body.get("code") or body.get("type") or "")


def refusal_of(
    body: Any, status: int = 0, retry_after: float | None = None
) -> UpstreamRefused:
    """Make the error of an error body; `status` 0 means: inside a stream."""
    message, code = error_text(body)
    ours, hint, retryable = _class(f"{message} {code}".lower(), status)
    said = f"it answered {status}" if status else "it broke off with an error"
    return UpstreamRefused(
        f"{said}: {message or code or 'no reason given'}".rstrip(" .") + ".",
        upstream_status=status,
        upstream_code=code,
        retry_after=retry_after,
        code=ours,
        hint=hint,
        status=429 if status == 429 and retry_after is not None else 0,
        retryable=retryable,
    )


def _class(text: str, status: int) -> tuple[str, str, bool]:
    for words, code, hint in _KNOWN:
        if any(word in text for word in words):
            return code, hint, False
    match status:
        case 401 | 403:
            return "upstream_auth", "Check the key: byok keys list.", False
        case 404:
            hint = "Check the model's name (byok models) and base_url."
            return "upstream_not_found", hint, False
        case 429:
            return "upstream_rate_limit", "Wait a little and try again.", True
        case 0:
            return "upstream_refused", "", True
        case _:
            return "upstream_refused", "", status >= 500


def _line(message: Any) -> str:
    try:
        text = message if isinstance(message, str) else str(message)
    except RecursionError:
        return ""
    flat = " ".join(text[:_READ].split())
    if len(flat) <= _LONGEST:
        return flat
    # Cut between words only: half a key would no longer be recognised as one.
    return flat[:_LONGEST].rpartition(" ")[0] + " …"
