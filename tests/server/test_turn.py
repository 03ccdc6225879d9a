"""An answer on its way: what of its tool calls is mended, and what is told of it."""

import json
import logging

import pytest

from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream, tool_answer

READ = {
    "name": "read",
    "description": "Read lines of a file.",
    "input_schema_json": json.dumps(
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path"],
        }
    ),
}


async def test_a_repair_is_logged_with_before_after_and_rule(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.server.turn")
    fake.play(tool_answer("read", '{"path": "a.py", "line": "5"}'))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.chat(tool_definitions=[READ])
    [use] = reply.tool_uses
    assert json.loads(use["input_json"]) == {"path": "a.py", "line": 5}
    [told] = [r.getMessage() for r in caplog.records if "repaired" in r.getMessage()]
    assert told.startswith("tool call of read repaired (")
    before, _, after = told.partition(" -> ")
    assert '"5"' in before
    assert ":5}" in after


async def test_a_call_that_needs_no_repair_is_not_logged(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.server.turn")
    fake.play(tool_answer("read", '{"path": "a.py"}'))
    async with running(settings_for(fake.url)) as editor:
        await editor.chat(tool_definitions=[READ])
    assert "repaired" not in caplog.text


async def test_only_the_place_of_a_repair_is_logged(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.server.turn")
    code = "SECRET-CODE " * 100
    arguments = json.dumps({"path": code, "line": "5"})
    fake.play(tool_answer("read", arguments))
    async with running(settings_for(fake.url)) as editor:
        await editor.chat(tool_definitions=[READ])
    assert "repaired" in caplog.text
    assert caplog.text.count("SECRET-CODE") < 20
