"""Everything below /ui: the files of the page, sign-in, and what the page asks for.

A web page is served here, so its own Origin is allowed here and nowhere else. Only a
session opens the interface; the clients' token does not, because a client must not be
able to change addresses and keys. The code for a session is made for whoever can read
the owner's secret (`byok dashboard`).
"""

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct

from byok.core.errors import BadRequest, ByokError
from byok.core.language import speaking, translate
from byok.server.dashboard.sessions import Sessions
from byok.server.http.body import parse_request, read_body
from byok.server.http.gate import shutting_down
from byok.server.http.guard import Guard
from byok.server.http.protocol import note_token
from byok.server.http.reply import COMMON, HttpExchange, json_response

if TYPE_CHECKING:
    from byok.core.chat import Json


PREFIX = "/ui"
_API = "api/"
_SIGN_IN = "sign-in"
_SIGN_OUT = "sign-out"
_PROVE = "prove"
_CONFIRM = "confirm"
# What changes settings, keys or what is indexed: each needs a code entered lately.
_CHANGES = frozenset(
    {"settings-save", "key-set", "key-remove", "index-add", "index-remove"}
)
# What only tells what it would do, unless it is asked to `write`.
_WRITES = frozenset(
    {"capture", "client-connect", "client-disconnect", "model-probe", "models-update"}
)
_MAX_BODY = 2**18
_LONGEST_NONCE = 128
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


class PageRequest(Struct, frozen=True):
    """What a session asks for: the object it sent, and whether it lasts still.

    `on_end` takes what is to be called when somebody ends the session, and returns what
    takes that back.
    """

    exchange: HttpExchange
    body: dict[str, Any]
    is_open: Callable[[], bool]
    on_end: Callable[[Callable[[], None]], Callable[[], None]]


PageHandler: TypeAlias = Callable[[PageRequest], Awaitable["Json | StreamResponse"]]
BodyHandler: TypeAlias = Callable[[dict[str, Any]], Awaitable["Json"]]
MakeHandlers: TypeAlias = Callable[[], Mapping[str, PageHandler]]


def by_body(handler: BodyHandler) -> Callable[[PageRequest], Awaitable["Json"]]:
    """Return what answers by the object of a request alone."""
    return lambda asked: handler(asked.body)


