"""What came with tool calls comes back in its order, to its own conversation only."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.events import StreamEvent, TextDelta, ThinkingDelta, ToolCallPlace
from byok.upstream.toolcalls.provider_data import (
    MAX_ENTRY_BYTES,
    CallDataCollector,
    keys_of,
    read_call_data,
    restore_call_data,
)

HERE = Origin("openai_chat", "gemini", "gemini-3-pro")
CALL, OTHER = ToolCall("c1", "read", "{}"), ToolCall("c2", "read", '{"a":1}')
SIGNED = replace(CALL, provider_data=ProviderData(HERE, {"a": [1.5, "é=="]}))
THOUGHT = ThinkingPart("First.", ProviderData(HERE, {"signature": "s1"}))
SECOND = ThinkingPart("", ProviderData(HERE, {"redacted": "r2"}))


def chat(*parts: Part, conversation: str = "c", words: str = "Hi.") -> ChatRequest:
    said = Message(Role.ASSISTANT, parts)
    results = (
        Message(Role.TOOL, (ToolResult(part.id, part.name, "ok"),))
        for part in parts
        if isinstance(part, ToolCall)
    )
    asked = Message(Role.USER, (TextPart(words),))
    return ChatRequest((asked, said, *results), conversation=conversation)


def collect(
    *events: StreamEvent, conversation: str = "c", words: str = "Hi."
) -> dict[bytes, bytes]:
    collector = CallDataCollector(chat(conversation=conversation, words=words))
    for event in events:
        collector.note(event)
    return collector.entries


def restore(
    asked: ChatRequest, kept: dict[bytes, bytes], origin: Origin = HERE
) -> tuple[Part, ...]:
    found = {
        key: data
        for key in keys_of(asked, origin)
        if key in kept and (data := read_call_data(kept[key]))
    }
    return restore_call_data(asked, origin, found).messages[1].parts


def thinking(*parts: ThinkingPart) -> Iterable[StreamEvent]:
    for part in parts:
        middle = len(part.text) // 2
        yield ThinkingDelta(part.text[:middle])
        yield ThinkingDelta(part.text[middle:], part.provider_data)


def test_the_data_of_a_call_comes_back_as_it_was() -> None:
    kept = collect(SIGNED)
    assert restore(chat(TextPart("Hm."), CALL), kept) == (TextPart("Hm."), SIGNED)


def test_reasoning_that_a_client_dropped_stands_before_its_call_again() -> None:
    kept = collect(
        *thinking(THOUGHT),
        TextDelta("I read."),
        ToolCallPlace("c1"),
        *thinking(SECOND),
        CALL,
        OTHER,
    )
    whole = (THOUGHT, TextPart("I read."), CALL, SECOND, OTHER)
    assert restore(chat(TextPart("I read."), CALL, OTHER), kept) == whole
    assert restore(chat(*whole), kept) == whole


@pytest.mark.parametrize(
    "asked",
    [
        chat(CALL, conversation="another"),
        chat(replace(CALL, arguments='{"other":1}')),
        chat(replace(CALL, name="write")),
        chat(replace(CALL, id="c9")),
    ],
)
def test_nothing_comes_back_to_another_conversation_or_call(asked: ChatRequest) -> None:
    assert restore(asked, collect(SIGNED)) == asked.messages[1].parts


def test_nothing_comes_back_to_another_model() -> None:
    kept = collect(SIGNED)
    for other in (replace(HERE, upstream="u"), replace(HERE, model="m")):
        assert restore(chat(CALL), kept, other) == (CALL,)


def test_a_conversation_without_an_id_is_what_was_said_before() -> None:
    kept = collect(SIGNED, conversation="", words="Mine.")
    assert restore(chat(CALL, conversation="", words="Mine."), kept) == (SIGNED,)
    assert restore(chat(CALL, conversation="", words="Yours."), kept) == (CALL,)
    first = chat(OTHER, conversation="", words="Mine.")
    (_, said, result, *_) = first.messages
    later = replace(first, messages=(*first.messages, said, result))
    collector = CallDataCollector(first)
    collector.note(SIGNED)
    again = Message(Role.ASSISTANT, (CALL,))
    for messages, data in [
        ((*first.messages, again), SIGNED.provider_data),
        ((*later.messages, again), None),
    ]:
        asked = replace(first, messages=messages)
        found = {
            key: entry
            for key in keys_of(asked, HERE)
            if (entry := read_call_data(collector.entries.get(key, b"")))
        }
        (part,) = restore_call_data(asked, HERE, found).messages[-1].parts
        assert isinstance(part, ToolCall)
        assert part.provider_data == data


def test_an_entry_that_is_too_long_is_not_kept() -> None:
    huge = ProviderData(HERE, {"signature": "s" * MAX_ENTRY_BYTES})
    assert collect(replace(CALL, provider_data=huge)) == {}
    large = ProviderData(HERE, {"signature": "s" * 2**20})
    assert len(collect(replace(CALL, provider_data=large))) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"origin":1}', b"\xff",
        b'{"origin":["d","u"],"place":0,"thinking":[],"own":null}',
        b'{"origin":["d","u","m"],"place":"x","thinking":[],"own":null}',
        b'{"origin":["d","u","m"],"place":0,"thinking":[1],"own":null}',
        b'{"origin":["d","u","m"],"place":0,"thinking":[["t",5]],"own":null}',
        b'{"origin":["d","u","m"],"place":0,"thinking":[],"own":7}',
    ],
)  # fmt: skip
def test_a_damaged_entry_is_none(raw: bytes) -> None:
    assert read_call_data(raw) is None
