"""A turn stays with its model, and caches decide when a conversation comes back."""

from pathlib import Path

import pytest

from byok.core.routing import ChatMoment
from byok.upstream.base import Destination
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.moments import BY_DEFAULT, ChatFacts, MomentMemory, Moments
from byok.upstream.router import Router
from tests.fakes.clock import Clock
from tests.fakes.scripted import Lister

LARGE = 100_000  # bytes
MODELS = {
    ChatMoment.IMAGE: "byok:box:eyes",
    ChatMoment.LONG_CONTEXT: "byok:box:wide",
    ChatMoment.SUBAGENT: "byok:box:helper",
}


def question(weight: int = LARGE, *, picture: bool = False) -> ChatFacts:
    return ChatFacts(has_picture=picture, weight=weight)


def results(weight: int = LARGE) -> ChatFacts:
    return ChatFacts(is_question=False, weight=weight)


class Room:
    """One upstream, whose usual model has a window of 100,000 tokens."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        box = Lister("box", "usual")
        catalog = Catalog([CatalogEntry(box)], folder / "models.json")
        router = Router({"box": box}, catalog, "byok:box:usual")
        memory = MomentMemory(self.clock, self.clock)
        self.moments = Moments(MODELS, 0.7, router, lambda _: 100_000, (), memory)
        self.usual = Destination(box, "usual")

    async def ask(self, facts: ChatFacts, conversation: str = "c") -> Destination:
        choose = self.moments.choose
        return await choose(self.usual, BY_DEFAULT, facts, conversation)


PICTURE = question(picture=True)
TOO_LONG = question(300_000)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [(0, PICTURE, "eyes"), (9, results(), "eyes"), (9, results(), "eyes")],
            id="a turn stays with its model",
        ),
        pytest.param(
            [(0, question(), "usual"), (9, results(300_000), "usual")],
            id="also with the usual one",
        ),
        pytest.param(
            [(0, TOO_LONG, "wide"), (9, results(), "wide"), (9, question(), "usual")],
            id="a conversation that was shortened comes back",
        ),
        pytest.param(
            [(0, PICTURE, "eyes"), (290, question(), "eyes"), (290, PICTURE, "eyes")],
            id="only the image model has it in its cache",
        ),
        pytest.param(
            [(0, PICTURE, "eyes"), (9, question(), "eyes"), (301, question(), "usual")],
            id="no cache has it any more",
        ),
        pytest.param(
            [(0, question(), "usual"), (9, PICTURE, "eyes"), (9, question(), "usual")],
            id="the usual model has it in its cache, too",
        ),
        pytest.param(
            [(0, PICTURE, "eyes"), (9, question(20_000), "usual")],
            id="it is short",
        ),
        pytest.param(
            [(0, PICTURE, "eyes"), (9, TOO_LONG, "wide")],
            id="it becomes too long",
        ),
    ],
)
async def test_conversation_goes_and_comes_back(
    tmp_path: Path, steps: list[tuple[float, ChatFacts, str]]
) -> None:
    room = Room(tmp_path)
    for seconds, facts, model in steps:
        room.clock.now += seconds
        assert (await room.ask(facts)).model == model


@pytest.mark.parametrize("conversation", ["", "c" * 1000])
async def test_moment_of_a_conversation_without_a_usable_id_is_not_kept(
    tmp_path: Path, conversation: str
) -> None:
    room = Room(tmp_path)
    assert (await room.ask(PICTURE, conversation)).model == "eyes"
    assert (await room.ask(question(), conversation)).model == "usual"


async def test_user_is_told_once_in_a_conversation(tmp_path: Path) -> None:
    room = Room(tmp_path)
    asked = [await room.ask(facts) for facts in (PICTURE, PICTURE, TOO_LONG)]
    assert [len(one.recoveries) for one in asked] == [1, 0, 1]
    assert len((await room.ask(PICTURE, "d")).recoveries) == 1
    helper = await room.ask(ChatFacts(has_parent=True), "e")
    assert (helper.model, helper.recoveries) == ("helper", ())
