"""What came with a tool call goes back to where it came from, and nowhere else."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from byok.chat import (
    ChatRequest,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.toolcalls.provider_data import ProviderDataMemory

HERE = Origin("openai_chat", "gemini", "gemini-3-pro")
CALL = ToolCall("c1", "read", "{}")


def signed(call: ToolCall, data: Any, origin: Origin = HERE) -> ToolCall:
    return dataclasses.replace(call, provider_data=ProviderData(origin, data))


SIGNED = signed(CALL, {"extra_content": {"a": [1.5, "é=="]}})


def chat(*calls: ToolCall) -> ChatRequest:
    said = Message(Role.ASSISTANT, (TextPart("Hm."), *calls))
    results = (Message(Role.TOOL, (ToolResult(c.id, c.name, "ok"),)) for c in calls)
    return ChatRequest((Message(Role.USER, (TextPart("Hi."),)), said, *results))


def restored(
    memory: ProviderDataMemory, *calls: ToolCall, origin: Origin = HERE
) -> ChatRequest:
    return memory.restore(origin.upstream, origin.model, chat(*calls))


def test_provider_data_comes_back_as_it_was() -> None:
    memory = ProviderDataMemory()
    memory.keep(SIGNED)
    assert restored(memory, CALL) == chat(SIGNED)


NAMES = st.sampled_from(["a", "b"])
ORIGINS = st.builds(Origin, NAMES, NAMES, NAMES)


@given(st.lists(st.tuples(ORIGINS, NAMES), max_size=12), ORIGINS)
def test_provider_data_of_another_origin_or_call_is_not_returned(
    kept: list[tuple[Origin, str]], asking: Origin
) -> None:
    memory = ProviderDataMemory()
    newest: dict[tuple[str, str, str], ProviderData] = {}
    for number, (origin, call_id) in enumerate(kept):
        call = signed(ToolCall(call_id, "read", "{}"), {"n": number}, origin)
        memory.keep(call)
        assert call.provider_data
        newest[origin.upstream, origin.model, call_id] = call.provider_data
    calls = [ToolCall(call_id, "read", "{}") for call_id in "ab"]
    parts = restored(memory, *calls, origin=asking).messages[1].parts
    for part in parts:
        if isinstance(part, ToolCall):
            expected = newest.get((asking.upstream, asking.model, part.id))
            assert part.provider_data == expected
            if expected:
                own = expected.origin == asking
                assert expected.data_for(asking) == (expected.data if own else {})


def test_a_call_without_provider_data_is_not_kept() -> None:
    memory = ProviderDataMemory()
    memory.keep(CALL)
    asked = chat(CALL)
    assert memory.restore(HERE.upstream, HERE.model, asked) is asked


def test_the_newest_provider_data_counts() -> None:
    memory = ProviderDataMemory()
    memory.keep(SIGNED)
    newer = signed(CALL, {"extra_content": "b"})
    memory.keep(newer)
    assert restored(memory, CALL) == chat(newer)


def test_provider_data_evicts_the_least_recently_used() -> None:
    memory = ProviderDataMemory(room=3000)
    bare = [ToolCall(f"c{n}", "read", "{}") for n in range(4)]
    calls = [signed(c, {"x": str(n) * 500}) for n, c in enumerate(bare)]
    for call in calls[:3]:
        memory.keep(call)
    restored(memory, bare[0])
    memory.keep(calls[3])
    expected = chat(calls[0], bare[1], calls[2], calls[3])
    assert restored(memory, *bare) == expected


def test_provider_data_stays_within_its_limit() -> None:
    memory = ProviderDataMemory(room=10_000)
    memory.keep(signed(CALL, {"extra_content": "x" * 20_000}))
    assert restored(memory, CALL) == chat(CALL)
    for n in range(1000):
        memory.keep(dataclasses.replace(SIGNED, id=f"c{n}"))
    bare = [dataclasses.replace(CALL, id=f"c{n}") for n in range(1000)]
    parts = restored(memory, *bare).messages[1].parts
    kept = [p for p in parts if isinstance(p, ToolCall) and p.provider_data]
    assert 10 < len(kept) < 30
    assert kept[-1].id == "c999"
