"""Access checks, made before any handler runs and before a body is read.

Order: request line, Host, Origin, token, declared length, content type. So a peer
without the token can never make the daemon hold a body, and a web page that reaches
this address by DNS rebinding is refused because of its Host.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache

from aiohttp import HttpVersion11
from aiohttp.web_request import BaseRequest
from msgspec import Struct

from byok.core.daemon.token import TokenCheck
from byok.core.errors import BadRequest, ByokError, NotAllowed

_log = logging.getLogger(__name__)
_ALLOWED_SITES = frozenset({"same-origin", "none"})
_JSON = "application/json"
API_KEY = "X-Api-Key"  # the header in which Anthropic's clients send the token
_WARN_SECONDS = 10.0
OTHER = "other"
_VERSION = r"(\d[\w.+-]{0,31})"
# User-Agent headers of clients: `Augment.vscode-augment/<version> (<system>)
# vscode/<version>`, the same with `cursor/` and others, `augment.intellij/<version>
# (...)`, `augment.cli/<version> (...)/interactive`, `augment.sdk.context/<version>
# (python)`, and `OpenAI/Python <version>`.
_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("vscode", rf"augment\.vscode-augment/{_VERSION}"),
        ("intellij", rf"augment\.intellij/{_VERSION}"),
        ("cli", rf"augment\.cli/{_VERSION}"),
        ("sdk", rf"augment\.sdk\.[a-z]{{1,16}}/{_VERSION}"),
        ("openai-python", rf"(?:Async)?OpenAI/Python {_VERSION}"),
        ("openai-js", rf"OpenAI/JS {_VERSION}"),
    )
)


class Requester(Enum):
    """Whose token a request has: a client's, or that of the machine's user."""

    CLIENT = "client"
    OWNER = "owner"


class Guard(Struct, eq=False):
    """Checks the head of a request: host, origin, token, type and length.

    `token` is that of clients, `owner` that of byok itself. A Host header must name the
    `port`.
    """

    token: TokenCheck
    owner: TokenCheck
    port: int
    clock: Callable[[], float] = time.monotonic
    _hosts: frozenset[str] = frozenset()
    _refused: int = 0
    _last_warning: float = float("-inf")

    def __post_init__(self) -> None:
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = frozenset(f"{name}:{self.port}" for name in names)

    def check_origin(self, request: BaseRequest, *, own_page: bool) -> None:
        """Check request line, Host, Origin and Sec-Fetch-Site.

        An Origin is accepted for byok's `own_page` only, and must be byok's.

        Raises:
            BadRequest: 400, the head is malformed.
            NotAllowed: 421 foreign Host, 403 foreign page.
        """
        if request.version < HttpVersion11:
            raise BadRequest("byok speaks HTTP/1.1 only.", code="http_version")
        if not request.raw_path.startswith("/"):
            raise BadRequest("The target must begin with /.", code="bad_target")
        headers = request.headers
        for name in ("Host", "Authorization", API_KEY, "Content-Type", "Origin"):
            if len(headers.getall(name, ())) > 1:
                raise BadRequest(f"{name} was sent more than once.", code="bad_http")
        host = headers.get("Host", "").lower()
        if host not in self._hosts:
            raise NotAllowed(
                "The Host header does not name byok.",
                code="host_not_allowed",
                status=421,
            )
        is_own = own_page and headers.get("Origin") == f"http://{host}"
        if (
            ("Origin" in headers and not is_own)
            or request.method == "OPTIONS"
            or headers.get("Sec-Fetch-Site", "none") not in _ALLOWED_SITES
        ):
            raise NotAllowed(
                "Web pages may not use byok.",
                code="origin_not_allowed",
                hint="byok dashboard opens byok's own page." if own_page else "",
            )

    def check_length(self, request: BaseRequest, limit: int) -> None:
        """Refuse a declared length above the limit, before reading.

        Raises:
            BadRequest: 413.
        """
        declared = request.content_length
        if declared is not None and declared > limit:
            raise too_large(limit)

    def check_token(
        self, headers: Mapping[str, str], *, takes_api_key: bool = False
    ) -> Requester:
        """Return whose token was sent, in Authorization or, else, in `API_KEY`.

        Raises:
            NotAllowed: 401.
        """
        authorization = headers.get("Authorization", "")
        if not authorization and takes_api_key:
            authorization = f"Bearer {headers.get(API_KEY, '')}"
        if self.token(authorization):
            return Requester.CLIENT
        if self.owner(authorization):
            return Requester.OWNER
        raise NotAllowed(
            "The token is missing or wrong.",
            code="unauthorized",
            hint="byok token prints it.",
            status=401,
        )

    def count_refused(self, error: ByokError) -> None:
        """Count a refused request, and log the count every ten seconds.

        A line for each would let a flood of requests fill the log.
        """
        self._refused += 1
        now = self.clock()
        if now - self._last_warning >= _WARN_SECONDS:
            _log.warning("requests refused: %d, now: %s", self._refused, error.code)
            self._refused, self._last_warning = 0, now

    def check_content(self, headers: Mapping[str, str]) -> None:
        """Check that the body is plain JSON.

        Raises:
            BadRequest: 415, or 417 for an unknown expectation.
        """
        kind, _, parameters = headers.get("Content-Type", "").partition(";")
        charset = parameters.strip().lower().removeprefix("charset=").strip('"')
        if kind.strip().lower() != _JSON or charset not in ("", "utf-8", "utf8"):
            raise BadRequest(
                "Content-Type must be application/json.",
                code="content_type",
                status=415,
            )
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise BadRequest(
                "Compressed bodies are not supported.",
                code="content_encoding",
                status=415,
            )
        if headers.get("Expect", "100-continue").lower() != "100-continue":
            raise BadRequest("Unsupported Expect header.", code="bad_http", status=417)


def too_large(limit: int) -> BadRequest:
    """Return the error for a body above its limit (bytes)."""
    size = f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"
    return BadRequest(
        f"The body is larger than {size}.",
        code="body_too_large",
        status=413,
    )


@lru_cache(maxsize=64)  # nearly all requests have the same User-Agent
def client_of(user_agent: str) -> str:
    """Return a known client as `family/version`, else `other`; "" without a header.

    Nothing else of the header is used, because a client may send any text.
    """
    for name, pattern in _FAMILIES:
        if match := pattern.match(user_agent):
            return f"{name}/{match[1]}"
    return OTHER if user_agent else ""
