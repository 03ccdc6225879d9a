"""Short questions: a few words come back within seconds, or an error."""

from collections.abc import AsyncGenerator

import pytest

from byok.core.chat import ChatRequest, Role, TextPart
from byok.core.errors import (
    ByokError,
    UpstreamEmpty,
    UpstreamRefused,
)
from byok.core.events import StreamEvent, TextDelta, ThinkingDelta
from byok.upstream.base import Destination, Plan
from byok.upstream.own_questions import ShortQuestion
from tests.fakes.scripted import Answer, Scripted, said


def question(upstream: Scripted) -> ShortQuestion:
    async def find() -> Destination:
        return Destination(upstream, "tiny")

    return ShortQuestion(find)


async def test_short_question_is_one_message_without_tools_or_reasoning() -> None:
    box = Scripted(lambda chat: said(" 3 1\n"))
    assert await question(box)("Rank.", "1 2 3", seconds=9, longest=40) == "3 1"
    [(chat, model)] = box.asked
    assert model == "tiny"
    told = [(m.role, *m.parts) for m in chat.messages]
    assert told == [
        (Role.SYSTEM, TextPart("Rank.")),
        (Role.USER, TextPart("1 2 3")),
    ]
    assert (chat.silent, chat.tools, chat.conversation) == (True, (), "")
    assert (chat.sampling.temperature, chat.sampling.effort) == (0.0, "none")
    assert chat.sampling.max_tokens == 104


async def test_short_question_reads_no_further_than_the_longest_answer() -> None:
    read: list[int] = []

    class Endless(Scripted):
        async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
            try:
                while True:
                    read.append(len(read))
                    yield [ThinkingDelta("hm"), TextDelta("abc")]
            finally:
                self.closed += 1

    box = Endless()
    assert await question(box)("i", "t", seconds=9, longest=7) == "abcabca"
    assert (len(read), box.closed) == (3, 1)


def _refuse(chat: ChatRequest) -> Answer:
    raise UpstreamRefused("No.", upstream_status=429)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_refuse, UpstreamRefused),
        (lambda chat: said(" \n"), UpstreamEmpty),
        (lambda chat: [[ThinkingDelta("3 1")]], UpstreamEmpty),
        (lambda chat: [], UpstreamEmpty),
    ],
    ids=["refused", "blank", "thoughts only", "nothing"],
)
async def test_short_question_without_an_answer_is_an_error(
    answer: object, error: type[ByokError]
) -> None:
    assert callable(answer)
    with pytest.raises(error):
        await question(Scripted(answer))("i", "t", seconds=9, longest=7)
