"""Everything that can go wrong, as one tree of types.

Code branches on the class (or on `UpstreamRefused.kind`), never on a text. `code` names
the error to programs outside: clients, scripts, the log. Nobody changes the message or
hint of another's error; `with_hint` and `rewrite` return a copy.

ByokError                      .status for HTTP, .code for programs, .hint = what to do
├─ ConfigError            400  settings contradict themselves or name unknown things
│   └─ KeyMissing         422  no key for an upstream
├─ CannotStart            500  a daemon runs already, a port is taken
│   └─ DataDamaged             a database is damaged and could not be set aside
├─ BadRequest             400  the client's request cannot be read (400, 405, 413 ...)
├─ NotAllowed             403  wrong token, foreign Host or Origin (401, 403, 421)
├─ NotReady               503  byok itself cannot answer just now; try again
│   └─ DaemonGone              the daemon that was asked has ended
├─ IndexInUse             422  another process has the index open
├─ IndexFailed            503  the index cannot be read or written
│   ├─ DiskFull           507  the index is whole, but nothing can be added
│   └─ IndexLacksMemory        the index is whole, but memory is too short for it
└─ UpstreamError          422  no usable answer; never a 5xx, which SDKs repeat for ever
    ├─ UpstreamUnreachable     no connection, or it was lost
    │   ├─ ConnectFailed       no connection was established
    │   └─ UpstreamTimeout     no answer in time, or silence in the middle of one
    ├─ UpstreamRefused         an error status or event; .kind says what it refuses
    │   └─ ContextLengthExceeded   the conversation is longer than the context window
    └─ UpstreamGarbled         its answer breaks its own protocol
        ├─ UpstreamEmpty       an answer without text, thoughts or tool calls
        └─ UpstreamNotJson     an event of the stream is not the JSON object it must be
"""

import copy
import errno
from collections.abc import Callable
from enum import StrEnum
from typing import Self, TypedDict, Unpack

NO_UPSTREAM = "no_upstream"  # the code of an upstream that the daemon does not have
MODEL_NOT_FOUND = "model_not_found"  # the code of a model that nobody here serves
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_ACCESS = (
    "Give your user access to it; BYOK_HOME names another folder for byok's own files."
)


class Details(TypedDict, total=False):
    """The optional attributes of an error; `upstream` is a prefix of its message."""

    code: str
    hint: str
    status: int
    retryable: bool
    upstream: str


class ByokError(Exception):
    """Root of all errors: message and hint for people, code and status for programs."""

    status = 500
    code = "internal"
    hint = ""
    retryable = False
    upstream = ""

    def __init__(self, message: str, **details: Unpack[Details]) -> None:
        super().__init__(message)
        self.message = message
        self.hint = details.get("hint") or type(self).hint
        self.code = details.get("code") or type(self).code
        self.status = details.get("status") or type(self).status
        self.retryable = details.get("retryable", type(self).retryable)
        self.upstream = details.get("upstream", "")

    def __str__(self) -> str:
        return f"{self.upstream}: {self.message}" if self.upstream else self.message

    @property
    def sentence(self) -> str:
        """The message and the hint as one line of text."""
        return f"{self} {self.hint}".strip() if self.hint else str(self)

    @property
    def log_text(self) -> str:
        """The text for the log: without the name and the words of the upstream."""
        return f"{self.message} {self.hint}".strip()

    def with_hint(self, hint: str) -> Self:
        """Return a copy with another hint."""
        other = copy.copy(self)
        other.hint = hint
        return other

    def rewrite(self, change: Callable[[str], str]) -> Self:
        """Return a copy with changed texts, such as redacted or translated ones."""
        other = copy.copy(self)
        other.message, other.hint = change(self.message), change(self.hint)
        other.args = (other.message,)
        return other


class ConfigError(ByokError):
    """Settings contradict themselves or name unknown things."""

    status = 400
    code = "config"


class KeyMissing(ConfigError):
    """No key was found; `unread` are the stores that could not be read, and why."""

    status = 422
    code = "key_missing"

    def __init__(
        self, message: str, *, unread: tuple[str, ...] = (), **details: Unpack[Details]
    ) -> None:
        super().__init__(message, **details)
        self.unread = unread


class CannotStart(ByokError):
    """Something on this machine keeps byok from starting; `code` says what."""

    code = "cannot_start"


class DataDamaged(CannotStart):
    """A database is damaged; the daemon works without it where it can."""

    status = 422
    code = "corrupt_data"


class BadRequest(ByokError):
    """The client's request cannot be read."""

    status = 400
    code = "bad_request"


class BadJson(BadRequest):
    """The client's request is not JSON."""

    code = "bad_json"


class NotAllowed(ByokError):
    """The caller may not do this."""

    status = 403
    code = "not_allowed"


class NotReady(ByokError):
    """byok cannot answer just now; the same request may succeed later."""

    status = 503
    code = "not_ready"
    retryable = True


class DaemonGone(NotReady):
    """The daemon that was asked has ended, or no longer takes the token."""

    code = "daemon_gone"


class IndexInUse(ByokError):
    """Another process has the index open for writing."""

    status = 422
    code = "index_in_use"


