"""Everything below /ui: the files of the page, sign-in, and what the page asks for.

A web page is served here, so its own Origin is allowed here and nowhere else. Only a
session opens the interface; the clients' token does not, because a client must not be
able to change addresses and keys. The code for a session is made for whoever can read
the dashboard's own token file (`byok dashboard`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp.web import Response, StreamResponse

from byok.daemon.token import TokenCheck
from byok.dashboard.sessions import Sessions
from byok.errors import BadRequest, ConfigError, NotAllowed
from byok.redact import Redactor
from byok.server.http.body import parse_request, read_body
from byok.server.http.exchange import HttpExchange
from byok.server.http.gate import shutting_down
from byok.server.http.guard import Guard
from byok.server.http.protocol import note_token
from byok.server.http.reply import COMMON, json_response

if TYPE_CHECKING:
    from byok.chat import Json

PREFIX = "/ui"
_API = "api/"
_CODE = "code"
_SIGN_IN = "sign-in"
_SIGN_OUT = "sign-out"
_MAX_BODY = 2**18
_MAX_SIGN_IN, _SIGN_IN_SECONDS = 2**10, 5.0  # anybody may send one
BACKGROUND = "X-Byok-Background"  # sent with what no user asked for
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a session asks for: the object it sent, and whether it lasts still.

    `on_end` takes what is to be called when somebody ends the session, and returns what
    takes that back.
    """

    exchange: HttpExchange
    body: dict[str, Any]
    is_open: Callable[[], bool]
    on_end: Callable[[Callable[[], None]], Callable[[], None]]


PageHandler: TypeAlias = Callable[[PageRequest], Awaitable["Json | StreamResponse"]]
MakeHandlers: TypeAlias = Callable[[], Mapping[str, PageHandler]]


