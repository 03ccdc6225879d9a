"""Answers begin in their turn, and only where there is a place."""

import asyncio

from byok.core.events import Finish, FinishReason
from byok.protocols.augment.chat_request import ConversationPlace
from byok.server.admission import Admission, Conversations
from byok.server.http.gate import Gate
from tests.fakes.daemon import running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import check_error
from tests.fakes.upstream import FakeUpstream, Script, delta

FINISH = Finish(FinishReason.STOP)


async def test_admission_refuses_a_stream_beyond_the_limit(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    limits = {"streams": 1, "waiting": 0}
    async with running({**settings_for(fake.url), "limits": limits}) as editor:
        first = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        refused = await editor.chat()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "2"
    check_error(refused.json)
    assert refused.json["error"]["code"] == "too_many_streams"


async def test_admission_of_a_waiting_turn_keeps_no_place() -> None:
    admission = Admission(Gate(1, 0, 1), Conversations())
    steps: list[str] = []

    async def answer(after: str) -> None:
        place = ConversationPlace("c", after)
        async with admission.enter(place, lambda: steps.append("waits")):
            steps.append(after)
            await asyncio.sleep(0)

    await asyncio.gather(answer("first"), answer("second"))
    assert steps == ["first", "waits", "second"]
