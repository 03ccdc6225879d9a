"""What a daemon captures: all four hops, without the secrets that pass there."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.record import Hop
from byok.features.capture.capture import Capture, CaptureFolder, encode_capture
from byok.features.capture.scrub import hide_content
from byok.settings import load_settings
from tests.fakes.bodies import tool
from tests.fakes.daemon import Editor
from tests.fakes.patience import until
from tests.fakes.program import HELD, KEY, Program, configure, serving, streams
from tests.fakes.raw import RawAnswer
from tests.fakes.replay import recorded
from tests.fakes.upstream import FakeUpstream, Script, delta, event
from tests.fakes.values import forms
from tools.replay.__main__ import replay_recorded
from tools.replay.turn import compare_turns, read_turn
from tools.trials.daemon import OVERRIDES

QUERY, COOKIE, OWN = "query-canary-0123", "cookie-canary-456", "sk-" + "oWn1" * 8
CANARIES = (KEY, QUERY, COOKIE, OWN)
BAD_SECONDS: tuple[object, ...] = (0, -1, "x", True, None, [])
MORE = """
[upstreams.fake.query]
sig = "query-canary-0123"
"""
ARGUMENTS = json.dumps({"path": "a.py", "key": KEY, "own": OWN})


STEPS = (1, 3, 7, 1000)


def tool_turn(step: int) -> Script:
    """A turn that repeats the keys in a text and in a call, a few letters an event."""
    text = f"Your key {KEY} works."
    said = [delta(content=text[n : n + step]) for n in range(0, len(text), step)]
    begun = {"index": 0, "id": "c1", "function": {"name": "view", "arguments": ""}}
    places = range(0, len(ARGUMENTS), step)
    pieces = [{"arguments": ARGUMENTS[n : n + step]} for n in places]
    parts = [delta(tool_calls=[{"index": 0, "function": one}]) for one in pieces]
    end = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return Script([*said, delta(tool_calls=[begun]), *parts, end])


async def ask(program: Program, target: str, **body: object) -> RawAnswer:
    return await program.post(target, f"Cookie: s={COOKIE}".encode(), **body)


async def switch(program: Program, **body: object) -> None:
    assert (await ask(program, "/byok/capture", **body)).status == 200


def captures(home: Path) -> list[Capture]:
    folder = CaptureFolder(home / "state" / "capture")
    return [folder.read(stored.id) for stored in folder.contents()]


def check_no_canary(home: Path, *more: str) -> None:
    for file in (home / "state" / "capture").iterdir():
        raw = file.read_bytes()
        for secret in (*CANARIES, *more):
            for form in forms(secret):
                assert form not in raw, secret


async def test_capture_of_a_tool_turn_holds_all_hops_and_no_secret(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url, MORE)
    body = {
        "message": f"My own key is {OWN}",
        "tool_definitions": [tool(path="string")],
        "feature_detection_flags": {"support_parallel_tool_use": True},
    }
    async with serving(home) as program:
        await switch(program, switch="on", seconds=60)
        for step in STEPS:
            fake.play(tool_turn(step))
            answer = await ask(program, f"/chat-stream?token={QUERY}", **body)
            assert KEY.encode() in answer.body  # the client got what the model said
        await switch(program)
        await until(lambda: len(captures(home)) == len(STEPS))
        token = program.token
    kept = captures(home)
    for capture in kept:
        assert capture.facts["model"] == "m"
        assert "My own key is" in capture.text(Hop.FROM_CLIENT)
        assert "My own key is" in capture.text(Hop.TO_UPSTREAM, 1)
        assert '"tool_calls"' in capture.text(Hop.FROM_UPSTREAM, 1)
        assert '"stop_reason"' in capture.text(Hop.TO_CLIENT)
        head = capture.head(Hop.TO_UPSTREAM, 1)
        assert head is not None
        assert head.line.endswith("/chat/completions?sig=[redacted]")
        assert dict(head.headers)["authorization"] == "[redacted]"
    check_no_canary(home, token)


async def test_capture_of_a_refusal_holds_what_the_upstream_said(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    said = json.dumps({"error": {"message": f"No: {KEY}"}}).encode()
    fake.play(Script([said], 400, {"Content-Type": "application/json"}))
    async with serving(home) as program:
        await switch(program, switch="on")
        await ask(program, "/chat-stream", message="Hello.")
        await until(lambda: len(captures(home)) == 1)
    capture = captures(home)[0]
    assert "No: [redacted]" in capture.text(Hop.FROM_UPSTREAM, 1)
    head = capture.head(Hop.FROM_UPSTREAM, 1)
    assert head is not None
    assert head.line == "400"
    check_no_canary(home)


async def test_capture_survives_a_kill(tmp_path: Path, fake: FakeUpstream) -> None:
    """What has ended is whole, and the next start removes what was half written."""
    home = tmp_path / "home"
    configure(home, fake.url)
    async with serving(home) as program:
        await switch(program, switch="on")
        await ask(program, "/chat-stream", message="One.")
        await until(lambda: len(captures(home)) == 1)
        fake.play(HELD)
        [held] = await streams(program, fake, 1)
        program.process.send_signal(signal.SIGKILL)
        await program.process.wait()
        await asyncio.gather(held, return_exceptions=True)
    assert len(captures(home)) == 1
    half = home / "state" / "capture" / f".{'a' * 16}.capture.jsonl.abcd_123"
    fake.play(Script())
    half.write_bytes(b'{"byok_capture":1,"id')
    async with serving(home) as program:
        await ask(program, "/chat-stream", message="Three.")
        await until(lambda: not half.exists())
    assert len(captures(home)) == 1


@pytest.mark.parametrize(
    "body",
    [
        *({"switch": "On"}, {"switch": 1}, {"switch": None}),
        *({"switch": "on", "seconds": value} for value in BAD_SECONDS),
    ],
    ids=str,
)
async def test_capture_refuses_what_it_does_not_know(
    fake: FakeUpstream, editor: Editor, body: object
) -> None:
    assert (await editor.post("/byok/capture", body)).status == 422


# Recorded tool turns of real providers: captured, replayed offline, reported.

MOST = 12


def tool_turns(shared: Path) -> list[dict[str, Any]]:
    """Return a tool turn of each provider."""
    rows = recorded(shared, "chat_stream")
    turns = [row for row in rows if (row["expected"] or {}).get("tool_calls")]
    by_provider = {row["provider"]: row for row in turns}
    return [by_provider[name] for name in sorted(by_provider)][:MOST]


def tools_of(item: dict[str, Any]) -> list[dict[str, Any]]:
    names = {call["name"] for call in item["expected"]["tool_calls"]}
    return [tool(name, {"type": "object"}) for name in sorted(names)]


async def capture_item(editor: Editor, item: dict[str, Any]) -> Capture:
    reply = await editor.chat(
        f"Go on; my key is {OWN}.",
        model=f"byok:replay:{item['id']}@split=7",
        tool_definitions=tools_of(item),
    )
    await editor.post("/byok/capture")
    return CaptureFolder(find_paths().captures).read(reply.headers["X-Request-Id"])


@pytest.mark.shared
async def test_a_recorded_tool_turn_is_captured_replayed_and_reported(
    shared: Path, replay: str, replay_editor: Editor
) -> None:
    upstream = {"replay": {"base_url": f"{replay}/v1", "timeout": 60}}
    settings = load_settings(find_paths().config, {**OVERRIDES, "upstreams": upstream})
    await replay_editor.post("/byok/capture", {"switch": "on"})
    items = tool_turns(shared)
    assert len(items) == MOST
    for item in items:
        capture = await capture_item(replay_editor, item)
        assert capture.text(Hop.FROM_UPSTREAM, 1), item["id"]
        before = read_turn("/chat-stream", capture.text(Hop.TO_CLIENT))
        assert before.calls, item["id"]
        text = await replay_recorded(capture, settings, find_paths())
        now = read_turn("/chat-stream", text)
        assert compare_turns(before, now, lines=True) == [], item["id"]
        assert OWN.encode() not in encode_capture(capture)
        report = encode_capture(hide_content(capture)).decode()
        for call in item["expected"]["tool_calls"]:
            check_hidden(call, report)


def check_hidden(call: dict[str, Any], report: str) -> None:
    """No value of the arguments stands in the report."""
    arguments = call["arguments"]
    for value in arguments.values() if isinstance(arguments, dict) else ():
        if isinstance(value, str) and len(value) > 8:
            assert value not in report
