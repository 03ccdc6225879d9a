"""What a daemon answers, read within limits."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from byok.record import RequestRecord
from byok.trials.editor_body import chat_body, first_nodes
from byok.trials.trial_client import RecordKeeper, TrialClient

BODY = chat_body("m", "c-1", "Why?", first_nodes("Why?"), [])
USE = {"tool_use_id": "c1", "tool_name": "view", "input_json": "{}"}


def line(text: str = "", *nodes: Any, **more: Any) -> bytes:
    return json.dumps({"text": text, "nodes": [*nodes], **more}).encode() + b"\n"


@asynccontextmanager
async def asking(
    *pieces: bytes, status: int = 200
) -> AsyncIterator[tuple[TrialClient, list[web.Request]]]:
    """A client of a server that answers with these pieces."""
    keeper, seen = RecordKeeper(), list[web.Request]()

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        await request.read()
        out = web.StreamResponse(status=status, headers={"X-Request-Id": "r1"})
        await out.prepare(request)
        for piece in pieces:
            await out.write(piece)
        keeper.request_finished(RequestRecord("r1", model="m", upstream="u"))
        return out

    app = web.Application()
    app.router.add_post("/chat-stream", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession(url) as session:
            yield TrialClient(session, keeper), seen
    finally:
        await runner.cleanup()


async def test_an_answer_is_joined_from_its_lines() -> None:
    call = {"id": 2, "type": 5, "tool_use": USE}
    raw = line("One ") + line("two.") + line("", call) + line(stop_reason=3)
    async with asking(*(raw[n : n + 7] for n in range(0, len(raw), 7))) as (client, _):
        reply = await client.ask(BODY)
    assert (reply.text, reply.failure, reply.is_cut) == ("One two.", "", False)
    assert [*reply.calls] == [USE]
    assert reply.record.model_id == "byok:u:m"


async def test_the_request_is_that_of_a_client() -> None:
    async with asking(line(stop_reason=1)) as (client, seen):
        await client.ask(BODY)
    assert seen[0].headers["conversation-id"] == "c-1"
    assert seen[0].headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("raw", "status", "failure", "is_cut"),
    [
        (line("Hm", stop_reason=2), 200, "", True),
        (line(error={"code": "c", "message": "m"}), 200, "c: m", False),
        (b'{"error": {"code": "c", "message": "m"}}', 401, "c: m", False),
        (b"<html>", 502, "HTTP status 502", False),
        (b"[]", 502, "HTTP status 502", False),
        (b"", 200, "", False),
    ],
)
async def test_failures_are_told(
    raw: bytes, status: int, failure: str, is_cut: bool
) -> None:
    async with asking(raw, status=status) as (client, _):
        reply = await client.ask(BODY)
    assert (reply.failure, reply.is_cut) == (failure, is_cut)


async def test_an_answer_without_end_is_left() -> None:
    async with asking(*[line("x" * 2**20)] * 20) as (client, _):
        reply = await client.ask(BODY)
    assert reply.failure == "the answer has more than 16 MiB"


async def test_a_lost_connection_is_a_failure() -> None:
    async with aiohttp.ClientSession("http://127.0.0.1:1") as session:
        reply = await TrialClient(session, RecordKeeper()).ask(BODY)
    assert "connection to byok broke" in reply.failure


async def test_a_record_that_never_comes_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("byok.trials.trial_client._RECORD_SECONDS", 0.01)
    assert (await RecordKeeper().record_of("r")).request_id == ""
