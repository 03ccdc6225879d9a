"""Upstreams that fail before an answer: who answers, what is told, nothing twice."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.upstream import FakeUpstream, Script, answer, dead_url, delta, event


@pytest.fixture
async def other() -> AsyncIterator[FakeUpstream]:
    """A second upstream."""
    async with FakeUpstream() as started:
        started.play(answer("From the other."))
        yield started


def settings_of(first: str, other: FakeUpstream, **routing: Any) -> dict[str, Any]:
    """Two upstreams; where one fails, the other answers chats."""
    upstreams = {
        "one": {"base_url": first, "timeout": 5, "model": "m"},
        "two": {"base_url": other.url, "timeout": 5, "model": "n"},
    }
    named = ["byok:one:m", "byok:two:n"]
    return {
        "upstreams": upstreams,
        "routing": {"fallback": {"chat": named}, **routing},
    }


async def ask(editor: Editor, conversation: str = "c-1") -> Answer:
    return await editor.chat(conversation_id=conversation)


TOLD = "\n[byok] byok:two:n answers instead of byok:one:m: it cannot be reached."


async def test_fallback_answers_a_conversation_and_says_so(
    other: FakeUpstream,
) -> None:
    async with running(settings_of(dead_url(), other)) as editor:
        first, second = await ask(editor), await ask(editor)
        elsewhere = await ask(editor, "c-2")
        services = await editor.services.renew(editor.services.settings)
    assert first.text == f"From the other.{TOLD}"
    for answered in (second, elsewhere):  # each message asks the chosen model first
        assert answered.text == f"From the other.{TOLD}"
    assert services.fallbacks.memory is editor.services.fallbacks.memory
    assert {request["model"] for request in other.requests} == {"n"}


@pytest.mark.parametrize("path", ["/chat", "/generate-commit-message-stream"])
async def test_fallback_is_only_for_its_purpose_and_whole_answers_too(
    other: FakeUpstream, path: str
) -> None:
    body = {"message": "Hi?", "changed_file_stats": {}, "diff": "+a"}
    async with running(settings_of(dead_url(), other)) as editor:
        reply = await editor.post(path, body)
    assert len(other.requests) == (path == "/chat")
    assert ("From the other." in reply.raw.decode()) is (path == "/chat")


async def test_nothing_falls_back_after_a_part_of_the_answer(
    fake: FakeUpstream, other: FakeUpstream
) -> None:
    overload = event({"error": {"message": "Overloaded"}})
    fake.play(Script([delta(content="One"), overload]))
    async with running(settings_of(fake.url, other)) as editor:
        reply = await ask(editor)
    assert reply.text.startswith("One\n[byok] one: ")
    assert reply.last["error"]["code"] == "upstream_overloaded"
    assert (len(fake.requests), len(other.requests)) == (1, 0)
