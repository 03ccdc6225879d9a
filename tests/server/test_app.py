"""Before the endpoints: health, waiting, faults, and the access log."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict

from byok.core.daemon.token import TokenCheck, read_token
from byok.core.events import Usage
from byok.core.record import Hop, Observers, RequestOutcome, RequestRecord
from byok.core.redact import Redactor
from byok.server.admission import Gate
from byok.server.app import AccessLog, App, access_line
from byok.server.http.guard import Guard
from byok.server.http.reply import HttpExchange
from tests.fakes.clock import Clock
from tests.fakes.daemon import Editor, Watcher, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import check_error, connected, filled, put, request
from tests.fakes.upstream import DONE, FakeUpstream, Script, answer, delta, event

LINE = re.compile(r"(\S+) (\S+) (\d{3}) \d+ ms ([0-9a-f]{16})( byok:demo:\S+ .*)?")


def bare_get(path: str) -> bytes:
    """Write a GET without token, type or body."""
    return request(
        method=b"GET", target=path.encode(), token=b"", kind=b"", length=b"", body=b""
    )


def accesses(caplog: pytest.LogCaptureFixture) -> list[str]:
    written = [r.getMessage() for r in caplog.records if r.name == "byok.access"]
    return "\n".join(written).splitlines()


@pytest.mark.parametrize("path", ["/health", "/healthz"])
async def test_health_needs_no_token(path: str) -> None:
    async with running(upstream="demo") as editor:
        answer = await put(editor, bare_get(path))
        assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "path", ["/", "/health/", "//health", "/a/health", "/health?x", "/get-models"]
)
@pytest.mark.case("B17")
async def test_every_other_path_needs_the_token(path: str) -> None:
    async with running(upstream="demo") as editor:
        assert (await put(editor, bare_get(path))).code == "unauthorized"


async def test_health_is_503_while_the_daemon_stops(editor: Editor) -> None:
    port = editor.daemon.port
    async with connected(port) as kept:
        ask = filled(bare_get("/healthz"), port, editor.token)
        assert (await (await kept.send(ask)).answer()).status == 200
        await editor.daemon.stop()
        answer = await (await kept.send(ask)).answer()
        assert (answer.status, answer.json) == (503, {"status": "stopping"})


@pytest.mark.parametrize(
    ("path", "body", "line"),
    [
        ("/chat-stream", {"message": "MARK"}, "POST /chat-stream 200"),
        ("/any/base/chat/?q=MARK", {"message": "MARK"}, "POST /chat 200"),
        ("/MARK/none?q=MARK", {"x": "MARK"}, "POST (unknown) 200"),
        ("/edit", {"selected_text": "MARK"}, "POST /edit 422"),
        ("/..%5cMARK", {}, "POST (none) 404"),
    ],
)
async def test_access_log_has_facts_and_no_content(
    path: str, body: Any, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.access")
    async with running(upstream="demo") as editor:
        reply = await editor.post(path, body)
    [found] = accesses(caplog)
    match = LINE.fullmatch(found.replace("(unknown)", "-").replace("(none)", "-"))
    assert match is not None, found
    assert found.startswith(line + " ")
    assert "MARK" not in found
    if reply.status >= 400:
        assert match[4] == reply.json["error"]["request_id"]
    assert reply.headers["X-Request-Id"] == match[4]


async def test_access_log_cannot_be_filled_without_the_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever reaches the port could push everything else out of it."""
    caplog.set_level(logging.INFO)
    async with running(upstream="demo") as editor:
        for _ in range(5):
            await put(editor, request(token=b"Authorization: Bearer MARK"))
            await put(editor, request(host=b"Host: MARK"))
    assert accesses(caplog) == []
    told = [
        r.getMessage() for r in caplog.records if r.name == "byok.server.http.guard"
    ]
    assert told == ["requests refused: 1, now: unauthorized"]
    assert "MARK" not in caplog.text


def asked(method: str, path: str, token: str = "") -> BaseRequest:
    headers = {
        "Host": "127.0.0.1:1",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
    }
    return make_mocked_request(method, path, headers=CIMultiDict(headers))


