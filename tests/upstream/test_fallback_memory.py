"""Which model a conversation stays with, and for how long."""

from byok.core.purposes import Purpose
from byok.upstream.fallback import FallbackMemory, Topic
from tests.fakes.clock import Clock

TALK: Topic = (Purpose.CHAT, "c-1", "byok:a:m")
ALONE: Topic = (Purpose.COMPLETION, "", "byok:a:m")


def test_fallback_stays_for_an_hour_after_the_last_request() -> None:
    clock = Clock()
    memory = FallbackMemory(clock)
    assert memory.find(TALK) == ""
    for _ in range(3):
        memory.keep(TALK, "byok:b:m")
        clock.now += 3599
        assert memory.find(TALK) == "byok:b:m"
    clock.now += 1
    assert memory.find(TALK) == ""


def test_fallback_of_requests_without_a_conversation_stays_for_a_minute() -> None:
    clock = Clock()
    memory = FallbackMemory(clock)
    memory.keep(ALONE, "byok:b:m")
    clock.now += 59
    memory.keep(ALONE, "byok:b:m")
    assert memory.find(ALONE) == "byok:b:m"
    clock.now += 1
    assert memory.find(ALONE) == ""
    memory.keep(ALONE, "byok:b:m")
    assert memory.find(ALONE) == "byok:b:m"
