"""byok's own questions: short ones, whom byok may ask them, and summaries."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from byok.core.chat import ChatRequest, Role, TextPart
from byok.core.errors import (
    ByokError,
    ConfigError,
    KeyMissing,
    UpstreamEmpty,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.events import StreamEvent, TextDelta, ThinkingDelta
from byok.core.record import RequestRecord, begin_record
from byok.core.routing import Purpose
from byok.upstream.base import Destination, Plan
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import FallbackMemory, Fallbacks
from byok.upstream.own_questions import QuestionRoutes, ShortQuestion, Summariser
from byok.upstream.router import Router
from byok.upstream.window.transcript import outline
from tests.fakes.clock import Clock
from tests.fakes.histories import agent
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Answer, Lister, Scripted, said


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


async def test_short_question_is_given_up_in_time() -> None:
    async def wait() -> Destination:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(UpstreamTimeout):
        await ShortQuestion(wait)("i", "t", seconds=0.01, longest=7)


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


NEAR, LAN, FAR, CLOUD = "byok:near:n", "byok:lan:l", "byok:far:f", "byok:cloud:c"

ALIASES = {"best": CLOUD}


def routes(
    folder: Path, default: str, chat: str | None, behind: list[str]
) -> QuestionRoutes:
    """Two upstreams on this machine, and two elsewhere."""
    upstreams = {
        name: Lister(name, f"{name}-listed") for name in ("near", "lan", "far", "cloud")
    }
    catalog = Catalog(map(CatalogEntry, upstreams.values()), folder / "models.json")
    catalog.refresh()
    router = Router(upstreams, catalog, default, ALIASES)
    local = {"near", "lan"}
    lists = {Purpose.CHAT: behind, Purpose.SUMMARY: [CLOUD]}
    fallbacks = Fallbacks(
        router, lambda purpose: lists.get(purpose, []), local, FallbackMemory(Clock())
    )
    return QuestionRoutes(fallbacks, chat)


@pytest.mark.case("B126")
@pytest.mark.parametrize(
    ("default", "chat", "behind", "wanted", "found"),
    [
        pytest.param(NEAR, "", [], FAR, None, id="chats stay here"),
        pytest.param(NEAR, "", [], "cloud-listed", None, id="nor does a listed name"),
        pytest.param(NEAR, "", [], LAN, LAN, id="another one here"),
        pytest.param(NEAR, "", [], "", NEAR, id="the one of chats, here"),
        pytest.param(NEAR, "", [FAR], FAR, None, id="a fallback that a chat lacks"),
        pytest.param(NEAR, "", [NEAR, FAR], FAR, FAR, id="a fallback of chats"),
        pytest.param(NEAR, "", [NEAR, FAR], CLOUD, None, id="not one of summaries"),
        pytest.param(NEAR, FAR, [], "byok:far:tiny", "byok:far:tiny", id="chat is set"),
        pytest.param(FAR, NEAR, [], FAR, None, id="the default is not for chats"),
        pytest.param(FAR, "", [], CLOUD, None, id="another place"),
        pytest.param(FAR, "", [CLOUD], CLOUD, CLOUD, id="the place of the fallback"),
        pytest.param(FAR, "", [], NEAR, NEAR, id="chats go out, and this one does not"),
        pytest.param(FAR, "best", [], "", CLOUD, id="the one that chats name"),
        pytest.param(FAR, None, [], FAR, None, id="the official service answers chats"),
        pytest.param(FAR, None, [FAR, CLOUD], "", None, id="it has no fallback"),
    ],
)
async def test_question_goes_only_where_chats_go_or_nowhere(
    tmp_path: Path,
    default: str,
    chat: str | None,
    behind: list[str],
    wanted: str,
    found: str | None,
) -> None:
    made = routes(tmp_path, default, chat, behind)
    await made.fallbacks.router.choose_listed("cloud-listed")  # waits for the lists
    if found is None:
        with pytest.raises(ConfigError, match="no chat goes to"):
            await made.find(wanted)
    else:
        assert (await made.find(wanted)).model_id == found


@pytest.mark.case("B126")
@pytest.mark.parametrize(
    ("default", "seen", "wanted", "found"),
    [
        pytest.param(FAR, {"near"}, FAR, None, id="this window stays here"),
        pytest.param(NEAR, {"cloud"}, CLOUD, CLOUD, id="a model that a client chose"),
        pytest.param(FAR, {"cloud"}, FAR, None, id="one instead of the default"),
        pytest.param(FAR, {"near", "far"}, FAR, FAR, id="chats went to both"),
    ],
)
async def test_question_of_a_window_goes_only_where_its_chats_went(
    tmp_path: Path, default: str, seen: set[str], wanted: str, found: str | None
) -> None:
    made = routes(tmp_path, default, "", [])

    async def find() -> Destination:
        begin_record(RequestRecord(chat_upstreams=frozenset(seen)))
        return await made.find(wanted)

    asked = asyncio.ensure_future(find())  # the record is that of a task
    if found is None:
        with pytest.raises(ConfigError, match="no chat goes to"):
            await asked
    else:
        assert (await asked).model_id == found


@pytest.mark.case("B126")
async def test_question_has_no_fallback(tmp_path: Path) -> None:
    found = await routes(tmp_path, FAR, "", [FAR, CLOUD]).find("")
    assert isinstance(found.upstream, Lister)


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
    again = await bench.ask(room=10_000, longest=200, steps=300)  # as a smaller model
    assert 100 < len(again) <= 200
    assert len(bench.own.asked) == 1


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
        begun = 0

        async def send(self, plan):  # type: ignore[no-untyped-def]
            self.begun += 1
            try:
                await asyncio.Event().wait()
                yield []
            finally:
                self.closed += 1

    silent = Silent()
    async with asyncio.timeout(PATIENCE):
        summary = await bench.make(Destination(silent, "m"), DROPPED, ROOM, LONGEST)
    assert summary == outline(DROPPED, LONGEST)
    assert silent.closed == silent.begun