class DashboardEndpoint:
    """Answers /ui and what is below it."""

    def __init__(
        self,
        guard: Guard,
        *,
        sessions: Sessions | None = None,
        body_gap: float = 15.0,
    ) -> None:
        self._guard = guard
        self.sessions = sessions or Sessions()
        self._body_gap = body_gap
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
        """Answer a request whose origin was checked, in the language that it asks for.

        Raises:
            NotAllowed: 401, it has no session; 403, it needs a new code.
            BadRequest: there is no such path, or the body cannot be used.
        """
        with speaking(exchange.request.headers.get("Accept-Language", "")):
            try:
                return await self._answer(exchange)
            except ByokError as error:
                raise error.rewrite(translate) from None

    async def _answer(self, exchange: HttpExchange) -> StreamResponse:
        exchange.record.endpoint = PREFIX + "/"  # so it is never taken for a client's
        path = exchange.request.raw_path.partition("?")[0]
        name = path.removeprefix(PREFIX).removeprefix("/")
        if not name.startswith(_API):
            return _send_file(exchange, name)
        open_to_all = {_SIGN_IN: self._sign_in, _PROVE: self._prove}
        if (answer := open_to_all.get(name.removeprefix(_API))) is None:
            return await self._answer_page(exchange, name.removeprefix(_API))
        exchange.record.endpoint = f"{PREFIX}/{name}"
        if exchange.request.method != "POST":
            return exchange.refuse_method("POST")
        body = await self._read(exchange, _MAX_SIGN_IN, _SIGN_IN_SECONDS)
        return answer(exchange, body)

    def _sign_in(self, exchange: HttpExchange, body: dict[str, Any]) -> Response:
        token = self.sessions.sign_in(_read_code(body))
        exchange.record.trusted = True
        note_token(exchange.request)
        return json_response({"token": token})

    def _prove(self, exchange: HttpExchange, body: dict[str, Any]) -> Response:
        """Prove to a page that this is the daemon which opened its session.

        The page asks before it sends its token: another program may have the port.
        """
        session = read_text(body, "session", longest=_LONGEST_NONCE)
        nonce = read_text(body, "nonce", longest=_LONGEST_NONCE)
        asked = f"{port_of(exchange)} {nonce}"
        return json_response({"proof": self.sessions.prove(session, asked)})

    async def _answer_page(self, exchange: HttpExchange, name: str) -> StreamResponse:
        request, record = exchange.request, exchange.record
        shown = request.headers.get("Authorization", "")
        by_user = BACKGROUND not in request.headers
        token = self.sessions.check(shown, by_user=by_user)
        record.trusted = True
        note_token(request)
        handler = (await self._find_handlers()).get(name)
        if handler is None and name not in (_SIGN_OUT, _CONFIRM):
            raise _not_found()
        record.endpoint = f"{PREFIX}/{_API}{name}"
        if request.method != "POST":
            return exchange.refuse_method("POST")
        body = await self._read(exchange)
        acts = body.get("write") is True or body.get("file")  # that it names
        if name in _CHANGES or (name in _WRITES and acts):
            self.sessions.require_confirmation(token)
        if name == _CONFIRM:
            self.sessions.confirm(token, _read_code(body))
        elif name == _SIGN_OUT:
            self.sessions.sign_out(token)
        if handler is None:
            return json_response({})
        asked = PageRequest(
            exchange,
            body,
            partial(self.sessions.is_open, token),
            partial(self.sessions.on_end, token),
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


def is_visit(request: BaseRequest) -> bool:
    """Tell whether somebody opened byok's address in a browser."""
    shows_pages = "text/html" in request.headers.get("Accept", "")
    return request.raw_path == "/" and request.method == "GET" and shows_pages


def port_of(exchange: HttpExchange) -> int:
    """Return the port that a request came to."""
    transport = exchange.request.transport
    port: int = transport.get_extra_info("sockname")[1] if transport else 0
    return port


def _read_code(body: "Json") -> str:
    code = body.get("code")
    return code if isinstance(code, str) else ""


def _send_file(exchange: HttpExchange, name: str) -> Response:
    file = static_files().get(name)
    if file is None:
        raise _not_found()
    if exchange.request.method not in ("GET", "HEAD"):
        return exchange.refuse_method("GET, HEAD")
    return Response(body=file.content, headers={**COMMON, "Content-Type": file.kind})


def _not_found() -> BadRequest:
    return BadRequest("There is no such path.", code="not_found", status=404)


# End the service workers that another program left behind at byok's address.
#
# Whoever had the port before byok, such as a web server in development or another user
# of the machine, may have given the browser a service worker. The browser keeps it for
# that address, and lets it answer in byok's place: with a page that looks like byok's,
# even while byok runs. But it also asks the address for newer versions of the worker's
# script. That request is answered with a script that ends the worker, and lets its
# pages load again from byok. byok has no service worker of its own.


_END = b"""\
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  const pages = await clients.matchAll({ type: "window" });
  await registration.unregister();
  for (const page of pages) page.navigate(page.url);
})()));
"""


def asks_for_worker(request: BaseRequest) -> bool:
    """Tell whether a browser asks for the script of a service worker."""
    return request.method == "GET" and request.headers.get("Service-Worker") == "script"


def end_worker() -> Response:
    """Answer with a script that ends the worker; the path does not matter."""
    return Response(
        body=_END,
        headers={**COMMON, "Content-Type": "text/javascript; charset=utf-8"},
    )


# The fields of what the page asks for: exact, because the page is byok's own.
#
# Every function raises BadRequest with status 422 where a field is not what it must be.


_MOST = 2**53  # whole numbers above it are not exact in a page


def read_count(body: Mapping[str, Any], name: str, default: int, *, most: int) -> int:
    """Return how many of something are wanted, from 1 to `most`."""
    value = body.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise bad_field(name, f"a whole number from 1 to {most}")
    return value


def read_number(body: Mapping[str, Any], name: str) -> int | None:
    """Return the number of an entry, None if the field is missing."""
    value = body.get(name)
    if value is not None and (type(value) is not int or not 0 <= value <= _MOST):
        raise bad_field(name, "a whole number")
    return value


def read_amount(body: Mapping[str, Any], name: str) -> float:
    """Return an amount of US dollars, 0 if the field is missing."""
    value = body.get(name, 0)
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        raise bad_field(name, "an amount of at least 0")
    return float(value)


def read_flag(body: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Return whether a field is true, `default` if it is missing."""
    value = body.get(name, default)
    if type(value) is not bool:
        raise bad_field(name, "true or false")
    return value


def read_text(body: Mapping[str, Any], name: str, *, longest: int) -> str:
    """Return a text that can be stored, "" if the field is missing."""
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > longest:
        raise bad_field(name, f"a text of at most {longest} characters")
    return value.encode("utf-8", "replace").decode()


def read_texts(
    body: Mapping[str, Any], name: str, *, most: int, longest: int
) -> list[str]:
    """Return a list of at most `most` texts, empty if the field is missing."""
    value = body.get(name, [])
    if not isinstance(value, list) or len(value) > most:
        raise bad_field(name, f"a list of at most {most}")
    return [read_text({name: one}, name, longest=longest) for one in value]


def refuse_empty(name: str, value: str) -> str:
    """Return a text that says something."""
    if not value.strip():
        raise bad_field(name, "a text that is not empty")
    return value


def read_choice(
    body: Mapping[str, Any],
    name: str,
    allowed: Collection[str],
    default: str | None = None,
) -> str:
    """Return one of the `allowed` words; `default`, if any, for a missing field."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in allowed:
        raise bad_field(name, f"one of {', '.join(allowed)}")
    return value


def bad_field(name: str, wanted: str) -> BadRequest:
    """Return the error of a field that is not what it must be, without its value."""
    return BadRequest(f"{name} must be {wanted}.", code="bad_field", status=422)


# The files of the page: a fixed set from the package, read once when it is opened.


_FOLDER = "static"
_START = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(NamedTuple):
    """One file: its Content-Type, and its bytes."""

    kind: str
    content: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return all files by their paths below /ui/; the start page is ""."""
    found = dict(_walk(resources.files(__package__) / _FOLDER))
    return {**found, "": found[_START]}


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _walk(entry, path + "/")
        elif kind := _TYPES.get(path[path.rfind(".") :]):
            yield path, StaticFile(kind, entry.read_bytes())
