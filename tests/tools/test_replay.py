"""Captured requests once more: the recorded answers read again, or asked again."""

import json
import sys

import pytest

from byok.cli.ask import ask_daemon
from byok.core.errors import BadRequest
from byok.core.platform.paths import find_paths
from byok.core.record import Hop
from byok.features.capture.capture import Capture, Piece
from byok.features.capture.folder import CaptureFolder
from byok.protocols.augment.chat_reply import chunk
from byok.settings import load_settings
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.daemon_thread import ask_chat, daemon_thread
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, tool_answer
from tools.replay.__main__ import main, question_of, replay_recorded
from tools.replay.turn import Turn, TurnDifference, compare_turns, read_turn
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
        [Script([b'{"error": {"message": "no"}}'], 400), answer("x")],
        [Script([b"{}"], 500), answer("Second.")],
        [answer()],
    ],
    ids=["text", "repaired", "broken", "cut", "refused", "retried", "empty"],
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


async def test_a_recorded_answer_that_is_read_otherwise_shows(
    fake: FakeUpstream,
) -> None:
    fake.play(tool_answer("view", '{"n": 5}'))
    async with running(settings_for(fake.url), environ=KEYS) as editor:
        capture = await capture_chat(editor)
    pieces = tuple(
        piece._replace(text=piece.text.replace("5", "6"))
        if piece.hop is Hop.FROM_UPSTREAM
        else piece
        for piece in capture.pieces
    )
    text = await replay(Capture(capture.facts, pieces), fake.url)
    before = read_turn("/chat-stream", capture.text(Hop.TO_CLIENT))
    [found] = compare_turns(before, read_turn("/chat-stream", text), lines=True)
    assert found == ("tool call 1", 'view {"n":5}', 'view {"n":6}')


@pytest.mark.parametrize(
    ("facts", "pieces"),
    [
        ({}, [Piece(0, Hop.FROM_CLIENT, text="{}")]),
        ({"model": "m"}, []),
        ({"model": "m"}, [Piece(0, Hop.FROM_CLIENT, text="[]")]),
        ({"model": "m"}, [Piece(0, Hop.FROM_CLIENT, left_out=5)]),
    ],
    ids=["no model", "no body", "no object", "cut"],
)
def test_what_is_no_whole_question_is_refused(
    facts: dict[str, object], pieces: list[Piece]
) -> None:
    with pytest.raises(BadRequest):
        question_of(Capture(facts, tuple(pieces)), "m")


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


def test_the_program_asks_the_running_daemon(
    captured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert replayed(monkeypatch, captured, "--model", "same") == 2  # none is running
    with daemon_thread():
        assert replayed(monkeypatch, captured, "--model", "same") == 0


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


@pytest.mark.parametrize(
    ("endpoint", "events"),
    [
        (
            "/v1/chat/completions",
            [
                {"choices": [{"index": 0, "delta": {"content": "Hello"}}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            ],
        ),
        (
            "/v1/messages",
            [
                {"type": "message_start", "message": {"usage": {}}},
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "text", "text": ""},
                },
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": "Hello"},
                },
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ],
        ),
    ],
)
def test_a_vendors_stream_is_read_as_a_turn(
    endpoint: str, events: list[object]
) -> None:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    turn = read_turn(endpoint, text)
    assert (turn.text, turn.stop, turn.error) == ("Hello", "stop", "")


def test_equal_answers_differ_in_nothing_but_ids() -> None:
    one, other = (
        line("a") + between + line("", call("{}", "call_" + letter * 24))
        for letter, between in (("a", ""), ("b", json.dumps(chunk()) + "\n"))
    )
    turns = [read_turn("/chat-stream", text) for text in (one, other)]
    assert compare_turns(*turns, lines=True) == []


def test_every_difference_is_named() -> None:
    one = Turn("a", "", [("f", "{}")], "1", "3", "")
    other = Turn("b", "", [("f", "{}"), ("g", "{}")], "2", "3", "")
    assert compare_turns(one, other, lines=True) == [
        TurnDifference("text", "a", "b"),
        TurnDifference("stop", "1", "2"),
        TurnDifference("tool call 2", "", "g {}"),
    ]


def test_another_line_is_a_difference_where_the_turn_is_the_same() -> None:
    one = read_turn("/chat-stream", line("ab"))
    other = read_turn("/chat-stream", line("a") + line("b"))
    [found] = compare_turns(one, other, lines=True)
    assert found.what == "line 1"
    assert compare_turns(one, other, lines=False) == []
