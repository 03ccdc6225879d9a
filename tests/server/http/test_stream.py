"""Answers that stay open are never silent for long, and let go of stuck clients."""

from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, answer

RESTLESS = Timing(beat=0.02, head_after=0.01, grace=0.1, last_words=0.2)


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


async def test_a_static_stream_has_one_line_or_none(editor: Editor) -> None:
    one = await editor.post("/remote-agents/list-stream")
    none = await editor.post("/remote-agents/agent-history-stream")
    assert one.lines[0]["remote_agents"] == []
    assert (none.status, none.raw) == (200, b"")
    assert none.headers["Content-Type"].startswith("application/x-ndjson")
