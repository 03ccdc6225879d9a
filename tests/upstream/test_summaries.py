"""Summaries: asked for once, within limits, and never the end of a conversation."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from byok.core.chat import ChatRequest, Role, TextPart
from byok.core.errors import KeyMissing, UpstreamRefused, UpstreamUnreachable
from byok.upstream.base import Destination
from byok.upstream.own_questions import Summariser
from byok.upstream.window.transcript import outline
from tests.fakes.histories import agent
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Answer, Scripted, said

DROPPED = agent(5, 900)
ROOM, LONGEST = 40_000, 3000


class Bench:
    """A summariser with the conversation's own upstream, and a clock."""

    def __init__(
        self,
        answer: Callable[[ChatRequest], Answer] = lambda chat: said(
            "The lexer is done."
        ),
        *,
        wanted: str = "",
        seconds: float = 5,
    ) -> None:
        self.own, self.small = Scripted(answer), Scripted(lambda c: said("By small."))
        self.now = 0.0
        self.found: list[str] = []
        self.make = Summariser(
            wanted, self._find, seconds=seconds, pause=300, clock=lambda: self.now
        )

    async def _find(self, model: str) -> Destination:
        self.found.append(model)
        return Destination(self.small, "tiny")

    async def ask(
        self, room: int = ROOM, longest: int = LONGEST, *, steps: int = 5
    ) -> str:
        asker = Destination(self.own, "large")
        return await self.make(asker, agent(steps, 900), room, longest)


def words(chat: ChatRequest) -> str:
    part = chat.messages[-1].parts[0]
    assert isinstance(part, TextPart)
    return part.text


async def test_summary_is_written_by_the_conversations_own_model() -> None:
    bench = Bench()
    assert await bench.ask() == "The lexer is done."
    [(chat, model)] = bench.own.asked
    assert model == "large"
    assert [m.role for m in chat.messages] == [Role.SYSTEM, Role.USER]
    assert (chat.tools, chat.silent) == ((), True)
    assert "User: Port it." in words(chat)
    assert "Assistant calls view" in words(chat)
    assert bench.own.closed == 1


async def test_summary_of_the_same_messages_is_requested_once() -> None:
    bench = Bench()
    assert await bench.ask() == await bench.ask()
    assert len(bench.own.asked) == 1
    await bench.ask(steps=6)
    assert len(bench.own.asked) == 2
    for steps in range(7, 80):
        await bench.ask(steps=steps)
    await bench.ask(steps=79)
    assert len(bench.own.asked) == 75
    await bench.ask()  # pushed out by then
    assert len(bench.own.asked) == 76


async def test_summary_request_fits_the_window_and_its_answer_fits_the_plan() -> None:
    bench = Bench(lambda chat: said("so " * 9000))
    summary = await bench.ask(room=10_000, longest=500, steps=300)
    assert len(words(bench.own.chats[0])) <= 7_500
    assert 400 < len(summary) <= 500


def refused(chat: ChatRequest) -> Answer:
    raise UpstreamRefused("Sorry, Port it.", upstream_status=400)


def unreachable(chat: ChatRequest) -> Answer:
    raise UpstreamUnreachable("Nothing answers.")


def keyless(chat: ChatRequest) -> Answer:
    raise KeyMissing("No key.")


@pytest.mark.parametrize(
    "answer",
    [refused, unreachable, keyless, lambda chat: said(" \n"), lambda chat: []],
    ids=["refused", "unreachable", "no key", "blank", "nothing"],
)
async def test_summary_falls_back_to_a_plain_list(
    answer: Callable[[ChatRequest], Answer], caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(answer)
    assert await bench.ask() == outline(DROPPED, LONGEST)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "Port it" not in record.getMessage()


async def test_summary_model_is_not_asked_again_soon_after_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(refused)
    for steps in (5, 6, 7):
        await bench.ask(steps=steps)
    assert len(bench.own.asked) == len(caplog.records) == 1
    bench.now = 301
    bench.own.answer = lambda chat: said("Back.")
    assert await bench.ask(steps=7) == "Back.", "a list is no summary to be kept"
    bench.own.answer = refused
    assert await bench.ask(steps=7) == "Back."


async def test_summary_that_takes_too_long_is_cancelled() -> None:
    bench = Bench(seconds=0.02)

    class Silent(Scripted):
        async def send(self, plan):  # type: ignore[no-untyped-def]
            try:
                await asyncio.Event().wait()
                yield []
            finally:
                self.closed += 1

    silent = Silent()
    async with asyncio.timeout(PATIENCE):
        summary = await bench.make(Destination(silent, "m"), DROPPED, ROOM, LONGEST)
    assert summary == outline(DROPPED, LONGEST)
    assert silent.closed == 1
