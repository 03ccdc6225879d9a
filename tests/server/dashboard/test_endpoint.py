"""/ui over HTTP: files, sign-in, who may ask for what, and what every answer obeys."""

import asyncio
import hashlib
import hmac
import logging
import time
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import StreamResponse
from multidict import CIMultiDict

from byok.core.chat import Json
from byok.core.daemon.token import TokenCheck, read_token, rotate_token
from byok.core.errors import BadRequest, NotReady, UpstreamRefused
from byok.core.platform.paths import find_paths
from byok.core.record import Observers
from byok.core.redact import Redactor
from byok.core.routing import Service
from byok.features.running import Features
from byok.server.admission import Gate
from byok.server.app import App
from byok.server.dashboard.api import make_page_handlers
from byok.server.dashboard.endpoint import (
    DashboardEndpoint,
    PageHandler,
    PageRequest,
    static_files,
)
from byok.server.dashboard.sessions import Sessions
from byok.server.endpoints import LocalHandler
from byok.server.http.guard import Guard
from tests.fakes.cases import case_param
from tests.fakes.clock import Clock
from tests.fakes.daemon import Editor, Watcher, running, settings_for
from tests.fakes.dashboard import Page, make_code, signed_in
from tests.fakes.patience import PATIENCE
from tests.fakes.program import build_wheel
from tests.fakes.raw import RawAnswer, check_error, put, request
from tests.fakes.upstream import FakeUpstream

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
BARE = {"token": b"", "kind": b"", "body": b"", "length": b""}
FOREIGN = (403, "origin_not_allowed")
NO_SESSION = (401, "dashboard_session")
NO_TOKEN = (401, "unauthorized")
WRONG_CODE = (401, "dashboard_code")


