"""What came with a tool call goes back to where it came from, and nowhere else."""

import dataclasses

from byok.chat import ChatRequest, Message, Role, TextPart, ToolCall, ToolResult
from byok.toolcalls.extras import CallExtras

HERE, THERE = ("gemini", "gemini-3-pro"), ("gemini", "gemini-3-flash")
CALL = ToolCall("c1", "read", "{}")
SIGNED = dataclasses.replace(CALL, extra={"extra_content": {"a": [1.5, "é=="]}})


def chat(*calls: ToolCall) -> ChatRequest:
    said = Message(Role.ASSISTANT, (TextPart("Hm."), *calls))
    results = (Message(Role.TOOL, (ToolResult(c.id, c.name, "ok"),)) for c in calls)
    return ChatRequest((Message(Role.USER, (TextPart("Hi."),)), said, *results))


def test_it_comes_back_as_it_was() -> None:
    extras = CallExtras()
    extras.keep(HERE, SIGNED)
    assert extras.restore(HERE, chat(CALL)) == chat(SIGNED)


def test_another_origin_or_id_gets_nothing() -> None:
    extras = CallExtras()
    extras.keep(HERE, SIGNED)
    other = dataclasses.replace(CALL, id="c2")
    assert extras.restore(THERE, chat(CALL)) == chat(CALL)
    assert extras.restore(HERE, chat(other)) == chat(other)


def test_a_call_without_extra_is_not_kept() -> None:
    extras = CallExtras()
    extras.keep(HERE, CALL)
    asked = chat(CALL)
    assert extras.restore(HERE, asked) is asked


def test_the_newest_counts() -> None:
    extras = CallExtras()
    extras.keep(HERE, SIGNED)
    newer = dataclasses.replace(CALL, extra={"extra_content": "b"})
    extras.keep(HERE, newer)
    assert extras.restore(HERE, chat(CALL)) == chat(newer)


def test_what_was_not_used_for_longest_goes_first() -> None:
    extras = CallExtras(room=3000)
    calls = [
        ToolCall(f"c{n}", "read", "{}", {"extra_content": str(n) * 500})
        for n in range(4)
    ]
    bare = [dataclasses.replace(call, extra=None) for call in calls]
    for call in calls[:3]:
        extras.keep(HERE, call)
    extras.restore(HERE, chat(bare[0]))
    extras.keep(HERE, calls[3])
    restored = extras.restore(HERE, chat(*bare))
    assert restored == chat(calls[0], bare[1], calls[2], calls[3])


def test_the_room_is_kept_whatever_comes() -> None:
    extras = CallExtras(room=10_000)
    large = dataclasses.replace(CALL, extra={"extra_content": "x" * 20_000})
    extras.keep(HERE, large)
    assert extras.restore(HERE, chat(CALL)) == chat(CALL)
    for n in range(1000):
        extras.keep(HERE, dataclasses.replace(SIGNED, id=f"c{n}"))
    bare = chat(*(dataclasses.replace(CALL, id=f"c{n}") for n in range(1000)))
    parts = extras.restore(HERE, bare).messages[1].parts
    kept = [p for p in parts if isinstance(p, ToolCall) and p.extra]
    assert 10 < len(kept) < 30
    assert kept[-1].id == "c999"
