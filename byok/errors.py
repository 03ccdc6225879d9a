"""Everything that can go wrong, as one small tree.

ByokError                 .status for HTTP, .code for programs, .hint = what to do
├─ ConfigError     400    settings contradict themselves or name unknown things
│   └─ KeyMissing  422    no key for an upstream
├─ BadRequest      400    the client's request cannot be read (400, 405, 413, 415, 422)
├─ NotAllowed      403    wrong token, foreign Host or Origin (401, 403, 421)
├─ NotReady        503    byok itself cannot answer just now; try again
└─ UpstreamError   422    the upstream gave no usable answer; never a 5xx, because
    │                     client SDKs repeat a 5xx without end
    ├─ UpstreamUnreachable    no connection, or silence
    ├─ UpstreamRefused        an error status, kept as .upstream_status
    └─ UpstreamGarbled        its answer breaks its own protocol
"""

NO_UPSTREAM = "no_upstream"  # the code for an upstream that a daemon does not have
MODEL_NOT_FOUND = "model_not_found"  # the code for a model that nobody here answers as


class ByokError(Exception):
    """The root: a sentence for a person, and facts for a program."""

    status = 500
    code = "internal"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        status: int = 0,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code or type(self).code
        self.status = status or type(self).status
        self.retryable = type(self).retryable if retryable is None else retryable

    @property
    def sentence(self) -> str:
        """The message and the hint as one line of text."""
        message = str(self)
        return f"{message} {self.hint}".strip() if self.hint else message

    @property
    def log_text(self) -> str:
        """What the log may hold: never the words of others."""
        return self.sentence


class ConfigError(ByokError):
    """Settings contradict themselves or name unknown things."""

    status = 400
    code = "config"


class KeyMissing(ConfigError):
    """No key was found for an upstream that needs one.

    `unread` are the stores that could not be looked in, each with its reason.
    """

    status = 422
    code = "key_missing"
    unread: tuple[str, ...] = ()


class BadRequest(ByokError):
    """The client's request cannot be read."""

    status = 400
    code = "bad_request"


class NotAllowed(ByokError):
    """The caller may not do this."""

    status = 403
    code = "not_allowed"


class NotReady(ByokError):
    """Byok cannot answer just now; the same request may succeed later."""

    status = 503
    code = "not_ready"
    retryable = True


class UpstreamError(ByokError):
    """The upstream gave no usable answer."""

    status = 422
    code = "upstream_failed"


class UpstreamUnreachable(UpstreamError):
    """No connection to the upstream, or silence."""

    code = "upstream_unreachable"
    retryable = True


class UpstreamRefused(UpstreamError):
    """The upstream answered with an error.

    `upstream_status` is its HTTP status (0 for an error inside a stream),
    `upstream_code` its own code or type ("" for none), `retry_after` the seconds it
    asked to wait, or None. Of a conversation that is too long it may tell `window`, the
    most tokens it takes, and `counted`, those that it was sent.
    """

    code = "upstream_refused"

    def __init__(
        self,
        message: str,
        *,
        upstream_status: int = 0,
        upstream_code: str = "",
        retry_after: float | None = None,
        window: int | None = None,
        counted: int | None = None,
        code: str = "",
        hint: str = "",
        status: int = 0,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(
            message, code=code, hint=hint, status=status, retryable=retryable
        )
        self.upstream_status = upstream_status
        self.upstream_code = upstream_code
        self.retry_after = retry_after
        self.window = window
        self.counted = counted

    @property
    def log_text(self) -> str:
        """Only the class: an upstream's own words may repeat the prompt."""
        return f"refused with {self.upstream_status or 'an event'} ({self.code})"


class UpstreamGarbled(UpstreamError):
    """The upstream's answer breaks its own protocol."""

    code = "upstream_garbled"