def check_page(answer: RawAnswer) -> None:
    """No answer below /ui may be framed, cached, sniffed or run scripts of others."""
    expected = {
        "content-security-policy": CSP,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    assert {name: answer.header(name) for name in expected} == expected


async def ask(
    editor: Editor, *lines: bytes, bearer: str = "TOKEN", **parts: bytes
) -> RawAnswer:
    """Send a request below /ui, and check what each of its answers obeys."""
    usual: dict[str, bytes] = {"token": b"Authorization: Bearer " + bearer.encode()}
    answer = await put(editor, request(*lines, **{**usual, **parts}))
    check_page(answer)
    return answer


async def get(
    editor: Editor, target: str, *lines: bytes, method: bytes = b"GET"
) -> RawAnswer:
    data = request(*lines, method=method, target=target.encode(), **BARE)
    answer = await put(editor, data)
    check_page(answer)
    return answer


# Files


async def test_every_file_of_the_page_is_served_with_its_type_and_without_a_token(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BYOK_HOME")  # the first page would name it
    files = {f"/ui/{name}?v=1": file for name, file in static_files().items()}
    starts = ("/ui", "/ui/", "/ui/?x=/etc", "/ui/index.html")
    for target, file in {**files, **dict.fromkeys(starts, static_files()[""])}.items():
        answer = await get(editor, target)
        assert (answer.status, answer.body) == (200, file.content), target
        assert answer.header("content-type") == file.kind


async def test_the_page_knows_how_its_user_runs_the_commands_of_this_byok(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_HOME", "/a <home>")
    page = (await get(editor, "/ui/")).body.decode()
    assert 'data-program="BYOK_HOME=&#x27;/a &lt;home&gt;&#x27; byok"' in page
    refused = await get(editor, "/ui/api/state")
    assert "BYOK_HOME='/a <home>' byok dashboard" in refused.json["error"]["hint"]


async def test_the_address_alone_leads_a_browser_to_the_page(editor: Editor) -> None:
    page = {"Accept": "text/html,*/*;q=0.8"}
    for headers, status, place in (
        (page, 302, "/ui/"),
        ({"Accept": "*/*"}, 401, None),
    ):
        async with editor.http.get(
            editor.daemon.url + "/", headers=headers, allow_redirects=False
        ) as answer:
            assert (answer.status, answer.headers.get("Location")) == (status, place)


NO_FILES = [
    "none.js", "app.js/", "/app.js", "./app.js", "panels", "panels/", "APP.JS",
    "../ui/app.js", "../../pyproject.toml", "panels/../app.js", "..%2fapp.js",
    "%2e%2e/app.js", "..\\app.js", "..%5capp.js", "app.js%00", "app.js;x",
    "/etc/passwd", "//evil.example/app.js", "app%2ejs", "__init__.py", "api",
    "sessions.py", "../sessions.py", "%e2%80%aeapp.js",
]  # fmt: skip


async def test_what_is_no_file_of_the_page_is_404(editor: Editor) -> None:
    for name in NO_FILES:
        answer = await get(editor, f"/ui/{name}")
        assert (answer.status, answer.code) == (404, "not_found"), name


async def test_other_spellings_of_the_path_are_not_the_dashboard(
    editor: Editor,
) -> None:
    for target in (b"/ui%2fapp.js", b"/%75i/", b"//ui/", b"/UI/", b"/uix"):
        answer = await put(editor, request(method=b"GET", target=target, **BARE))
        assert (answer.status, answer.code) == NO_TOKEN, target


async def test_a_file_is_read_by_get_and_head(editor: Editor) -> None:
    size = len(static_files()["app.js"].content)
    async with editor.http.head(f"{editor.daemon.url}/ui/app.js") as head:
        assert (head.status, await head.read()) == (200, b"")
        assert head.headers["Content-Length"] == str(size)
    for method in (b"POST", b"PUT", b"DELETE", b"PATCH", b"PROPFIND"):
        answer = await get(editor, "/ui/app.js", method=method)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert answer.header("allow") == "GET, HEAD"


# Pages of others


FOREIGN_LINES = [
    [b"Origin: https://evil.example"],
    [b"Origin: null"],
    [b"Origin: "],
    [b"Origin: http://127.0.0.1"],
    [b"Origin: http://127.0.0.1:1"],
    [b"Origin: https://127.0.0.1:PORT"],
    [b"Origin: http://localhost:PORT"],
    [b"Origin: http://[::1]:PORT"],
    [b"Origin: http://127.0.0.1:PORT/"],
    [b"Origin: http://127.0.0.1:PORT.evil.example"],
    [b"Origin: http://x@127.0.0.1:PORT"],
    [b"Sec-Fetch-Site: cross-site"],
    [b"Sec-Fetch-Site: same-site"],
    [b"Sec-Fetch-Site: "],
    [b"Origin: http://127.0.0.1:PORT", b"Sec-Fetch-Site: cross-site"],
    [b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate"],
]


@pytest.mark.case("B80")
async def test_a_foreign_page_is_refused(editor: Editor) -> None:
    for lines in FOREIGN_LINES:
        for target in ("/ui/", "/ui/api/sign-in", "/ui/api/x"):
            asked = await ask(editor, *lines, target=target.encode())
            navigated = await get(editor, target, *lines)
            for answer in (asked, navigated):
                assert (answer.status, answer.code) == FOREIGN, (lines, target)


async def test_a_preflight_is_refused(editor: Editor) -> None:
    lines = [
        b"Origin: http://127.0.0.1:PORT",
        b"Access-Control-Request-Method: POST",
        b"Access-Control-Request-Headers: authorization",
    ]
    for target in ("/ui/", "/ui/api/daemon"):
        answer = await get(editor, target, *lines, method=b"OPTIONS")
        assert (answer.status, answer.code) == FOREIGN


@pytest.mark.case("B01")
async def test_a_foreign_host_is_refused(editor: Editor) -> None:
    for host in (b"evil.example:PORT", b"127.0.0.1", b"localhost.:PORT"):
        answer = await ask(editor, target=b"/ui/api/sign-in", host=b"Host: " + host)
        assert (answer.status, answer.code) == (421, "host_not_allowed")


async def test_the_page_is_used_by_each_name_of_this_machine(editor: Editor) -> None:
    for name in (b"127.0.0.1", b"localhost", b"[::1]"):
        code = await make_code(editor)
        answer = await ask(
            editor,
            b"Origin: http://" + name + b":PORT",
            b"Sec-Fetch-Site: same-origin",
            host=b"Host: " + name + b":PORT",
            target=b"/ui/api/sign-in",
            body=b'{"code":"%s"}' % code.encode(),
            token=b"",
        )
        assert answer.status == 200, name


async def test_outside_of_ui_byoks_own_page_is_refused_as_any_other(
    editor: Editor,
) -> None:
    for target in (b"/chat", b"/byok/daemon", b"/health", b"/uix", b"/"):
        origin = b"Origin: http://127.0.0.1:PORT"
        assert (await put(editor, request(origin, target=target))).status == 403


# Who may ask


def spellings(editor: Editor, session: str, code: str) -> dict[str, str]:
    """Return what may be sent as a token, by what it is."""
    return {
        "client": editor.token,
        "metrics": read_token(find_paths().metrics_token),
        "owner": editor.owner_token,
        "secret": read_token(find_paths().owner_secret),
        "session": session,
        "code": code,
        "none": "",
    }


async def test_each_token_opens_its_own_door_and_no_other() -> None:
    both = ("client", "owner")
    doors = {
        "/ui/api/daemon": (("session",), NO_SESSION),
        "/ui/api/unknown": (("session",), NO_SESSION),
        "/ui/api/": (("session",), NO_SESSION),
        "/ui/api/sign-out/": (("session",), NO_SESSION),
        "/chat-stream": (both, NO_TOKEN),
        "/byok/daemon": (both, NO_TOKEN),
        "/any/base/ui/api/daemon": (both, NO_TOKEN),
        "/metrics": (("metrics",), NO_TOKEN),
    }
    on = {"metrics": {"enabled": True}}
    async with running(on, upstream="demo") as editor:
        page = await signed_in(editor)
        code = await make_code(editor)
        for kind, bearer in spellings(editor, page.token, code).items():
            for target, (keys, refusal) in doors.items():
                sent = b"Authorization: Bearer " + bearer.encode()
                data = request(target=target.encode(), token=sent if bearer else b"")
                answer = await put(editor, data)
                got = (answer.status, answer.code) if answer.status == 401 else None
                assert got == (None if kind in keys else refusal), (kind, target)


async def test_a_session_is_shown_in_one_way(editor: Editor, page: Page) -> None:
    token = page.token.encode()
    for line in (
        b"X-Api-Key: " + token,
        b"Cookie: byok-session=" + token,
        b"Authorization: Basic " + token,
        b"Authorization: " + token,
        b"Authorization: Bearer \xff\xfe",
        b"X-Authorization: Bearer " + token,
    ):
        asked = b"/ui/api/daemon?token=" + token
        answer = await ask(editor, line, target=asked, token=b"")
        assert (answer.status, answer.code) == NO_SESSION, line
    assert (await page.call("daemon"))["model"] == "byok:demo:echo"


async def test_a_session_asks_until_it_signs_out(editor: Editor) -> None:
    page, other = await signed_in(editor), await signed_in(editor)
    assert (await page.call("daemon"))["model"] == "byok:demo:echo"
    assert await page.call("sign-out") == {}
    assert await page.refused("daemon") == NO_SESSION
    assert await page.refused("sign-out") == NO_SESSION
    assert (await other.raw("daemon")).status == 200


async def test_the_command_signs_out_all_sessions(editor: Editor) -> None:
    page, other = await signed_in(editor), await signed_in(editor)
    assert (await editor.post("/byok/dashboard-code", {"sign_out": True})).json == {
        "ended": 2
    }
    assert await page.refused("daemon") == await other.refused("daemon") == NO_SESSION


async def test_the_daemon_proves_itself_to_who_has_a_session(
    editor: Editor, page: Page
) -> None:
    """Without the token, which another program at the port would hear."""
    key = hashlib.sha256(page.token.encode())
    session = hashlib.sha256(key.hexdigest().encode()).hexdigest()
    asked = {"session": session, "nonce": "n" * 32}
    stranger = Page(editor, "")
    text = f"{editor.daemon.port} {'n' * 32}".encode()
    proof = hmac.digest(key.digest(), text, "sha256").hex()
    assert await stranger.call("prove", asked) == {"proof": proof}
    for unknown in ("", key.hexdigest(), "0" * 64, "\ud800"):
        wrong = {**asked, "session": unknown}
        assert await stranger.refused("prove", wrong) == NO_SESSION
    assert await stranger.refused("prove", {}) == NO_SESSION
    wrong = {**asked, "nonce": "n" * 129}
    assert await stranger.refused("prove", wrong) == (422, "bad_field")


@pytest.mark.case("B80")
async def test_a_code_signs_in_once(editor: Editor) -> None:
    code = await make_code(editor)
    page = await signed_in(editor)
    page.token = (await page.call("sign-in", {"code": code}))["token"]
    assert await page.refused("sign-in", {"code": code}) == WRONG_CODE
    assert await page.refused("confirm", {"code": code}) == WRONG_CODE
    assert (await page.raw("daemon")).status == 200


async def test_a_wrong_code_of_any_type_is_401(page: Page) -> None:
    codes: list[object] = [None, "", 0, True, [], {}, ["x"], "x" * 900, "é", "\ud800"]
    for code in codes:
        assert await page.refused("sign-in", {"code": code}) == WRONG_CODE


async def test_a_page_cannot_make_codes(editor: Editor) -> None:
    own = b"Origin: http://127.0.0.1:PORT"
    target = b"/byok/dashboard-code"
    answer = await put(
        editor,
        request(
            own,
            target=target,
            token=b"Authorization: Bearer " + editor.owner_token.encode(),
        ),
    )
    assert (answer.status, answer.code) == FOREIGN
    page = await signed_in(editor)
    assert await page.refused("dashboard-code") == (404, "not_found")


CHANGES = ("settings-save", "key-set", "key-remove", "index-add", "index-remove")


@pytest.mark.case("B160")
async def test_a_change_needs_a_code_of_the_last_quarter_of_an_hour(
    tmp_path: Path,
) -> None:
    front, asked_for = Front(tmp_path), list[str]()

    def make(name: str) -> PageHandler:
        async def answer(asked: PageRequest) -> Json:
            asked_for.append(name)
            return {}

        return answer

    front.dashboard.open(
        lambda: {name: make(name) for name in (*CHANGES, "settings", "settings-check")}
    )
    front.clock.now += 899
    assert [await front.status(f"/ui/api/{name}") for name in CHANGES] == [200] * 5
    front.clock.now += 1
    asked_for.clear()
    assert [await front.status(f"/ui/api/{name}") for name in CHANGES] == [403] * 5
    assert asked_for == []
    assert await front.status("/ui/api/settings") == 200
    assert await front.status("/ui/api/settings-check") == 200
    assert await front.status("/ui/api/confirm") == 401
    assert await front.status("/ui/api/key-set") == 403
    front.sessions.confirm(front.token, front.sessions.make_code())
    assert await front.status("/ui/api/key-set") == 200


async def test_each_start_makes_the_owners_secret_anew() -> None:
    path = find_paths().owner_secret
    async with running(upstream="demo"):
        old = read_token(path)
    path.chmod(0o644)  # others could have read it
    async with running(upstream="demo") as editor:
        assert read_token(path) != old
        assert path.stat().st_mode & 0o777 == 0o600
        await signed_in(editor)


async def test_a_secret_that_is_no_good_opens_nothing_and_stops_nothing() -> None:
    path = find_paths().owner_secret
    async with running(upstream="demo") as editor:
        token = editor.owner_token
        path.write_text("")
        for bearer in (token, "x" * 43):
            sent = b"Authorization: Bearer " + bearer.encode()
            answer = await put(editor, request(target=b"/byok/daemon", token=sent))
            assert (answer.status, answer.code) == NO_TOKEN
            assert str(path).encode() not in answer.body
        assert (await get(editor, "/ui/")).status == 200
        assert (await editor.chat()).status == 200
        rotate_token(path)
        await signed_in(editor)


# Bodies


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        case_param({"body": b"{"}, (400, "bad_json"), id="B39-cut"),
        case_param({"body": b"[]"}, (422, "not_an_object"), id="B39-array"),
        case_param({"body": b"null"}, (422, "not_an_object"), id="B39-null"),
        case_param({"body": b"\xff"}, (400, "bad_json"), id="B40-bytes"),
        case_param(
            {"body": b'{"a":' * 2000 + b"1" + b"}" * 2000},
            (422, "json_too_complex"),
            id="B43-deep",
        ),
        case_param({"kind": b""}, (415, "content_type"), id="B16-none"),
        case_param(
            {"kind": b"Content-Type: text/plain"}, (415, "content_type"), id="B14-text"
        ),
        case_param(
            {"kind": b"Content-Type: application/x-www-form-urlencoded"},
            (415, "content_type"),
            id="B15-form",
        ),
        case_param(
            {"length": b"Content-Length: 10000000000", "body": b""},
            (413, "body_too_large"),
            id="B36-declared",
        ),
        case_param(
            {
                "length": b"Transfer-Encoding: chunked",
                "body": b"80000\r\n" + b" " * 2**19 + b"\r\n0\r\n\r\n",
            },
            (413, "body_too_large"),
            id="B35-chunked",
        ),
    ],
)
async def test_a_body_that_is_no_good_is_refused(
    parts: dict[str, bytes], expected: tuple[int, str]
) -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        for target, bearer in (
            ("/ui/api/sign-in", ""),
            ("/ui/api/daemon", page.token),
            ("/ui/api/sign-out", page.token),
        ):
            sent = {"target": target.encode(), **parts}
            answer = await ask(editor, bearer=bearer or "x", **sent)
            if target == "/ui/api/sign-in" and expected[1] == "json_too_complex":
                assert answer.code == "body_too_large"  # for it, 1 KiB is too much
            else:
                assert (answer.status, answer.code) == expected, target
        assert (await page.raw("daemon")).status == 200


async def test_a_stranger_sends_a_small_body_in_a_short_time(editor: Editor) -> None:
    for size, expected in (
        (1024, (400, "bad_json")),
        (1025, (413, "body_too_large")),
    ):
        answer = await ask(
            editor, target=b"/ui/api/sign-in", token=b"", body=b"x" * size
        )
        assert (answer.status, answer.code) == expected


async def test_what_is_asked_for_is_asked_by_post(editor: Editor, page: Page) -> None:
    for method in (b"GET", b"PUT", b"DELETE"):
        for name, bearer in (("daemon", page.token), ("sign-in", "x")):
            target = f"/ui/api/{name}".encode()
            answer = await ask(editor, target=target, bearer=bearer, method=method)
            assert (answer.status, answer.header("allow")) == (405, "POST")


async def test_an_unknown_name_is_404_for_a_session(page: Page) -> None:
    for name in ("none", "?x", "daemon/", "Daemon", "daemon%2f", "a" * 900):
        assert await page.refused(name) == (404, "not_found"), name


# Every name


def all_names(editor: Editor) -> list[str]:
    """Return what the page may ask for, but the streams, which have no end."""
    services, control = editor.services, editor.daemon.control
    local: dict[str, LocalHandler] = dict.fromkeys(Service, answer_nothing)
    names = make_page_handlers(local, services, control, Features({}), time.time)
    return sorted(names)


async def answer_nothing(body: Json) -> Json:
    return body


HOSTILE: list[dict[str, object]] = [
    {},
    {"name": "../x\u202e\x00", "root": "\x00", "path": "../../etc/passwd", "days": -1},
    {"name": 1e308, "id": [], "question": {}, "limit": 10**18, "conversation": True},
    {
        "name": None,
        "id": "x" * 60_000,
        "question": "\ud800",
        "days": "NaN",
        "to": 2**63,
    },
]


async def test_every_name_answers_hostile_fields_without_a_fault(
    editor: Editor, page: Page
) -> None:
    for body in HOSTILE:
        for name in all_names(editor):
            answer = await page.raw(name, body)
            assert answer.status in (200, 400, 404, 422), (name, answer.raw)
            assert answer.headers["Content-Security-Policy"] == CSP
            if answer.status != 200:
                check_error(answer.json)
    assert (await page.raw("daemon")).status == 200


async def test_a_stream_has_the_headers_of_the_page_too(page: Page) -> None:
    async with page.opened("live") as response:
        assert response.status == 200
        pairs = [(name.lower(), text) for name, text in response.headers.items()]
        check_page(RawAnswer(response.status, pairs, b""))
        await page.call("sign-out")
        async with asyncio.timeout(PATIENCE):
            assert b'"session"' in await response.read()


# The life of a daemon


class Front:
    """An App with a dashboard whose handlers a test gives, and a session of it."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.sessions = sessions = Sessions(clock=self.clock, wall=self.clock)
        self.token = sessions.sign_in(sessions.make_code())
        guard = Guard(TokenCheck(folder / "token"), TokenCheck(folder / "owner"), 1)
        self.dashboard = DashboardEndpoint(guard, sessions=sessions)
        self._app = App(
            guard,
            Gate(1, 0, 1),
            Redactor(),
            Observers([]),
            prove=lambda body: body,
            dashboard=self.dashboard,
        )

    def ask(
        self, path: str, method: str = "POST", **headers: str
    ) -> "asyncio.Future[StreamResponse]":
        usual = {
            "Host": "127.0.0.1:1",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            **headers,
        }
        sent = make_mocked_request(method, path, headers=CIMultiDict(usual))
        return asyncio.ensure_future(self._app(sent))

    async def status(self, path: str, method: str = "POST") -> int:
        return (await asyncio.wait_for(self.ask(path, method), PATIENCE)).status


async def test_early_requests_of_the_page_wait_for_the_services(tmp_path: Path) -> None:
    front = Front(tmp_path)
    early = front.ask("/ui/api/name")
    assert await front.status("/ui/", "GET") == 200
    assert await front.status("/ui/api/sign-in") == 401
    assert not early.done()

    async def answer(asked: PageRequest) -> Json:
        assert asked.is_open()
        return {"body": asked.body}

    front.dashboard.open(lambda: {"name": answer})
    assert (await asyncio.wait_for(early, PATIENCE)).status == 200
    assert await front.status("/ui/api/other") == 404


async def test_early_requests_of_the_page_are_refused_when_the_start_fails(
    tmp_path: Path,
) -> None:
    front = Front(tmp_path)
    early = front.ask("/ui/api/name")
    await asyncio.sleep(0)
    front.dashboard.close()
    refused = await asyncio.wait_for(early, PATIENCE)
    assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
    assert refused.headers["Content-Security-Policy"] == CSP


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (BadRequest("No.", code="bad_field", status=422), 422),
        (UpstreamRefused("a-secret-of-32-characters-length", code="x"), 502),
        (NotReady("Not yet."), 503),
        (ZeroDivisionError("inside"), 500),
        (MemoryError(), 503),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_failure_is_an_error_of_byoks_shape(
    tmp_path: Path, fault: Exception, status: int
) -> None:
    async def fail(asked: PageRequest) -> Json:
        raise fault

    front = Front(tmp_path)
    front.dashboard.open(lambda: {"name": fail})
    answer = await asyncio.wait_for(front.ask("/ui/api/name"), PATIENCE)
    assert answer.headers["Content-Security-Policy"] == CSP
    whole = orjson.loads(getattr(answer, "body"))  # noqa: B009 - a Response in fact
    check_error(whole)
    assert "inside" not in str(whole)
    assert (answer.status == status) or (status == 502 and answer.status < 500)


@pytest.mark.parametrize(
    ("background", "lasts"), [(False, True), (True, False)], ids=["user", "background"]
)
async def test_only_what_the_user_does_prolongs_a_session(
    tmp_path: Path, background: bool, lasts: bool
) -> None:
    async def answer(asked: PageRequest) -> Json:
        return {}

    front = Front(tmp_path)
    front.dashboard.open(lambda: {"name": answer})
    more = {"X-Byok-Background": "1"} if background else {}
    front.clock.now += 40_000
    assert (await front.ask("/ui/api/name", **more)).status == 200
    front.clock.now += 40_000
    assert ((await front.ask("/ui/api/name", **more)).status == 200) is lasts


async def test_a_session_that_ends_is_over_for_what_still_runs(tmp_path: Path) -> None:
    front, go_on = Front(tmp_path), asyncio.Event()

    async def answer(asked: PageRequest) -> Json:
        await go_on.wait()
        return {"open": asked.is_open()}

    front.dashboard.open(lambda: {"name": answer})
    running_on = front.ask("/ui/api/name")
    await asyncio.sleep(0)
    assert await front.status("/ui/api/sign-out") == 200
    go_on.set()
    body = getattr(await running_on, "body")  # noqa: B009 - a Response in fact
    assert orjson.loads(body) == {"open": False}


async def test_sessions_outlive_a_reload_of_the_settings(
    editor: Editor, page: Page
) -> None:
    await editor.daemon.use(editor.services.settings)
    assert (await page.raw("daemon")).status == 200


# What is written down


async def test_neither_code_nor_token_is_written_down(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "byok")
    async with running({**settings_for(fake.url), "log": {"level": "debug"}}) as editor:
        await editor.post("/byok/capture", {"switch": "on"})
        code = await make_code(editor)
        page = await signed_in(editor)
        secret = read_token(find_paths().owner_secret)
        secrets = [code, page.token, secret, editor.owner_token]
        await page.call("sign-in", {"code": code})
        await page.refused("sign-in", {"code": code})
        await page.refused("daemon-" + page.token)
        await get(editor, f"/ui/{page.token}?code={code}")
        await page.call("daemon")
        await editor.chat("Hello.")
    files = [path for path in find_paths().state_dir.rglob("*") if path.is_file()]
    captured = list(find_paths().captures.iterdir())
    written = {path: path.read_bytes() for path in files}
    written.pop(find_paths().owner_secret)
    assert len(captured) == 1  # the chat
    for secret in secrets:
        assert secret not in caplog.text
        assert [path for path, raw in written.items() if secret.encode() in raw] == []


async def test_the_page_is_no_client(fake: FakeUpstream) -> None:
    """Neither journal nor caps, spans and captures see it as one."""
    watcher = Watcher()
    async with running(settings_for(fake.url), observers=[watcher]) as editor:
        page = await signed_in(editor)
        await page.call("daemon")
        await page.refused("none")
        await page.raw("sign-out")
        await get(editor, "/ui/app.js")
        await get(editor, "/ui/none")
    seen = [record.endpoint for record in watcher.finished]
    assert not [record for record in watcher.finished if record.is_of_client]
    assert set(seen) == {
        *("/ui/", "/byok/dashboard-code"),
        *("/ui/api/sign-in", "/ui/api/daemon", "/ui/api/sign-out"),
    }  # fmt: skip


GET = {"method": b"GET", "token": b"", "kind": b"", "body": b"", "length": b""}
ASKS = b"Service-Worker: script"


@pytest.mark.parametrize(
    "target", ["/worker.js", "/ui/worker.js", "/ui/api/x", "/", "/chat-stream"]
)
@pytest.mark.case("B143")
async def test_a_browser_that_asks_for_a_worker_gets_its_end(target: str) -> None:
    async with running(upstream="demo") as editor:
        sent = request(
            ASKS, b"Sec-Fetch-Site: same-origin", target=target.encode(), **GET
        )
        answer = await put(editor, sent)
    assert answer.status == 200
    assert answer.header("content-type") == "text/javascript; charset=utf-8"
    assert answer.header("cache-control") == "no-store"
    assert b"registration.unregister()" in answer.body
    assert b"fetch" not in answer.body


@pytest.mark.parametrize(
    ("lines", "parts", "status"),
    [
        ([b"Service-Worker: x"], {}, 401),
        ([], {}, 401),
        ([ASKS], {"method": b"POST"}, 401),
        ([ASKS, b"Origin: http://127.0.0.1:1"], {}, 403),
        ([ASKS, b"Sec-Fetch-Site: cross-site"], {}, 403),
        ([ASKS], {"host": b"Host: evil.example"}, 421),
    ],
)
async def test_nothing_else_gets_it(
    lines: list[bytes], parts: dict[str, bytes], status: int
) -> None:
    async with running(upstream="demo") as editor:
        sent = request(*lines, target=b"/worker.js", **{**GET, **parts})
        answer = await put(editor, sent)
    assert answer.status == status


NAMES = {
    "daemon": "model",
    "catalog": "models",
    "keys": "keys",
    "index": "workspaces",
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": " \n"}),
    ("search", {"query": "x" * 10_001}),
    ("search", {"query": "x", "limit": 51}),
    ("search", {"query": "x", "workspaces": "/"}),
    ("search-skipped", {"query": ""}),
    ("retrieval", {"query": "x", "length": 0}),
    ("retrieval", {"query": ["x"]}),
    ("index-skipped", {"root": ""}),
    ("index-skipped", {"root": "/", "reason": "because"}),
    ("index-skipped", {"root": "/", "offset": -1}),
    ("index-skipped", {"root": "/", "limit": 201}),
    ("index-skipped", {"root": "/not-a-workspace"}),
    ("index-why", {"path": "relative"}),
    ("index-add", {"root": "../up"}),
    ("conversations", {"count": 0}),
    ("conversations", {"offset": -1}),
    ("conversation", {}),
    ("conversation", {"conversation": ["a"]}),
    ("conversation", {"conversation": "a", "before": -1}),
    ("problems", {"days": 0}),
    ("problems", {"days": 1e3}),
    ("series", {}),
    ("series", {"range": "year"}),
    ("series", {"range": {"day": 1}}),
    ("series", {"range": "day", "by": "conversation"}),
    ("series", {"range": "day", "by": "1; DROP TABLE request"}),
    ("usage", {"days": 3}),
    ("usage", {"by": "purpose"}),
    ("usage", {"by": "day", "days": 367}),
    ("usage", {"by": "day", "days": True}),
]


async def test_what_commands_ask_for_has_a_name(page: Page) -> None:
    for name, field in NAMES.items():
        assert field in await page.call(name), name


async def test_a_field_that_does_not_fit_is_refused(page: Page) -> None:
    for name, body in WRONG:
        assert (await page.refused(name, body))[0] == 422, (name, body)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("panels/overview.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
    ],
)
def test_a_file_has_its_type(name: str, kind: str) -> None:
    found = static_files()[name]
    assert found.kind == kind
    assert found.content


@pytest.mark.slow
def test_the_wheel_has_every_file_and_the_licence_of_the_charts(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        names = wheel.namelist()
    folder = "byok/server/dashboard/static/"
    assert {folder + name for name in static_files() if name} <= set(names)
    licences = [name for name in names if "/licenses/" in name]
    assert any(name.endswith("/LICENSE") for name in licences)
    assert any(name.endswith("/uPlot.LICENSE.txt") for name in licences)


def test_what_others_wrote_is_as_they_published_it() -> None:
    # npm's uplot 1.6.32: LICENSE, dist/uPlot.iife.min.js and dist/uPlot.min.css. A
    # newer version is taken as a whole, with its sums; nothing is changed here.
    files = static_files()
    assert b"(v1.6.32)" in files["vendor/uPlot.iife.min.js"].content[:400]
    sums = {
        name: hashlib.sha256(file.content).hexdigest()
        for name, file in files.items()
        if name.startswith("vendor/")
    }
    assert sums == {
        "vendor/uPlot.LICENSE.txt": (
            "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"
        ),
        "vendor/uPlot.iife.min.js": (
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
        ),
        "vendor/uPlot.min.css": (
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
        ),
    }


def test_one_file_alone_knows_the_library_of_charts() -> None:
    knows = {
        name
        for name, file in static_files().items()
        if not name.startswith("vendor/") and b"uPlot" in file.content
    }
    assert knows - {""} == {"charts.js", "index.html"}