def closed_app(folder: Path, **more: Any) -> App:
    """An App whose endpoints are not there yet."""
    guard = Guard(TokenCheck(folder / "token"), TokenCheck(folder / "owner"), 1)
    observers = Observers([AccessLog()])
    gate = Gate(1, 0, 1)
    return App(guard, gate, Redactor(), observers, prove=lambda body: body, **more)


async def test_early_requests_without_the_token_do_not_wait(tmp_path: Path) -> None:
    response = await asyncio.wait_for(
        closed_app(tmp_path)(asked("POST", "/chat")), PATIENCE
    )
    assert response.status == 401


async def test_what_is_kept_for_speed_is_forgotten_where_nobody_asks(
    tmp_path: Path,
) -> None:
    forgotten, answered = asyncio.Event(), asyncio.Event()

    async def wait(exchange: HttpExchange) -> StreamResponse:
        await answered.wait()
        return Response()

    app = closed_app(tmp_path, rest_seconds=(0.0, 0.01))
    app.open(wait, forgotten.set)
    token = read_token(tmp_path / "token")
    asking = asyncio.create_task(app(asked("POST", "/chat", token)))
    await asyncio.sleep(0.05)
    assert not forgotten.is_set()
    answered.set()
    await asyncio.wait_for(forgotten.wait(), PATIENCE)
    assert (await asking).status == 200


async def test_free_memory_goes_back_after_each_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = asyncio.Event()
    monkeypatch.setattr("byok.server.app.give_back_free_memory", given_back.set)
    app = closed_app(tmp_path, rest_seconds=(0.0, 3600.0))
    for _ in range(2):
        await app(asked("GET", "/health"))
        await asyncio.wait_for(given_back.wait(), PATIENCE)
        given_back.clear()


async def answered_by(fault: Exception, folder: Path) -> StreamResponse:
    """Ask an App whose endpoints have a fault of byok's own."""

    async def fail(exchange: HttpExchange) -> StreamResponse:
        raise fault

    app = closed_app(folder)
    app.open(fail, shrink=lambda: None)
    return await app(asked("POST", "/chat", read_token(folder / "token")))


async def test_memory_error_asks_the_client_to_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answered_by(MemoryError(), tmp_path)
    assert (response.status, response.headers["Retry-After"]) == (503, "2")
    assert "Traceback" not in caplog.text


async def test_internal_error_is_one_500_with_a_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answered_by(ZeroDivisionError("a-word-from-the-inside"), tmp_path)
    assert response.status == 500
    whole = json.loads(getattr(response, "body"))  # noqa: B009 - a Response in fact
    check_error(whole)
    assert whole["error"]["code"] == "internal"
    assert "a-word-from-the-inside" not in str(whole)
    assert "a-word-from-the-inside" in caplog.text
    assert whole["error"]["request_id"] in caplog.text


@asynccontextmanager
async def watched(fake: FakeUpstream) -> AsyncIterator[tuple[Editor, Watcher]]:
    """Run a daemon whose requests are observed."""
    watcher = Watcher()
    async with running(settings_for(fake.url), observers=[watcher]) as editor:
        yield editor, watcher
    assert watcher.open == []


USAGE = {"prompt_tokens": 9, "completion_tokens": 2}


@pytest.mark.parametrize("path", ["/chat-stream", "/chat"])
async def test_observer_reads_the_outcome_of_a_chat(
    fake: FakeUpstream, path: str
) -> None:
    said = [*answer("One")[:-1], event({"choices": [], "usage": USAGE}), DONE]
    fake.play(Script(said))
    agent = {"User-Agent": "augment.cli/0.9.2 (commit x)/interactive"}
    body = {"message": "Hi?", "conversation_id": "c-1"}
    async with watched(fake) as (editor, watcher):
        reply = await editor.post(path, body, headers=agent)
    [record] = watcher.finished
    assert (record.method, record.endpoint, record.status) == ("POST", path, 200)
    assert (record.client, record.conversation) == ("cli/0.9.2", "c-1")
    assert record.model_id == "byok:fake:fake-model"
    assert (record.attempts, record.repairs, record.notices) == (1, 0, 0)
    assert record.first_byte is not None
    assert record.usage == Usage(9, 2)
    assert (record.outcome, record.error) == (RequestOutcome.OK, "")
    assert record.request_id == reply.headers["X-Request-Id"]
    assert watcher.bytes == {
        Hop.FROM_CLIENT: json.dumps(body).encode(),
        Hop.TO_UPSTREAM: fake.bodies[0],
        Hop.FROM_UPSTREAM: b"".join(said),
        Hop.TO_CLIENT: reply.raw,
    }