class IndexFailed(ByokError):
    """The index cannot be read or written."""

    status = 503
    code = "index_failed"
    retryable = True


class DiskFull(IndexFailed):
    """The index is whole, but nothing can be added to it."""

    status = 507
    code = "storage_full"


class IndexLacksMemory(IndexFailed):
    """The index is whole, but there is too little memory to use it."""

    code = "no_memory"


class UpstreamError(ByokError):
    """The upstream gave no usable answer."""

    status = 422
    code = "upstream_failed"


class UpstreamUnreachable(UpstreamError):
    """No connection to the upstream, or it was lost."""

    code = "upstream_unreachable"
    retryable = True


class ConnectFailed(UpstreamUnreachable):
    """No connection to the upstream was established."""

    code = "upstream_connect"


class NameNotFound(ConnectFailed):
    """The name of the upstream's host has no address."""

    code = "upstream_name"


class UpstreamTimeout(UpstreamUnreachable):
    """The upstream did not answer in time, or fell silent in its answer."""

    code = "upstream_timeout"


class RefusalKind(StrEnum):
    """The subject of an upstream's refusal; the values are codes that clients see."""

    UNKNOWN = "upstream_refused"
    AUTH = "upstream_auth"
    BAD_MESSAGES = "upstream_bad_messages"
    BAD_PARAMETER = "upstream_bad_parameter"
    BAD_SCHEMA = "upstream_bad_schema"
    CONTENT_FILTER = "upstream_content_filter"
    CONTEXT_LENGTH = "context_length"
    FAILED = "upstream_failed"
    LOADING = "upstream_loading"
    NEEDS_TOOLS = "upstream_needs_tools"
    NO_IMAGES = "upstream_no_images"
    NO_MEMORY = "upstream_no_memory"
    NO_TOOLS = "upstream_no_tools"
    NOT_FOUND = "upstream_not_found"
    OVERLOADED = "upstream_overloaded"
    QUOTA = "upstream_quota"
    RATE_LIMIT = "upstream_rate_limit"
    REDIRECT = "upstream_redirect"
    REGION = "upstream_region"
    TOO_LARGE = "upstream_too_large"
    TOO_MANY_TOOLS = "upstream_too_many_tools"
    TOOL_FAILED = "upstream_tool_failed"
    WRONG_API = "upstream_wrong_api"


class RefusalDetails(Details, total=False):
    """The optional attributes of an upstream's refusal."""

    upstream_status: int
    upstream_code: str
    retry_after: float | None
    reason: str


class UpstreamRefused(UpstreamError):
    """The upstream answered with an error.

    `upstream_status` is its HTTP status (0 inside a stream), `upstream_code` its own
    code or type ("" for none), `retry_after` the seconds to wait, or None. `reason` is
    its own text, of which the message may hold only the beginning.
    """

    kind = RefusalKind.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        kind: RefusalKind | None = None,
        upstream_status: int = 0,
        upstream_code: str = "",
        retry_after: float | None = None,
        reason: str = "",
        **details: Unpack[Details],
    ) -> None:
        self.kind = kind or type(self).kind
        details.setdefault("code", self.kind.value)
        super().__init__(message, **details)
        self.upstream_status = upstream_status
        self.upstream_code = upstream_code
        self.retry_after = retry_after
        self.reason = reason or message.partition(": ")[2]

    def rewrite(self, change: Callable[[str], str]) -> Self:
        """Return a copy with changed texts, such as redacted or translated ones."""
        other = super().rewrite(change)
        other.reason = change(self.reason)
        return other

    @property
    def log_text(self) -> str:
        """The status and the code: an upstream's own text may repeat the prompt."""
        return f"refused with {self.upstream_status or 'an event'} ({self.code})"


class ContextLengthExceeded(UpstreamRefused):
    """The conversation is longer than the model's context window.

    `window` is the size of the context window in tokens, `counted` the number of tokens
    of the request; each is None if the upstream does not say it.
    """

    kind = RefusalKind.CONTEXT_LENGTH
    hint = "Ask about less at once, start a new conversation, or choose a model with \
a larger window."

    def __init__(
        self,
        message: str,
        *,
        window: int | None = None,
        counted: int | None = None,
        **details: Unpack[RefusalDetails],
    ) -> None:
        super().__init__(message, **details)
        self.window = window
        self.counted = counted


class UpstreamGarbled(UpstreamError):
    """The upstream's answer breaks its own protocol."""

    code = "upstream_garbled"


class UpstreamEmpty(UpstreamGarbled):
    """The upstream's answer has no text, no thoughts and no tool calls."""

    code = "upstream_empty"


class UpstreamNotJson(UpstreamGarbled):
    """An event of the upstream's stream is not the JSON object that it must be."""

    code = "upstream_not_json"


def from_os_error(error: OSError) -> ByokError:
    """Return an error of the operating system as one of byok's, with a hint."""
    reason = error.strerror or str(error)
    if error.errno in _DISK_FULL:
        place = f" ({error.filename})" if error.filename else ""
        return ByokError(f"{reason}{place}.", hint="Free some disk space.")
    if error.filename:
        return ByokError(f"{error.filename}: {reason}.", hint=_NO_ACCESS)
    return ByokError(f"the system: {reason}.")
