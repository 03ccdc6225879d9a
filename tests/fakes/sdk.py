"""The client of the SDK auggie-sdk."""

import asyncio
from typing import Any

import pytest

from tests.fakes.daemon import Editor


async def ask(editor: Editor, prompt: str) -> str:
    """Ask through the SDK, which blocks, in a thread."""
    api_client: Any = pytest.importorskip(
        "auggie_sdk.context.internal.api_client", reason="auggie-sdk is not installed"
    )
    options = api_client.ContextAPIClientOptions(
        api_key=editor.token, api_url=editor.daemon.url
    )
    client: Any = api_client.ContextAPIClient(options)
    reply: str = await asyncio.to_thread(client.chat, prompt)
    return reply
