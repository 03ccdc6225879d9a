"""Errors in the shapes of OpenAI's and Anthropic's API references."""

from typing import Any

from byok.errors import (
    BadRequest,
    ByokError,
    ConfigError,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)

_OVERLOADED = 529  # of Anthropic's API
_INVALID = "invalid_request_error"


def status_of(error: ByokError) -> int:
    """Return the HTTP status: the upstream's own, where it gave one.

    Other failures that may pass are a gateway's 502 and 504, so that these clients
    repeat the request: unlike the editor's, they give up after a few.
    """
    if isinstance(error, UpstreamRefused) and error.upstream_status >= 400:
        return error.upstream_status
    if isinstance(error, UpstreamError) and error.retryable:
        return 504 if isinstance(error, UpstreamTimeout) else 502
    return error.status


def openai_error(error: ByokError) -> dict[str, Any]:
    """Write an error; `code` is the upstream's own where it gave one."""
    code = error.upstream_code if isinstance(error, UpstreamRefused) else ""
    return {
        "error": {
            "message": error.sentence,
            "type": _kind(error, _OPENAI),
            "param": None,
            "code": code or error.code,
        }
    }


def anthropic_error(error: ByokError, request_id: str = "") -> dict[str, Any]:
    """Write an error as Anthropic's API does."""
    kind = _kind(error, _ANTHROPIC)
    if isinstance(error, UpstreamRefused) and error.kind is RefusalKind.OVERLOADED:
        kind = "overloaded_error"
    return {
        "type": "error",
        "error": {"type": kind, "message": error.sentence},
        "request_id": request_id or None,
    }


def response_error(error: ByokError) -> dict[str, str]:
    """Write the error of a response that failed; the codes are those clients act on."""
    code = "server_error"
    if isinstance(error, UpstreamRefused):
        code = _FAILED.get(error.kind, code)
    return {"code": code, "message": error.sentence}


def _kind(error: ByokError, kinds: dict[int, str]) -> str:
    match error:
        case NotAllowed():
            return "authentication_error"
        case BadRequest() | ConfigError():
            return kinds.get(error.status, _INVALID)
        case NotReady():
            return "server_error" if kinds is _OPENAI else "overloaded_error"
        case UpstreamRefused():
            return kinds.get(error.upstream_status, "api_error")
        case _:
            return "api_error"


_OPENAI = {
    400: _INVALID,
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: _INVALID,
    413: _INVALID,
    422: _INVALID,
    429: "rate_limit_error",
}
_ANTHROPIC = {
    **_OPENAI,
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    _OVERLOADED: "overloaded_error",
}
_FAILED = {
    RefusalKind.CONTEXT_LENGTH: "context_length_exceeded",
    RefusalKind.QUOTA: "insufficient_quota",
    RefusalKind.RATE_LIMIT: "rate_limit_exceeded",
    RefusalKind.OVERLOADED: "server_is_overloaded",
    RefusalKind.CONTENT_FILTER: "invalid_prompt",
}
