"""The client's official Python SDK chats through byok."""

import asyncio
from typing import Any

import pytest

from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, answer

api_client = pytest.importorskip(
    "auggie_sdk.context.internal.api_client", reason="auggie-sdk is not installed"
)


async def ask(editor: Editor, prompt: str) -> str:
    """Ask through the SDK, which blocks, in a thread."""
    options = api_client.ContextAPIClientOptions(
        api_key=editor.token, api_url=editor.daemon.url
    )
    client: Any = api_client.ContextAPIClient(options)
    reply: str = await asyncio.to_thread(client.chat, prompt)
    return reply


async def test_the_sdk_chats_with_the_demo() -> None:
    async with running(upstream="demo") as editor:
        reply = await ask(editor, "What is a ferry?")
    assert "no model" in reply
    assert reply.endswith("You asked: What is a ferry?")


async def test_line_separators_in_the_answer_reach_the_sdk(
    fake: FakeUpstream,
) -> None:
    fake.play(answer("one\u2028two\u2029three\u0085four ", "é😀"))
    async with running(settings_for(fake.url)) as editor:
        reply = await ask(editor, "Separate.")
    assert reply == "one\u2028two\u2029three\u0085four é😀"


async def test_an_upstream_that_is_down_ends_in_one_readable_line(
    fake: FakeUpstream,
) -> None:
    async with running(settings_for("http://127.0.0.1:9/v1")) as editor:
        reply = await ask(editor, "Anybody there?")
    assert reply.strip().startswith("[byok] fake: nothing answers at")
    assert fake.requests == []
