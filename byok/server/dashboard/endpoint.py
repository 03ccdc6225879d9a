"""Everything below /ui: the files of the page, sign-in, and the requests of the page.

A web page is served here, so its own Origin is allowed here and nowhere else. The API
needs a session; the clients' token is not accepted, because a client must not be able
to change addresses and keys. The code for a session is given to whoever can read the
owner's secret (`byok dashboard`).

The `read_*` functions read fields of a request. They are strict, because the page is
byok's own: each raises BadRequest with status 422 if a field has another form.
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
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct

from byok.core.errors import BadRequest, ByokError
from byok.core.language import speaking, translate
from byok.core.platform.installation import find_command
from byok.server.admission import shutting_down
from byok.server.dashboard.sessions import Sessions
from byok.server.http.body import read_object
from byok.server.http.guard import Guard
from byok.server.http.protocol import note_token
from byok.server.http.reply import BASE_HEADERS, HttpExchange, json_response

if TYPE_CHECKING:
    from byok.core.chat import Json


PREFIX = "/ui"
_API = "api/"
_SIGN_IN = "sign-in"
_SIGN_OUT = "sign-out"
_PROVE = "prove"
_CONFIRM = "confirm"
# Names that change settings, keys or the index: each needs a code entered recently.
_CONFIRMED_NAMES = frozenset(
    {"settings-save", "key-set", "key-remove", "index-add", "index-remove"}
)
# Names that need one for `write` only; otherwise they show what they would do.
_CONFIRMED_WRITES = frozenset(
    {"capture", "client-connect", "client-disconnect", "model-probe", "models-update"}
)
_MAX_BODY_BYTES = 2**18
_MAX_NONCE_CHARS = 128
_MAX_NUMBER = 2**53  # whole numbers above it are not exact in a page
_MAX_SIGN_IN_BYTES, _SIGN_IN_SECONDS = 2**10, 5.0  # small, as anybody may send one
BACKGROUND = "X-Byok-Background"  # a header of requests that no user caused
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
_STATIC_FOLDER = "static"
_START_PAGE = "index.html"
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Ends a service worker that another program has left behind at byok's address.
#
# Whoever had the port before byok, such as a web server in development or another user
# of the machine, may have given the browser a service worker. The browser keeps it for
# that address, and lets it answer in byok's place: with a page that looks like byok's,
# even while byok runs. But it also requests newer versions of the worker's script from
# the address. That request is answered with this script, which ends the worker, and
# lets its pages load again from byok. byok has no service worker of its own.
_END_SCRIPT = b"""\
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  const pages = await clients.matchAll({ type: "window" });
  await registration.unregister();
  for (const page of pages) page.navigate(page.url);
})()));
"""


class PageRequest(Struct, frozen=True):
    """A request of a session: the object it sent, and whether the session is open.

    `on_end` registers a function to call when somebody ends the session, and returns a
    function that cancels this.
    """

    exchange: HttpExchange
    body: dict[str, Any]
    is_open: Callable[[], bool]
    on_end: Callable[[Callable[[], None]], Callable[[], None]]


PageHandler: TypeAlias = Callable[[PageRequest], Awaitable["Json | StreamResponse"]]
BodyHandler: TypeAlias = Callable[[dict[str, Any]], Awaitable["Json"]]
MakeHandlers: TypeAlias = Callable[[], Mapping[str, PageHandler]]


def by_body(handler: BodyHandler) -> Callable[[PageRequest], Awaitable["Json"]]:
    """Return a page handler for a function that needs the object of a request only."""
    return lambda request: handler(request.body)


class DashboardEndpoint:
    """Answers /ui and all paths below it."""

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
        self._make_handlers: MakeHandlers | None = None
        self._handlers: Mapping[str, PageHandler] | None = None
        self._is_open = asyncio.Event()

    def open(self, make: MakeHandlers) -> None:
        """Set the factory of the handlers; requests that waited for it go on.

        It is called in a thread, at the first request of a page: a daemon whose page
        nobody opens does not load the modules that answer it.
        """
        self._make_handlers, self._handlers = make, None
        self._is_open.set()

    def close(self) -> None:
        """Release waiting requests with an error: the daemon stops."""
        self._is_open.set()

    def serves(self, raw_path: str) -> bool:
        """Tell whether the dashboard answers a path."""
        path = raw_path.partition("?")[0]
        return path == PREFIX or path.startswith(PREFIX + "/")

    async def answer(self, exchange: HttpExchange) -> StreamResponse:
        """Answer a request whose origin was checked, in the language of its headers.

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
        exchange.record.endpoint = PREFIX + "/"  # so it never counts as a client's
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
        limits = _MAX_SIGN_IN_BYTES, self._body_gap, _SIGN_IN_SECONDS
        body = await read_object(self._guard, exchange.request, *limits)
        return answer(exchange, body)

    def _sign_in(self, exchange: HttpExchange, body: dict[str, Any]) -> Response:
        token = self.sessions.sign_in(_read_code(body))
        exchange.record.trusted = True
        note_token(exchange.request)
        return json_response({"token": token})

    def _prove(self, exchange: HttpExchange, body: dict[str, Any]) -> Response:
        """Prove to a page that this is the daemon which opened its session.

        The page requests this before it sends its token: the port may belong to another
        program by now.
        """
        session = read_text(body, "session", max_chars=_MAX_NONCE_CHARS)
        nonce = read_text(body, "nonce", max_chars=_MAX_NONCE_CHARS)
        challenge = f"{port_of(exchange)} {nonce}"
        return json_response({"proof": self.sessions.prove(session, challenge)})

    async def _answer_page(self, exchange: HttpExchange, name: str) -> StreamResponse:
        request, record = exchange.request, exchange.record
        authorization = request.headers.get("Authorization", "")
        by_user = BACKGROUND not in request.headers
        token = self.sessions.check(authorization, by_user=by_user)
        record.trusted = True
        note_token(request)
        handler = (await self._find_handlers()).get(name)
        if handler is None and name not in (_SIGN_OUT, _CONFIRM):
            raise _not_found()
        record.endpoint = f"{PREFIX}/{_API}{name}"
        if request.method != "POST":
            return exchange.refuse_method("POST")
        body = await read_object(self._guard, request, _MAX_BODY_BYTES, self._body_gap)
        # A path that the user typed may name any file, so even to show it needs a code.
        is_action = body.get("write") is True or body.get("file")
        if name in _CONFIRMED_NAMES or (name in _CONFIRMED_WRITES and is_action):
            self.sessions.require_confirmation(token)
        if name == _CONFIRM:
            self.sessions.confirm(token, _read_code(body))
        elif name == _SIGN_OUT:
            self.sessions.sign_out(token)
        if handler is None:
            return json_response({})
        page_request = PageRequest(
            exchange,
            body,
            partial(self.sessions.is_open, token),
            partial(self.sessions.on_end, token),
        )
        answer = await handler(page_request)
        return answer if isinstance(answer, StreamResponse) else json_response(answer)

    async def _find_handlers(self) -> Mapping[str, PageHandler]:
        await self._is_open.wait()
        while self._handlers is None:
            if (make := self._make_handlers) is None:
                raise shutting_down()
            handlers = await asyncio.to_thread(make)
            # Meanwhile, another request may have made them, or `open` was called again.
            if self._make_handlers is make and self._handlers is None:
                self._handlers = handlers
        return self._handlers


