"""Why an upstream did not answer, in words of byok that quote none of its own."""

from byok.core.errors import (
    ByokError,
    ConfigError,
    NotReady,
    RefusalKind,
    UpstreamEmpty,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.events import Notice

_KINDS = {
    RefusalKind.AUTH: "it does not accept the key",
    RefusalKind.CONTENT_FILTER: "it refused to answer",
    RefusalKind.CONTEXT_LENGTH: "the conversation is too long for it",
    RefusalKind.FAILED: "it failed",
    RefusalKind.LOADING: "it loads its model",
    RefusalKind.NO_IMAGES: "it sees no pictures",
    RefusalKind.NO_MEMORY: "its memory does not suffice",
    RefusalKind.NOT_FOUND: "it does not know the model",
    RefusalKind.OVERLOADED: "it is overloaded",
    RefusalKind.QUOTA: "its quota is used up",
    RefusalKind.RATE_LIMIT: "its rate limit is reached",
    RefusalKind.REDIRECT: "its address has changed",
    RefusalKind.REGION: "it does not serve this place",
    RefusalKind.TOOL_FAILED: "it called a tool wrongly",
    RefusalKind.WRONG_API: "it serves the model by another API only",
}


def reason_of(error: ByokError) -> str:
    """Return the reason as a clause without a full stop."""
    match error:
        case UpstreamRefused(kind=kind) if kind in _KINDS:
            return _KINDS[kind]
        case UpstreamRefused(upstream_status=status) if status:
            return f"it answered {status}"
        case UpstreamRefused():
            return "it broke off with an error"
        case UpstreamTimeout():
            return "it is too slow"
        case UpstreamUnreachable() | NotReady():
            return "it cannot be reached"
        case UpstreamEmpty():
            return "its answer was empty"
        case UpstreamGarbled():
            return "its answer was broken"
        case ConfigError():
            return "it has no key here"
        case _:
            return "it failed"


def restart_notice(name: str, error: ByokError, doing: str = "thinking") -> Notice:
    """Return the notice that a model that was `doing` something is asked again."""
    reason = reason_of(error)
    text = f"{name} stopped while it was {doing}: {reason}. It is asked again."
    return Notice(text, at_once=True, is_restart=True)
