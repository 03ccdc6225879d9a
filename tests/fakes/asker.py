"""An HttpUpstream over real sockets that never sleeps, and a source of keys."""

from typing import Any, Self

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    Sampling,
    TextPart,
    ToolDefinition,
)
from byok.core.errors import KeyMissing, UpstreamError, UpstreamRefused
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.presets import DEFAULT, Quirks
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.recoveries import Wait
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import Timeouts
from byok.upstream.transport import Transports
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import events_of
from tests.fakes.upstream import Script, answer

PATIENT = Timeouts(first_byte=PATIENCE, idle=PATIENCE)

CHAT = ChatRequest(
    (Message(Role.USER, (TextPart("Hi?"),)),),
    tools=(ToolDefinition("view", "", {"type": "object"}),),
    sampling=Sampling(temperature=0.5, max_tokens=9),
)

HI: list[StreamEvent] = [TextDelta("Hi."), Finish(FinishReason.STOP)]


class Key:
    """A key source that remembers whether it was told to forget."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.forgotten = 0

    async def get(self) -> str:
        if self.key == "missing":
            raise KeyMissing("No key.")
        return self.key

    def forget(self) -> None:
        self.forgotten += 1

    def begin(self, conversation: str = "") -> Self:
        return self

    def replace(self, seconds: float) -> bool:
        return False


def note_waits(slept: list[float], spec: UpstreamSpec) -> Wait:
    """Return the waits of an upstream, which are noted and take no time."""

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return Wait(spec.patience, sleep, lambda: sum(slept), lambda: 1.0)


class Asker:
    """An HttpUpstream that never sleeps, and what it was about to sleep."""

    def __init__(
        self,
        transports: Transports,
        url: str,
        quirks: Quirks = DEFAULT,
        others: tuple[Api, ...] = (),
        **spec: Any,
    ) -> None:
        self.slept: list[float] = []
        self.key = Key()
        fields = {"timeouts": PATIENT, **spec}
        made = UpstreamSpec("fake", (Api(OpenAIChat(quirks), url), *others), **fields)
        self.upstream = HttpUpstream(
            made, transports, self.key, wait=note_waits(self.slept, made)
        )

    async def ask(self, chat: ChatRequest = CHAT) -> list[StreamEvent]:
        return await events_of(self.upstream, chat)

    async def fail(self) -> tuple[list[StreamEvent], UpstreamError]:
        """Give the events before the failure, and the failure."""
        events: list[StreamEvent] = []
        with pytest.raises(UpstreamError) as caught:
            async for batch in ask(Destination(self.upstream, "m"), CHAT):
                events += batch
        assert str(caught.value).startswith("fake: ")
        assert len(caught.value.sentence) < 450
        return events, caught.value

    async def refused(self) -> UpstreamRefused:
        """Give the refusal of a request that brought nothing."""
        events, error = await self.fail()
        assert events == []
        assert isinstance(error, UpstreamRefused)
        return error


OK = Script(answer("Hi."))
