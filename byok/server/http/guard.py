"""Access checks, made before any handler runs and before a body is read.

Order: request line, Host, Origin, token, declared length, content type. So a peer
without the token can never make the daemon hold a body, and a web page that was
rebound to this address is turned away by its Host.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache

from aiohttp import HttpVersion11
from aiohttp.web_request import BaseRequest
from msgspec import Struct, field

from byok.core.daemon.token import TokenCheck
from byok.core.errors import BadRequest, ByokError, NotAllowed

_SAME_SITE = frozenset({"same-origin", "none"})
_JSON = "application/json"
API_KEY = "X-Api-Key"  # where Anthropic's clients send the token
_TELL_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Requester(Enum):
    """Whose token a request has: a client's, or that of the machine's user."""

    CLIENT = "client"
    OWNER = "owner"


class Guard(Struct, eq=False):
    """Checks the head of a request: host, origin, token, type and length.

    `token` is that of clients, `owner` that of byok itself.
    """

    token: TokenCheck
    owner: TokenCheck
    clock: Callable[[], float] = time.monotonic
    _hosts: frozenset[str] = field(default_factory=frozenset)
    _refused: int = 0
    _told: float = float("-inf")

    def listen_on(self, port: int) -> None:
        """Set the port that a Host header must name."""
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = frozenset(f"{name}:{port}" for name in names)

    def check_origin(self, request: BaseRequest, *, own_page: bool) -> None:
        """Check request line, Host, Origin and Sec-Fetch-Site.

        Of all pages only byok's `own_page` may send an Origin, which is byok's.

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
            or headers.get("Sec-Fetch-Site", "none") not in _SAME_SITE
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
        """Return whose token was sent; without Authorization it may be an `API_KEY`.

        Raises:
            NotAllowed: 401.
        """
        shown = headers.get("Authorization", "")
        if not shown and takes_api_key:
            shown = f"Bearer {headers.get(API_KEY, '')}"
        if self.token(shown):
            return Requester.CLIENT
        if self.owner(shown):
            return Requester.OWNER
        raise NotAllowed(
            "The token is missing or wrong.",
            code="unauthorized",
            hint="byok token prints it.",
            status=401,
        )

    def count_refused(self, error: ByokError) -> None:
        """Count what came without the right token, and tell it every ten seconds.

        Not each by itself: a flood must not fill the log.
        """
        self._refused += 1
        now = self.clock()
        if now - self._told >= _TELL_SECONDS:
            _log.warning("requests refused: %d, now: %s", self._refused, error.code)
            self._refused, self._told = 0, now

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


# User-Agent headers of the clients: a family and a version, for logs.
#
# Their shapes: `Augment.vscode-augment/<version> (<system>) vscode/<version>`, the same
# with `cursor/` and others, `augment.intellij/<version> (...)`, `augment.cli/<version>
# (...)/interactive`, `augment.sdk.context/<version> (python)`, and
# `OpenAI/Python <version>`.


OTHER = "other"
_VERSION = r"(\d[\w.+-]{0,31})"
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


@lru_cache(maxsize=64)  # every request has one, and nearly always the same
def client_of(user_agent: str) -> str:
    """Return a known client as `family/version`, else `other`.

    Nothing else of the header is kept: it is the client's to choose.
    """
    for name, pattern in _FAMILIES:
        if found := pattern.match(user_agent):
            return f"{name}/{found[1]}"
    return OTHER if user_agent else ""
