"""Answers that stay open are never silent for long, and let go of stuck clients."""

import asyncio
import json
from typing import Any

import pytest

from byok.protocols.augment.chat_reply import chunk
from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

RESTLESS = Timing(beat=0.02, head_after=0.01, grace=0.1, last_words=0.2)


async def _asked(editor: Editor) -> Any:
    """Send a chat and return the answer as soon as its head is there."""
    return await asyncio.wait_for(
        editor.http.post(
            f"{editor.daemon.url}/chat-stream",
            json={"message": "x"},
            headers={"Authorization": f"Bearer {editor.token}"},
        ),
        PATIENCE,
    )


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(Script([], end="hang"), id="after the upstream's head"),
        pytest.param(Script([delta(content="")], end="hang"), id="after nothing said"),
    ],
)
async def test_a_silent_upstream_gives_a_head_and_heartbeats(
    fake: FakeUpstream, script: Script
) -> None:
    fake.play(script)
    async with running(settings_for(fake.url), timing=RESTLESS) as editor:
        response = await _asked(editor)
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("application/x-ndjson")
        for _ in range(4):
            line = await asyncio.wait_for(response.content.readline(), PATIENCE)
            assert json.loads(line) == chunk()
        response.close()


async def test_stream_heartbeats_go_on_between_texts_and_hurt_none(
    fake: FakeUpstream,
) -> None:
    first, last, *rest = answer("One ", "two.")
    fake.play(Script([0.5, first, 0.5, last, *rest]))
    async with running(settings_for(fake.url), timing=RESTLESS) as editor:
        reply = await editor.chat()
    texts = [line["text"] for line in reply.lines]
    place, end = texts.index("One "), texts.index("two.")
    assert reply.text == "One two."
    assert place >= 2
    assert end - place >= 2
    assert set(texts[:place]) == {""}
    assert [line for line in reply.lines if line["stop_reason"]] == [reply.last]


async def test_stream_of_a_quick_answer_has_the_facts_once_and_no_heartbeat(
    client: Editor,
) -> None:
    reply = await client.chat()
    assert [line == chunk() for line in reply.lines].count(True) == 1
    assert reply.lines[0] == chunk()


async def test_a_static_stream_has_one_line_or_none(editor: Editor) -> None:
    one = await editor.post("/remote-agents/list-stream")
    none = await editor.post("/remote-agents/agent-history-stream")
    assert one.lines[0]["remote_agents"] == []
    assert (none.status, none.raw) == (200, b"")
    assert none.headers["Content-Type"].startswith("application/x-ndjson")
