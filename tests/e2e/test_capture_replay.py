"""Recorded tool turns of real providers: captured, replayed offline, reported."""

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
from tests.fakes.replay import recorded
from tools.replay.__main__ import replay_recorded
from tools.replay.turn import compare_turns, read_turn
from tools.trials.daemon import OVERRIDES

SECRET = "sk-" + "oWn1" * 8
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
        f"Go on; my key is {SECRET}.",
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
        assert SECRET.encode() not in encode_capture(capture)
        report = encode_capture(hide_content(capture)).decode()
        for call in item["expected"]["tool_calls"]:
            check_hidden(call, report)


def check_hidden(call: dict[str, Any], report: str) -> None:
    """No value of the arguments stands in the report."""
    arguments = call["arguments"]
    for value in arguments.values() if isinstance(arguments, dict) else ():
        if isinstance(value, str) and len(value) > 8:
            assert value not in report
