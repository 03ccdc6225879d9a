"""A request contains what came with its tool calls, whatever the client kept."""

from pathlib import Path

from byok.core.chat import (
    ChatRequest,
    FimRequest,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.events import ThinkingDelta
from byok.upstream.provider_data_store import ProviderDataStore, RestoredData
from byok.upstream.toolcalls.provider_data import CallDataCollector
from tests.fakes.scripted import Scripted, events_of

CALL = ToolCall("c1", "read", "{}")
DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "s"})
ASKED = ChatRequest((Message(Role.USER, (TextPart("Hi."),)),))


def conversation(*parts: ThinkingPart | ToolCall) -> ChatRequest:
    said = Message(Role.ASSISTANT, parts)
    result = Message(Role.TOOL, (ToolResult("c1", "read", "ok"),))
    return ChatRequest((*ASKED.messages, said, result))


async def test_what_the_client_dropped_is_sent(tmp_path: Path) -> None:
    store, box = ProviderDataStore(tmp_path / "x.db"), Scripted()
    collector = CallDataCollector(ASKED)
    for event in (ThinkingDelta("Hm."), ThinkingDelta("", DATA), CALL):
        collector.note(event)
    store.keep(collector.entries)
    box.recoveries = (RestoredData(store),)
    for chat, model in [
        (conversation(CALL), "m"),
        (conversation(CALL), "another"),
        (ASKED, "m"),
        (ChatRequest((), fim=FimRequest("a", "b")), "m"),
    ]:
        assert await events_of(box, chat, model)
    whole = conversation(ThinkingPart("Hm.", DATA), CALL)
    assert box.chats[:3] == [whole, conversation(CALL), ASKED]
    assert box.closed == 4
    store.close()
