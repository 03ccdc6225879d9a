"""The official service: each failure is told once, odd answers do no harm."""

import asyncio
import gzip
import logging
from typing import Any

import pytest

from byok.core.errors import (
    ByokError,
    ConnectFailed,
    UpstreamRefused,
)
from byok.core.routing import EndpointGroup
from byok.server.official import OfficialHealth
from tests.fakes.daemon import Watcher, running
from tests.fakes.official import ENVIRON, NDJSON, FakeOfficial, whole
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import Script

DOWN = ConnectFailed("nothing answers.")


def refused(status: int) -> UpstreamRefused:
    return UpstreamRefused("their words", upstream_status=status, hint="Do.")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "byok.server.official")
    return caplog


@pytest.fixture
def troubles(log: pytest.LogCaptureFixture) -> OfficialHealth:
    return OfficialHealth(60.0)


def levels(log: pytest.LogCaptureFixture) -> list[int]:
    return [record.levelno for record in log.records]


async def met(troubles: OfficialHealth, *errors: ByokError) -> None:
    for error in errors:
        troubles.note_failure(EndpointGroup.CHAT, "/chat", error)


@pytest.mark.parametrize("status", [400, 404, 405, 413, 422])
async def test_official_refused_path_says_nothing_of_its_group(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture, status: int
) -> None:
    for _ in range(2):
        await met(troubles, refused(status))
        troubles.note_success(EndpointGroup.CHAT, "/chat-stream")
    assert levels(log) == [logging.WARNING]
    await met(troubles, DOWN)
    assert levels(log) == [logging.WARNING] * 2, "the whole group is another matter"
    troubles.note_success(EndpointGroup.CHAT, "/chat")
    assert troubles.reasons == {}


@pytest.mark.parametrize("status", [302, 401, 402, 403, 408, 429, 500, 503, 529])
async def test_official_failures_of_the_service_itself(
    troubles: OfficialHealth, status: int
) -> None:
    await met(troubles, refused(status))
    assert troubles.reasons == {"chat": f"it answered {status}. Do."}


async def test_official_error_words_are_not_logged(
    troubles: OfficialHealth, log: pytest.LogCaptureFixture
) -> None:
    await met(troubles, refused(500), refused(404))
    assert "their words" not in log.text + str(troubles.reasons)


async def test_official_overload_of_byok_is_not_reported_as_the_services_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeOfficial() as official:
        script = Script([b"{}\n"], headers=NDJSON, end="hang")
        official.expect("/chat-stream", b"{}", script)
        settings = official.settings(chat="official", account="official")
        limits = {"streams": 1, "waiting": 0, "wait_seconds": 0}
        async with running(
            {**settings, "limits": limits}, upstream="demo", environ=ENVIRON
        ) as editor:
            first = asyncio.ensure_future(editor.post("/chat-stream"))
            await asyncio.wait_for(official.reached.wait(), PATIENCE)
            second = await editor.post("/chat-stream")
            credit = await editor.post("/get-credit-info")
            first.cancel()
            await asyncio.wait_for(official.hung_up.wait(), PATIENCE)
    assert (second.status, second.json["error"]["code"]) == (503, "too_many_streams")
    assert credit.status == 200, "byok's own answer needs no place"
    assert "does not answer" not in caplog.text


async def test_official_stream_without_a_content_type_is_lines() -> None:
    async with FakeOfficial() as official:
        official.expect("/chat-stream", b"{}", Script([b"{}\n"], 201, {"X-Other": "1"}))
        official.expect("/chat", b"{}", whole(b"{}", 201, Via="x"))
        settings = official.settings(chat="official")
        async with running(settings, upstream="demo", environ=ENVIRON) as editor:
            stream = await editor.post("/chat-stream")
            unary = await editor.post("/chat")
    assert (stream.status, unary.status) == (201, 201)
    assert stream.headers.getall("Cache-Control") == ["no-cache"]  # type: ignore[attr-defined]
    assert len(unary.headers.getall("Content-Type")) == 1  # type: ignore[attr-defined]
    assert "X-Other" not in stream.headers
    assert "Via" not in unary.headers


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"feature_flags": {"x": "%s"}}' % (b"y" * 5_000_000), {}),
        (gzip.compress(b"") * 20_000, {"Content-Encoding": "gzip"}),
        (gzip.compress(b"y" * 10_000_000), {"Content-Encoding": "gzip"}),
    ],
    ids=["too large", "pieces of nothing", "expands"],
)
async def test_official_model_list_of_excessive_size_is_left_out(
    body: bytes, headers: dict[str, Any]
) -> None:
    async with FakeOfficial() as official:
        official.expect("/get-models", b"{}", whole(body, **headers))
        settings = official.settings(models="official")
        async with running(settings, upstream="demo", environ=ENVIRON) as editor:
            answer = await editor.post("/get-models")
            troubles = (await editor.post("/byok/official")).json["troubles"]
    assert answer.status == 200
    assert "x" not in answer.json["feature_flags"]
    assert "models" in troubles


async def test_official_routes_are_logged_at_the_start_and_on_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "byok.server.official")
    routing = {"base_url": "https://h.example/x/", "chat": "official", "edit": "off"}
    settings = {"routing": {"official": routing}}
    async with running(settings, upstream="demo") as editor:
        told = await editor.post("/byok/official")
    assert "https://h.example/x answers: chat" in caplog.text
    assert told.json == {
        "base_url": "https://h.example/x",
        "groups": {"chat": "official", "edit": "off", "telemetry": "off"},
        "troubles": {},
    }


async def test_official_answer_is_seen_by_an_observer() -> None:
    watcher = Watcher()
    async with FakeOfficial() as official:
        official.expect("/chat-stream", b"{}", Script([b"{}\n"], headers=NDJSON))
        official.expect("/chat", b"{}", whole(b"{}"))
        settings = official.settings(chat="official")
        async with running(
            settings, upstream="demo", environ=ENVIRON, observers=[watcher]
        ) as editor:
            for path in ("/chat-stream", "/chat", "/edit"):
                await editor.post(path)
    told = [(r.endpoint, r.upstream, r.attempts) for r in watcher.finished]
    assert told == [
        ("/chat-stream", "official", 1),
        ("/chat", "official", 1),
        ("/edit", "", 0),
    ]
