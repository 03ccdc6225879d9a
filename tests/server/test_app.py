"""From row to answer: health, models, unknown paths, faults, and the access log."""

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDict

from byok.config import load_settings
from byok.keys import KeyLadder
from byok.paths import find_paths
from byok.server.app import App
from byok.server.forward import Forwarder
from byok.server.gate import Gate
from byok.server.generate import Generator, Turn
from byok.server.guard import Guard
from byok.server.token import TokenCheck
from byok.services import open_services
from tests.fakes.daemon import running, settings_for
from tests.fakes.raw import check_error, connected, filled, put, request
from tests.fakes.upstream import FakeUpstream

LINE = re.compile(r"(\S+) (\S+) (\d{3}) \d+ ms [0-9a-f]{16}")


def bare_get(path: str) -> bytes:
    """Write a GET without token, type or body."""
    return request(
        method=b"GET", target=path.encode(), token=b"", kind=b"", length=b"", body=b""
    )


def accesses(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "byok.access"]


@pytest.mark.parametrize("path", ["/health", "/healthz"])
async def test_health_is_told_without_a_token(path: str) -> None:
    async with running(upstream="demo") as editor:
        answer = await put(editor, bare_get(path))
        assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "path", ["/", "/health/", "//health", "/a/health", "/health?x", "/get-models"]
)
@pytest.mark.case("B17")
async def test_nothing_else_is_open(path: str) -> None:
    async with running(upstream="demo") as editor:
        assert (await put(editor, bare_get(path))).code == "unauthorized"


@pytest.mark.case("B01")
async def test_health_is_closed_to_a_foreign_host() -> None:
    async with running(upstream="demo") as editor:
        data = bare_get("/health").replace(b"HOST", b"evil.example")
        assert (await put(editor, data)).code == "host_not_allowed"


async def test_health_is_503_while_the_daemon_stops() -> None:
    async with running(upstream="demo") as editor:
        port = editor.daemon.port
        async with connected(port) as kept:
            ask = filled(bare_get("/healthz"), port, editor.token)
            assert (await (await kept.send(ask)).answer()).status == 200
            await editor.daemon.stop()
            answer = await (await kept.send(ask)).answer()
            assert (answer.status, answer.json) == (503, {"status": "stopping"})


async def test_models_are_told_at_once_although_the_upstream_dawdles(
    fake: FakeUpstream,
) -> None:
    fake.models_delay = 5
    settings = settings_for(fake.url, models=["by-hand", "also-by-hand"])
    async with running(settings) as editor:
        reply = await asyncio.wait_for(editor.post("/get-models"), 2)
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:also-by-hand"]
    assert reply.json["default_model"] == "byok:fake:by-hand"


async def test_models_are_told_at_once_although_none_is_known(
    fake: FakeUpstream,
) -> None:
    fake.models_delay = 5
    async with running(settings_for(fake.url)) as editor:
        reply = await asyncio.wait_for(editor.post("/get-models"), 2)
    assert [m["name"] for m in reply.json["models"]] == ["byok:fake:default"]


async def test_models_found_stand_behind_those_listed_by_hand(
    fake: FakeUpstream,
) -> None:
    fake.models = ["found", "by-hand"]
    async with running(settings_for(fake.url, models=["by-hand"])) as editor:
        await editor.services.catalog.settle(5)
        reply = await editor.post("/get-models")
    names = [model["name"] for model in reply.json["models"]]
    assert names == ["byok:fake:by-hand", "byok:fake:found"]


async def test_an_upstream_that_is_down_hides_no_model_listed_by_hand() -> None:
    settings = settings_for("http://127.0.0.1:9/v1", models=["by-hand"])
    async with running(settings) as editor:
        await editor.services.catalog.settle(5)
        reply = await editor.post("/get-models")
    assert [m["name"] for m in reply.json["models"]] == ["byok:fake:by-hand"]


@pytest.mark.parametrize(
    ("path", "body", "line"),
    [
        ("/chat-stream", {"message": "MARK"}, "POST /chat-stream 200"),
        ("/any/base/chat/?q=MARK", {"message": "MARK"}, "POST /chat 200"),
        ("/MARK/none?q=MARK", {"x": "MARK"}, "POST (unknown) 200"),
        ("/edit", {"instruction": "MARK"}, "POST /edit 422"),
        ("/..%5cMARK", {}, "POST (none) 404"),
    ],
)
async def test_the_access_log_has_facts_and_no_words(
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
        assert found.endswith(" " + reply.json["error"]["request_id"])


async def test_a_request_that_is_refused_is_in_the_access_log_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "byok.access")
    async with running(upstream="demo") as editor:
        await put(editor, request(token=b"Authorization: Bearer MARK"))
        await put(editor, request(method=b"M-SEARCH", token=b""))
    assert [LINE.sub(r"\1 \2 \3", line) for line in accesses(caplog)] == [
        "POST /chat 401",
        "? /chat 401",
    ]
    assert "MARK" not in caplog.text


async def test_an_unknown_path_is_logged_once_without_its_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "byok.server.app")
    async with running(upstream="demo") as editor:
        for _ in range(3):
            assert (await editor.post("/brand/new?q=MARK", {})).json == {}
        await editor.post("/other/new", {})
    told = [r.getMessage() for r in caplog.records if r.name == "byok.server.app"]
    assert told == [
        "unknown path '/brand/new' is answered with nothing",
        "unknown path '/other/new' is answered with nothing",
    ]


async def test_a_row_that_is_not_served_says_why() -> None:
    async with running(upstream="demo") as editor:
        reply = await editor.post("/edit", {})
    assert reply.status == 422
    assert reply.json["error"]["code"] == "not_served"
    assert "does not serve" in reply.json["message"]


class Broken(Generator):
    """A generator with a fault of byok's own."""

    fault: type[Exception] = ZeroDivisionError

    async def answer(self, turn: Turn, request: BaseRequest) -> StreamResponse:
        raise self.fault("a-word-from-the-inside")


class Full(Broken):
    """A generator that finds no memory."""

    fault = MemoryError


async def answered_by(broken: type[Broken], folder: Path) -> StreamResponse:
    """Ask an App whose generator is broken."""
    paths = find_paths()
    settings = load_settings(paths.config)
    ladder = KeyLadder(environ={})
    token = TokenCheck(folder / "token")
    guard, gate = Guard(token), Gate(1, 0, 1)
    guard.listen_on(1)
    headers = {
        "Host": "127.0.0.1:1",
        "Authorization": f"Bearer {token.token}",
        "Content-Type": "application/json",
    }
    asked = make_mocked_request("POST", "/chat", headers=CIMultiDict(headers))
    async with open_services(
        settings, paths, upstream="demo", ladder=ladder
    ) as services:
        app = App(
            services,
            guard,
            gate,
            broken(services, gate),
            Forwarder(services, gate),
            prove=lambda body: body,
        )
        return await app(asked)


async def test_without_memory_the_client_is_asked_to_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answered_by(Full, tmp_path)
    assert (response.status, response.headers["Retry-After"]) == (503, "2")
    assert "Traceback" not in caplog.text


async def test_a_fault_of_byok_is_one_500_and_its_whole_story_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answered_by(Broken, tmp_path)
    assert response.status == 500
    whole = json.loads(getattr(response, "body"))  # noqa: B009 - a Response in fact
    check_error(whole)
    assert whole["error"]["code"] == "internal"
    assert "a-word-from-the-inside" not in str(whole)
    assert "a-word-from-the-inside" in caplog.text
    assert whole["error"]["request_id"] in caplog.text
