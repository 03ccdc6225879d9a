"""The order of a conversation: who waits, who is let go, who is not concerned."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from byok.core.errors import BadRequest
from byok.protocols.augment.chat_request import ConversationPosition
from byok.server.admission import Admission, Gate
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

HISTORY = [{"request_id": "r1", "request_message": "Hi", "response_text": "Hello."}]


def make_admission() -> Admission:
    return Admission(Gate(streams=9, waiting=0, seconds=5))


class Stage:
    """Answers that end when they are told to, and the order in which they ran."""

    def __init__(self) -> None:
        self.admission = make_admission()
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def answer(self, name: str, place: ConversationPosition) -> None:
        self.ends[name] = asyncio.Event()
        async with self.admission.turn(place):
            self.begun.append(name)
            await self.ends[name].wait()

    @asynccontextmanager
    async def under_way(
        self, **places: ConversationPosition
    ) -> AsyncIterator[dict[str, asyncio.Task[None]]]:
        """Start an answer after the other."""
        tasks = {}
        for name, place in places.items():
            tasks[name] = asyncio.ensure_future(self.answer(name, place))
            await settled()
        yield tasks
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_conversation_turn_that_gives_up_waiting_lets_nobody_past() -> None:
    stage = Stage()
    places = {
        "one": ConversationPosition("c", "0"),
        "two": ConversationPosition("c", "1"),
        "three": ConversationPosition("c", "2"),
    }
    async with stage.under_way(**places) as tasks:
        tasks["two"].cancel()
        await settled()
        assert stage.begun == ["one"]
        stage.ends["one"].set()
        await settled()
        assert stage.begun == ["one", "three"]


async def test_conversation_turn_that_waits_can_be_superseded_too() -> None:
    stage = Stage()
    places = {
        "one": ConversationPosition("c", "0"),
        "old": ConversationPosition("c", "1"),
        "new": ConversationPosition("c", "1"),
    }
    async with stage.under_way(**places) as tasks:
        with pytest.raises(BadRequest):
            await tasks["old"]
        assert stage.begun == ["one"]
        stage.ends["one"].set()
        await settled()
        assert stage.begun == ["one", "new"]


async def test_conversation_turn_that_ends_slowly_can_be_cancelled_twice() -> None:
    place, leaves = ConversationPosition("c", "1"), asyncio.Event()
    admission = make_admission()

    async def slow() -> None:
        async with admission.turn(place):
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.wait_for(leaves.wait(), PATIENCE)

    old = asyncio.ensure_future(slow())
    await settled()
    for _ in range(2):
        async with admission.turn(place):
            await settled()
    leaves.set()
    with pytest.raises(BadRequest):
        await old


async def test_conversation_turn_passes_a_timeout_of_the_answer_on() -> None:
    with pytest.raises(TimeoutError):
        async with make_admission().turn(ConversationPosition("c", "0")):
            raise TimeoutError


async def both(editor: Editor, fake: FakeUpstream, **second: object) -> list[str]:
    """Ask twice in one conversation, the second before the first is answered."""
    fields = {"conversation_id": "c", "chat_history": HISTORY}
    first = asyncio.ensure_future(editor.chat("one", **fields))
    await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    answers = [editor.chat("two", **{**fields, **second}), first]
    two, one = await asyncio.gather(*answers)
    return [one.text, two.text]


async def test_conversation_second_turn_starts_when_the_first_is_answered(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="1"), 0.2, *answer("st")]), answer("2nd"))
    later = [*HISTORY, {"request_id": "r2"}]
    assert await both(client, fake, chat_history=later) == ["1st", "2nd"]
    assert [r["messages"][-1]["content"] for r in fake.requests] == ["one", "two"]


async def test_independent_questions_of_one_conversation_do_not_wait(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="1")], end="hang"))
    first = asyncio.ensure_future(client.chat("one", conversation_id="c"))
    await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    fake.play(answer("2nd"))
    second = client.chat("two", conversation_id="c", chat_history=[])
    assert (await asyncio.wait_for(second, PATIENCE)).text == "2nd"
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_conversation_turn_that_waits_keeps_no_place_from_others(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="1")], end="hang"))
    limits = {"streams": 2, "waiting": 0}
    async with running({**settings_for(fake.url), "limits": limits}) as editor:
        turns = []
        for after in range(4):
            history = HISTORY * (after + 1)
            turns.append(
                asyncio.ensure_future(
                    editor.chat(conversation_id="c", chat_history=history)
                )
            )
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        fake.play(answer("other"))
        assert (await editor.chat("other", conversation_id="d")).text == "other"
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)


async def test_conversation_turn_asked_again_disconnects_the_old_one(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="1")], end="hang"), answer("2nd"))
    old, new = await both(client, fake)
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
    assert new == "2nd"
    assert old.startswith("1\n[byok] A newer request in this conversation")