class DashboardEndpoint:
    """Answers /ui and what is below it."""

    def __init__(
        self,
        token_file: Path,
        redactor: Redactor,
        guard: Guard,
        *,
        sessions: Sessions | None = None,
        body_gap: float = 15.0,
    ) -> None:
        self._token_file = token_file
        self._redactor = redactor
        self._guard = guard
        self._sessions = sessions or Sessions()
        self._body_gap = body_gap
        self._token: TokenCheck | None = None
        self._make: MakeHandlers | None = None
        self._handlers: Mapping[str, PageHandler] | None = None
        self._settled = asyncio.Event()

    def open(self, make: MakeHandlers) -> None:
        """Set what makes the handlers; requests that waited for it go on.

        It is called in a thread, when a page first asks: a daemon whose page nobody
        opens does without the modules that answer it.
        """
        self._make, self._handlers = make, None
        self._settled.set()

    def close(self) -> None:
        """Release waiting requests with an error: the daemon stops."""
        self._settled.set()

    def serves(self, raw_path: str) -> bool:
        """Tell whether a path is the dashboard's."""
        path = raw_path.partition("?")[0]
        return path == PREFIX or path.startswith(PREFIX + "/")

    async def answer(self, exchange: HttpExchange) -> StreamResponse:
        """Answer a request whose origin was checked.

        Raises:
            NotAllowed: 401, it has no session, or not the token it needs.
            BadRequest: there is no such path, or the body cannot be used.
        """
        exchange.record.endpoint = PREFIX + "/"  # so it is never taken for a client's
        path = exchange.request.raw_path.partition("?")[0]
        name = path.removeprefix(PREFIX).removeprefix("/")
        if name == _CODE:
            return await self._make_code(exchange)
        if name == _API + _SIGN_IN:
            return await self._sign_in(exchange)
        if name.startswith(_API):
            return await self._answer_page(exchange, name.removeprefix(_API))
        return _send_file(exchange, name)

    async def _make_code(self, exchange: HttpExchange) -> Response:
        request = exchange.request
        exchange.record.endpoint = f"{PREFIX}/{_CODE}"
        if "Origin" in request.headers:
            raise NotAllowed("Web pages may not do this.", code="origin_not_allowed")
        check = await self._token_check()
        if not check(request.headers.get("Authorization", "")):
            raise _token_error()
        exchange.record.trusted = True
        note_token(request)
        if request.method != "POST":
            return _refuse_method(exchange, "POST")
        await self._read(exchange)
        return json_response({"code": self._sessions.make_code()})

    async def _token_check(self) -> TokenCheck:
        """Return what checks the token of the file, which is made if there is none."""
        if self._token is None:
            add = self._redactor.add
            try:
                made = await asyncio.to_thread(TokenCheck, self._token_file, add)
            except (ConfigError, OSError) as error:  # byok dashboard says why
                raise _token_error() from error
            self._token = self._token or made
        return self._token

    async def _sign_in(self, exchange: HttpExchange) -> Response:
        exchange.record.endpoint = f"{PREFIX}/{_API}{_SIGN_IN}"
        if exchange.request.method != "POST":
            return _refuse_method(exchange, "POST")
        body = await self._read(exchange, _MAX_SIGN_IN, _SIGN_IN_SECONDS)
        code = body.get("code")
        opened = self._sessions.sign_in(code if isinstance(code, str) else "")
        exchange.record.trusted = True
        note_token(exchange.request)
        return json_response(opened._asdict())

    async def _answer_page(self, exchange: HttpExchange, name: str) -> StreamResponse:
        request, record = exchange.request, exchange.record
        shown = request.headers.get("Authorization", "")
        by_user = BACKGROUND not in request.headers
        token = self._sessions.check(shown, by_user=by_user)
        record.trusted = True
        note_token(request)
        handler = (await self._find_handlers()).get(name)
        if handler is None and name != _SIGN_OUT:
            raise _not_found()
        record.endpoint = f"{PREFIX}/{_API}{name}"
        if request.method != "POST":
            return _refuse_method(exchange, "POST")
        body = await self._read(exchange)
        if handler is None:
            self._sessions.sign_out(token)
            return json_response({})
        asked = PageRequest(
            exchange,
            body,
            partial(self._sessions.is_open, token),
            partial(self._sessions.on_end, token),
        )
        answer = await handler(asked)
        return answer if isinstance(answer, StreamResponse) else json_response(answer)

    async def _find_handlers(self) -> Mapping[str, PageHandler]:
        await self._settled.wait()
        while self._handlers is None:
            if (make := self._make) is None:
                raise shutting_down()
            made = await asyncio.to_thread(make)
            # Another request, or other settings, may have been faster.
            if self._make is make and self._handlers is None:
                self._handlers = made
        return self._handlers

    async def _read(
        self,
        exchange: HttpExchange,
        limit: int = _MAX_BODY,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        request = exchange.request
        self._guard.check_length(request, limit)
        self._guard.check_content(request.headers)
        return parse_request(await read_body(request, limit, self._body_gap, seconds))


def _send_file(exchange: HttpExchange, name: str) -> Response:
    from byok.dashboard.static_files import static_files  # by those who look

    file = static_files().get(name)
    if file is None:
        raise _not_found()
    if exchange.request.method not in ("GET", "HEAD"):
        return _refuse_method(exchange, "GET, HEAD")
    return Response(body=file.content, headers={**COMMON, "Content-Type": file.kind})


def _refuse_method(exchange: HttpExchange, allowed: str) -> Response:
    error = BadRequest(f"Use {allowed} here.", code="method_not_allowed", status=405)
    response = exchange.write_error(error)
    response.headers["Allow"] = allowed
    response.force_close()  # its body stays unread
    return response


def _token_error() -> NotAllowed:
    return NotAllowed(
        "The token is missing or wrong.",
        code="unauthorized",
        hint="byok dashboard opens the page.",
        status=401,
    )


def _not_found() -> BadRequest:
    return BadRequest("There is no such path.", code="not_found", status=404)
