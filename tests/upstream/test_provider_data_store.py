"""The store outlives a restart, stays small, and no damage to it stops byok."""

import logging
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

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
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.toolcalls.provider_data import CallDataCollector
from tests.fakes.scripted import Scripted, events_of

DAY = 86_400


@contextmanager
def opened(
    path: Path, *, now: float = 100 * DAY, room: int = 2**20, recent: int = 2**20
) -> Iterator[ProviderDataStore]:
    store = ProviderDataStore(path, max_bytes=room, recent=recent, clock=lambda: now)
    with closing(store):
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "data.db"


async def test_entries_are_found_at_once_and_after_a_restart(path: Path) -> None:
    with opened(path) as store:
        assert await store.find([b"a"]) == {}
        store.keep({b"a": b"1", b"b": b"2"})
        store.keep({b"a": b"3"})
        assert await store.find([b"a", b"c"]) == {b"a": b"3"}
    with opened(path) as store:
        assert await store.find([b"a", b"b", b"c"]) == {b"a": b"3", b"b": b"2"}
        assert await store.find([b"b", b"c"]) == {b"b": b"2"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_entries_that_left_memory_are_read_from_the_file(path: Path) -> None:
    with opened(path, recent=250) as store:
        for number in range(5):
            store.keep({bytes([number]): bytes(50)})
        keys = [bytes([number]) for number in range(5)]
        assert await store.find(keys) == dict.fromkeys(keys, bytes(50))


async def test_entries_unused_for_30_days_are_removed(path: Path) -> None:
    with opened(path) as store:
        store.keep({b"old": b"1", b"used": b"2"})
    for day in (120, 126):
        with opened(path, now=day * DAY) as store:
            assert await store.find([b"used"]) == {b"used": b"2"}
    with opened(path, now=131 * DAY) as store:
        assert await store.find([b"old", b"used"]) == {b"used": b"2"}


async def test_a_clock_that_jumps_ahead_costs_nothing(path: Path) -> None:
    for day, key in ((100, b"a"), (500, b"b"), (900, b"c")):
        with opened(path, now=day * DAY) as store:
            store.keep({key: b"1"})
    with opened(path, now=101 * DAY) as store:
        assert await store.find([b"a"]) == {b"a": b"1"}


async def test_the_file_becomes_smaller_when_entries_go(path: Path) -> None:
    size = 2**19
    with opened(path) as store:
        store.keep({bytes([n]): bytes(2**16) for n in range(8)})
    full = path.stat().st_size
    with opened(path, room=size // 4) as store:
        store.keep({b"new": b"x"})
    assert full > size
    assert path.stat().st_size < size // 2


async def test_the_store_keeps_to_its_size(path: Path) -> None:
    for day in range(14):
        with opened(path, now=(100 + day) * DAY / 10, room=20_000) as store:
            store.keep({bytes([day]): bytes(2000)})
    with opened(path, now=20 * DAY, room=20_000) as store:
        found = await store.find([bytes([day]) for day in range(14)])
    assert 5 < len(found) < 10
    assert max(found) == bytes([13])
    assert path.stat().st_size < 100_000


async def test_entries_stay_in_memory_if_there_can_be_no_file(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.write_text("not a folder")
    with opened(path) as store:
        store.keep({b"a": b"1"})
        assert await store.find([b"a", b"b"]) == {b"a": b"1"}
        assert await store.find([b"b"]) == {}
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1


async def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    path.symlink_to(elsewhere)
    with opened(path) as store:
        store.keep({b"a": b"1"})
        assert await store.find([b"a"]) == {b"a": b"1"}
    assert not elsewhere.exists()


# A request contains what came with its tool calls, whatever the client kept


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
    box.recoveries = (store,)
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
