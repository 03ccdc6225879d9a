"""Captured requests once more: the recorded answers read again, or asked again."""

import json
import sys

import pytest

from byok.cli.daemon_client import ask_daemon
from byok.core.platform.paths import find_paths
from byok.core.record import Hop
from byok.features.capture.capture import Capture, CaptureFolder
from byok.protocols.augment.chat_reply import chunk
from byok.settings import load_settings
from tests.fakes.daemon import Editor, ask_chat, daemon_thread, running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, tool_answer
from tools.replay.__main__ import main, replay_recorded
from tools.replay.turn import compare_turns, read_turn
from tools.trials.daemon import OVERRIDES

KEYS = {"BYOK_KEY_FAKE": "sk-0123456789abcdefghijklmnop"}
TOOL = {
    "name": "view",
    "description": "",
    "input_schema_json": '{"type": "object", "properties": {"n": {"type": "integer"}}}',
}


async def capture_chat(editor: Editor, **fields: object) -> Capture:
    """Ask with capturing on; return what was captured of it."""
    await editor.post("/byok/capture", {"switch": "on"})
    reply = await editor.chat("Go on.", tool_definitions=[TOOL], **fields)
    await editor.post("/byok/capture", {"switch": "off"})
    return CaptureFolder(find_paths().captures).read(reply.headers["X-Request-Id"])


async def replay(capture: Capture, url: str) -> str:
    settings = load_settings(find_paths().config, {**OVERRIDES, **settings_for(url)})
    return await replay_recorded(capture, settings, find_paths())


@pytest.mark.parametrize(
    "scripts",
    [
        [answer("Hello ", "there.")],
        [tool_answer("view", '{"n": "5"}')],  # repaired
        [tool_answer("view", '{"n": 5')],  # broken
        [Script([delta(content="cut")], end="reset")],
        [Script([b"{}"], 500), answer("Second.")],
    ],
    ids=["text", "repaired", "broken", "cut", "retried"],
)
async def test_a_recorded_answer_gives_the_same_again(
    fake: FakeUpstream, scripts: list[Script | list[bytes]]
) -> None:
    fake.play(*[s if isinstance(s, Script) else Script(s) for s in scripts])
    async with running(settings_for(fake.url), environ=KEYS) as editor:
        capture = await capture_chat(editor)
    asked = len(fake.requests)
    text = await replay(capture, fake.url)
    assert len(fake.requests) == asked  # nothing was sent
    before = read_turn("/chat-stream", capture.text(Hop.TO_CLIENT))
    now = read_turn("/chat-stream", text)
    found = compare_turns(before, now, lines=True)
    assert [one for one in found if one.what != "error"] == []


@pytest.fixture
def captured() -> str:
    """The id of a chat with the demo."""
    with daemon_thread() as daemon:
        ask_daemon("capture", {"switch": "on", "seconds": 60})
        found = ask_chat(daemon, "Hello.")
        ask_daemon("capture", {"switch": "off"})
    return found


def replayed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["replay", *words])
    return main()


def test_the_program_says_what_differs(
    captured: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(monkeypatch, captured[:8]) == 0
    folder = CaptureFolder(find_paths().captures)
    capture = folder.read(captured)
    pieces = tuple(
        piece._replace(text=piece.text.replace("demo", "\x1b[31mdemo"))
        if piece.hop is Hop.TO_CLIENT
        else piece
        for piece in capture.pieces
    )
    folder.write(Capture(capture.facts, pieces))
    assert replayed(monkeypatch, captured) == 1
    out = capsys.readouterr().out
    assert "text differs:" in out
    assert "\x1b" not in out


def line(text: str = "", *nodes: object, **more: object) -> str:
    return json.dumps({**chunk(text), "nodes": list(nodes), **more}) + "\n"


def call(arguments: str, call_id: str = "call_" + "a" * 24) -> dict[str, object]:
    use = {"tool_use_id": call_id, "tool_name": "view", "input_json": arguments}
    return {"id": 1, "type": 5, "content": "", "tool_use": use}


def test_an_editors_stream_is_read_as_a_turn() -> None:
    usage = {"id": 2, "type": 10, "token_usage": {"input_tokens": 3}}
    text = line("Hel") + line("lo") + line("", call('{"b":1, "a":2}'), usage)
    turn = read_turn("/chat-stream", text + line("", stop_reason=3))
    assert (turn.text, turn.stop, turn.usage) == ("Hello", "3", '{"input_tokens":3}')
    assert turn.calls == [("view", '{"a":2,"b":1}')]


def test_a_vendors_stream_is_read_as_a_turn() -> None:
    events = [
        {"choices": [{"index": 0, "delta": {"content": "Hello"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    turn = read_turn("/v1/chat/completions", text)
    assert (turn.text, turn.stop, turn.error) == ("Hello", "stop", "")


def test_equal_answers_differ_in_nothing_but_ids() -> None:
    one, other = (
        line("a") + between + line("", call("{}", "call_" + letter * 24))
        for letter, between in (("a", ""), ("b", json.dumps(chunk()) + "\n"))
    )
    turns = [read_turn("/chat-stream", text) for text in (one, other)]
    assert compare_turns(*turns, lines=True) == []
