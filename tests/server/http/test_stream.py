"""Answers that stay open are never silent for long, and let go of stuck clients."""

import asyncio

from byok.core.record import Hop
from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, Watcher, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer

RESTLESS = Timing(beat=0.02, head_after=0.01, grace=0.1, last_words=0.2)


async def test_stream_heartbeats_go_on_between_texts_and_hurt_none(
    fake: FakeUpstream,
) -> None:
    first, last, *rest = answer("One ", "two.")
    first_due, last_due, watcher = asyncio.Event(), asyncio.Event(), Watcher()

    async def beats(said: bytes) -> None:
        """Wait for two lines without text behind what was said."""
        while True:
            sent = watcher.bytes[Hop.TO_CLIENT]
            if said in sent and sent[sent.index(said) :].count(b'"text":""') >= 2:
                return
            await asyncio.sleep(0.01)

    fake.play(Script([first_due, first, last_due, last, *rest]))
    async with (
        running(settings_for(fake.url), timing=RESTLESS, observers=[watcher]) as editor,
        asyncio.timeout(PATIENCE),
    ):
        asking = asyncio.ensure_future(editor.chat())
        await beats(b"")
        first_due.set()
        await beats(b"One ")
        last_due.set()
        reply = await asking
    texts = [line["text"] for line in reply.lines]
    assert reply.text == "One two."
    assert set(texts[: texts.index("One ")]) == {""}
    assert [line for line in reply.lines if line["stop_reason"]] == [reply.last]


async def test_a_static_stream_has_one_line_or_none(editor: Editor) -> None:
    one = await editor.post("/remote-agents/list-stream")
    none = await editor.post("/remote-agents/agent-history-stream")
    assert one.lines[0]["remote_agents"] == []
    assert (none.status, none.raw) == (200, b"")
    assert none.headers["Content-Type"].startswith("application/x-ndjson")