def is_visit(request: BaseRequest) -> bool:
    """Tell whether a browser requests byok's root as a page."""
    shows_pages = "text/html" in request.headers.get("Accept", "")
    return request.raw_path == "/" and request.method == "GET" and shows_pages


def port_of(exchange: HttpExchange) -> int:
    """Return the port at which a request arrived."""
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
    content = file.content if name else _write_program(file.content)
    return Response(body=content, headers={**BASE_HEADERS, "Content-Type": file.kind})


def _write_program(page: bytes) -> bytes:
    """Write into the start page how its user runs byok's commands."""
    return page.replace(b'"byok"', f'"{escape(find_command())}"'.encode(), 1)


def _not_found() -> BadRequest:
    return BadRequest("There is no such path.", code="not_found", status=404)


def asks_for_worker(request: BaseRequest) -> bool:
    """Tell whether a browser requests the script of a service worker."""
    return request.method == "GET" and request.headers.get("Service-Worker") == "script"


def end_worker() -> Response:
    """Answer with a script that ends the service worker; the path does not matter."""
    return Response(
        body=_END_SCRIPT,
        headers={**BASE_HEADERS, "Content-Type": "text/javascript; charset=utf-8"},
    )


def read_count(
    body: Mapping[str, Any], name: str, default: int, *, maximum: int
) -> int:
    """Return a requested number of items, from 1 to `maximum`."""
    value = body.get(name, default)
    if type(value) is not int or not 1 <= value <= maximum:
        raise bad_field(name, f"a whole number from 1 to {maximum}")
    return value


