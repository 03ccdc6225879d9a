"""A captured question is asked again, or its recorded answer read again."""

import json

import pytest

from byok.config import load_settings
from byok.errors import BadRequest
from byok.features.capture.capture import Capture, Piece
from byok.features.capture.folder import CaptureFolder
from byok.platform.paths import find_paths
from byok.record import Hop
from byok.replay.asking import (
    ask_again,
    question_of,
    read_new,
    recorded_model,
    replay_recorded,
)
from byok.replay.turn import compare_turns, read_turn
from byok.trials.trial_daemon import OVERRIDES
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, tool_answer

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


async def test_a_question_is_asked_again_and_captured(fake: FakeUpstream) -> None:
    fake.play(answer("One."))
    async with running(settings_for(fake.url), environ=KEYS) as editor:
        capture = await capture_chat(editor, conversation_id="first")
        fake.play(answer("Two."))
        model = recorded_model(capture)
        url, token = editor.daemon.url, editor.token
        request_id, text = await ask_again(capture, model, url, token)
        await editor.post("/byok/capture")
    assert read_turn("/chat-stream", text).text == "Two."
    new = read_new(find_paths(), request_id)
    assert new is not None
    assert new.facts["client"].startswith("byok-replay/")
    body = json.loads(new.text(Hop.FROM_CLIENT))
    assert body["message"] == "Go on."
    assert body["conversation_id"] != "first"
    assert read_new(find_paths(), "f" * 16) is None


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