@pytest.mark.parametrize("stream", [True, False])
async def test_observer_reads_what_passes_to_openai_clients(
    fake: FakeUpstream, stream: bool
) -> None:
    headers = {"Content-Type": "text/event-stream" if stream else "application/json"}
    fake.play(Script([b"data: ", b"1\n\n"], headers=headers))
    async with watched(fake) as (editor, watcher):
        reply = await editor.post("/v1/chat/completions", {"model": "fake-model"})
    [record] = watcher.finished
    assert record.model_id == "byok:fake:fake-model"
    assert reply.raw == b"data: 1\n\n"
    assert watcher.bytes[Hop.FROM_UPSTREAM] == reply.raw
    assert watcher.bytes[Hop.TO_CLIENT] == reply.raw


async def test_observer_reads_how_a_request_failed(fake: FakeUpstream) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    async with watched(fake) as (editor, watcher):
        cut = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        cut.cancel()
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
        bad = await editor.post("/chat", raw=b"{")
        fake.play(Script([delta(content="One")]))
        await editor.chat()
    by_status = {(r.status, r.outcome): r for r in watcher.finished}
    assert by_status[(499, RequestOutcome.CANCELLED)].error == ""
    assert by_status[(400, RequestOutcome.FAILED)].error == bad.json["error"]["code"]
    broken = by_status[(200, RequestOutcome.FAILED)]
    assert (broken.error, broken.error_class) == ("upstream_cut", "UpstreamGarbled")


def record_of(clock: Clock | None = None, **fields: object) -> RequestRecord:
    """A finished request that took a quarter of a second."""
    clock = clock or Clock()
    record = RequestRecord("r1", "POST", "/chat", clock=clock)
    for name, value in fields.items():
        setattr(record, name, value)
    clock.now += 0.25
    record.finish(200)
    return record


MODEL: dict[str, Any] = {"upstream": "one", "model": "m", "first_byte": 0.1}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"attempts": 3, "repairs": 1, "error": "bad_body"}, ""),
        ({"loop": "ended-failing-6"}, " loop=ended-failing-6"),
        ({**MODEL}, " byok:one:m first=100ms"),
        (
            {
                **MODEL, "usage": Usage(1200, 30, 1000), "attempts": 2, "repairs": 1,
                "retried": ["upstream_cut", "upstream_down"], "dropped_calls": 3,
                "error": "upstream_cut", "prompt_change": "messages[0], byte 73",
            },
            " byok:one:m first=100ms in=1200 cached=1000 out=30 changed=messages[0]+73 "
            "attempts=2 retried=upstream_cut,upstream_down repairs=1 dropped_calls=3 "
            "error=upstream_cut",
        ),
    ],
)  # fmt: skip
def test_access_log_adds_what_the_upstream_did(
    fields: dict[str, Any], line: str
) -> None:
    assert access_line(record_of(**fields)) == f"POST /chat 200 250 ms r1{line}"


def test_access_log_repeats_nothing_odd_or_long() -> None:
    assert access_line(record_of(method="G\nET")).startswith("? /chat ")
    assert len(access_line(record_of(upstream="one", model="m" * 500))) < 140


@pytest.mark.parametrize(
    ("trusted", "endpoint", "level"),
    [
        (True, "/chat", logging.INFO),
        (False, "/chat", logging.DEBUG),
        (True, "/byok/daemon", logging.DEBUG),
        (True, "/health", logging.DEBUG),
    ],
)
async def test_access_log_shows_client_requests_at_level_info_only(
    trusted: bool, endpoint: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "byok.access")
    log = AccessLog()
    log.request_finished(record_of(trusted=trusted, endpoint=endpoint))
    log.write()
    assert [record.levelno for record in caplog.records] == [level]