def read_number(body: Mapping[str, Any], name: str) -> int | None:
    """Return the number of an entry, None if the field is missing."""
    value = body.get(name)
    if value is not None and (type(value) is not int or not 0 <= value <= _MAX_NUMBER):
        raise bad_field(name, "a whole number")
    return value


def read_amount(body: Mapping[str, Any], name: str) -> float:
    """Return an amount of US dollars, 0 if the field is missing."""
    value = body.get(name, 0)
    if type(value) not in (int, float) or not 0 <= value <= _MAX_NUMBER:
        raise bad_field(name, "an amount of at least 0")
    return float(value)


def read_flag(body: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Return whether a field is true, `default` if it is missing."""
    value = body.get(name, default)
    if type(value) is not bool:
        raise bad_field(name, "true or false")
    return value


def read_text(body: Mapping[str, Any], name: str, *, max_chars: int) -> str:
    """Return a text that can be stored, "" if the field is missing."""
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > max_chars:
        raise bad_field(name, f"a text of at most {max_chars} characters")
    return value.encode("utf-8", "replace").decode()


def read_texts(
    body: Mapping[str, Any], name: str, *, max_count: int, max_chars: int
) -> list[str]:
    """Return a list of at most `max_count` texts, empty if the field is missing."""
    value = body.get(name, [])
    if not isinstance(value, list) or len(value) > max_count:
        raise bad_field(name, f"a list of at most {max_count}")
    return [read_text({name: text}, name, max_chars=max_chars) for text in value]


def refuse_empty(name: str, value: str) -> str:
    """Return a text, unless it is empty or blank."""
    if not value.strip():
        raise bad_field(name, "a text that is not empty")
    return value


def read_choice(
    body: Mapping[str, Any],
    name: str,
    allowed: Collection[str],
    default: str | None = None,
) -> str:
    """Return one of the `allowed` words, or the `default` if the field is missing."""
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in allowed:
        raise bad_field(name, f"one of {', '.join(allowed)}")
    return value


def bad_field(name: str, expected: str) -> BadRequest:
    """Return the error of a field, which does not repeat its value."""
    return BadRequest(f"{name} must be {expected}.", code="bad_field", status=422)


class StaticFile(NamedTuple):
    """One file: its Content-Type, and its bytes."""

    kind: str
    content: bytes


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Read the page's files from the package, once; return them by path below /ui/.

    The start page has the path "".
    """
    files = dict(_walk(resources.files(__package__) / _STATIC_FOLDER))
    return {**files, "": files[_START_PAGE]}


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _walk(entry, path + "/")
        elif kind := _CONTENT_TYPES.get(path[path.rfind(".") :]):
            yield path, StaticFile(kind, entry.read_bytes())
