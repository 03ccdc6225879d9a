"""The first difference of two prompts of a conversation, where a cache ends."""

from typing import Any

import pytest

from byok.core.wire.json_body import write_json
from byok.upstream.prompt_changes import PromptChanges, find_change

SYSTEM = {"role": "system", "content": "You help."}
HI = {"role": "user", "content": "Hi."}
HO = {"role": "assistant", "content": "Ho."}


def body(*messages: Any, **other: Any) -> bytes:
    given = {"model": "m", "messages": [*messages], "stream": True, **other}
    return write_json(given)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (body(SYSTEM, HI), body(SYSTEM, HI), ""),
        (body(SYSTEM, HI), body(SYSTEM, HI, HO, HI), ""),
        (body(HI, max_tokens=5), body(HI, HO, max_tokens=6), ""),
        (body(SYSTEM, HI), body({**SYSTEM, "content": "You hinder."}, HI, HO),
         "messages[0], byte 33"),
        (body(SYSTEM, HI), body(SYSTEM, HO), "messages[1], byte 9"),
        (body(SYSTEM, HI, HO), body(SYSTEM, HI), "messages[2], byte 0"),
        (body(HI, tools=[{"name": "a"}, {"name": "b"}]),
         body(HI, HO, tools=[{"name": "b"}, {"name": "a"}]), "tools[0], byte 9"),
        (body(HI, tools=[{"name": "a"}]), body(HI, HO), "tools, byte 0"),
        (b'{"input":[1],"instructions":"x"}', b'{"input":[2],"instructions":"x"}',
         "input[0], byte 0"),
        (b'{"contents":[1,2]}', b'{"contents":[1]}', "contents[1], byte 0"),
    ],
)  # fmt: skip
def test_the_first_difference_is_found(before: bytes, now: bytes, change: str) -> None:
    assert find_change(before, now) == change


def test_requests_are_compared_within_their_conversation() -> None:
    changes = PromptChanges()
    assert changes.compare("a", body(HI)) == ""
    assert changes.compare("b", body(HO)) == ""
    assert changes.compare("a", body(HI, HO)) == ""
    changes.compress()
    assert changes.compare("a", body(HO)) == "messages[0], byte 9"


def test_memory_is_limited() -> None:
    changes = PromptChanges(max_stored=150, max_body=100)
    changes.compare("a", body(HI))
    changes.compare("b", body(HI))
    changes.compare("c", body(HI))
    assert changes.compare("a", body(HO)) == ""  # it was the oldest
    long = {"role": "user", "content": "x" * 200}
    assert changes.compare("c", body(HI, long)) == ""
    assert changes.compare("c", body(HO)) == ""
