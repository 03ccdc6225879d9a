"""The log says which prompt each request had, and once what was left out of it."""

import logging
import re
from typing import Any

import pytest

from byok.core.prompts.prompt_set import shipped_prompts
from tests.fakes.daemon import running, settings_for
from tests.fakes.occasions import TOOLS, definitions
from tests.fakes.upstream import DONE, FakeUpstream, event

AGENT: dict[str, Any] = {"mode": "AGENT", "tool_definitions": definitions(TOOLS)}
VERSION = shipped_prompts().version


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the prompt in each line of the access log, "" for none."""
    written = [r.getMessage() for r in caplog.records if r.name == "byok.access"]
    lines = "\n".join(written).splitlines()
    return [m[1] if (m := re.search(r" prompt=(\S+)", line)) else "" for line in lines]


def notes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "byok:fake:" in r.getMessage()
            and r.name != "byok.access"]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "model", "body", "name"),
    [
        ("/chat-stream", "m", {"message": "Hi?"}, "chat"),
        ("/chat", "m", {"message": "Hi?", **AGENT}, "agent"),
        ("/chat-stream", "qwen3:4b", {"message": "Hi?", **AGENT}, "agent.small"),
        ("/chat-stream", "m", {"message": "Hi?", "silent": True}, "silent"),
        ("/chat-stream", "m", {"message": "Hi?", "system_prompt": "Mine."}, ""),
        ("/chat-stream", "m", {"message": ""}, ""),
        ("/edit", "m", {"instruction": "x", "selected_text": "y"}, "edit"),
        ("/completion", "m", {"prompt": "x = "}, "completion"),
        ("/prompt-enhancer", "m", {"prompt": "Mend it."}, "enhance"),
        ("/generate-commit-message-stream", "m", {"diff": "+x"}, "commit"),
        ("/v1/chat/completions", "m", {"messages": []}, ""),
    ],
)
async def test_the_access_log_names_the_prompt_of_a_request(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture,
    path: str, model: str, body: dict[str, Any], name: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO, "byok.access")
    fake.models = ["m", "qwen3:4b"]
    async with running(settings_for(fake.url)) as editor:
        await editor.post(path, {"model": f"byok:fake:{model}", **body})
    assert told(caplog) == [f"{name}@{VERSION}" if name else ""]


async def test_a_model_that_fills_the_gap_itself_is_told_no_prompt(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok.access")
    model = "qwen2.5-coder:7b"
    fake.models = [model]
    fake.play([event({"choices": [{"text": "1", "finish_reason": "stop"}]}), DONE])
    settings = {**settings_for(fake.url), "completion": {"way": "template"}}
    async with running(settings) as editor:
        await editor.post("/completion", {"model": model, "prompt": "x = "})
    assert "messages" not in fake.requests[0]
    assert told(caplog) == [""]


async def test_what_was_left_out_is_logged_once_a_model(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok")
    fake.models = ["one", "two"]
    async with running(settings_for(fake.url, context_window=4096)) as editor:
        for model in ("one", "two", "one", "two"):
            for conversation in ("a", "b"):
                await editor.chat(
                    model=f"byok:fake:{model}", conversation_id=conversation,
                    user_guidelines="Be brief. " * 4000,
                )  # fmt: skip
    said = notes(caplog)
    for model in ("one", "two"):
        of_it = [note for note in said if note.startswith(f"byok:fake:{model}: ")]
        assert len(of_it) == 2
        assert ["chat.small" in note for note in of_it] == [True, False]
        assert "40,000 characters" in of_it[1]


async def test_the_log_of_what_was_left_out_does_not_grow_for_ever(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "byok")
    async with running(settings_for(fake.url, context_window=4096)) as editor:
        for number in range(100):
            await editor.chat(user_guidelines="x" * (5000 + number))
    assert len(notes(caplog)) <= 60


async def test_the_users_parts_stand_around_the_prompt(fake: FakeUpstream) -> None:
    settings = {
        **settings_for(fake.url),
        "chat": {"system_prompt": "FIRST."},
        "prompts": {"chat-stream": "LAST."},
    }
    extra: dict[str, Any] = {
        "system_prompt_append": "APPENDED.",
        "system_prompt_replacements": [{"old": "FIRST", "new": "REPLACED"}],
    }
    async with running(settings) as editor:
        await editor.chat(**AGENT, **extra)
        await editor.chat(**AGENT, **extra, system_prompt="CLIENT. FIRST.")
    ours, client = (body["messages"][0]["content"] for body in fake.requests)
    assert ours.startswith("REPLACED.\n\n") and len(ours) > 1000
    assert ours.endswith("APPENDED.\n\nLAST.")
    assert client == "CLIENT. REPLACED.\n\nAPPENDED.\n\nLAST."
