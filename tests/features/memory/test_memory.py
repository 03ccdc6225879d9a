"""Conversations are remembered while that is wanted, found again, and forgotten."""

import json
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import ChatRequest, Json, ToolCall
from byok.core.code_query import RetrievalRequest
from byok.core.errors import BadRequest, NotReady
from byok.core.events import StreamEvent, TextDelta
from byok.core.platform.paths import Paths
from byok.core.record import RequestRecord
from byok.features.base import Asking, Supplies
from byok.features.memory.feature import ConversationMemory
from byok.settings import Settings
from tests.fakes.clock import Clock
from tests.fakes.feature_supplies import make_site

DAY = 86_400
NOW = 20_000 * DAY  # 2024-10-04 in UTC
FACT = "Children under six travel free: parse_fare() in fares.py returns 0 for them."


@dataclass
class Remembering:
    """A memory in a folder of the test, and chats that pass by it."""

    folder: Path
    clock: Clock = field(default_factory=lambda: Clock(NOW))

    def __post_init__(self) -> None:
        paths = Paths(self.folder, self.folder, self.folder)
        self.site = make_site(self.clock, paths)
        self.memory = ConversationMemory(self.site)

    def configure(self, **settings: Any) -> None:
        self.memory.configure(Supplies(Settings.model_validate({"memory": settings})))

    async def chat(
        self,
        question: str,
        *answer: str | StreamEvent,
        id: str = "then",
        folders: Sequence[str] = (),
        **fields: Any,
    ) -> bool:
        """Let a chat pass; tell whether its answer was read."""
        record = RequestRecord("r1", conversation=id, folders=(*folders,))
        chat = ChatRequest((), question=question, **fields)
        asking = Asking(record, "fake", "one", chat, shows_notices=not chat.silent)
        await self.memory.admit(asking)
        if listener := record.listener:
            listener([TextDelta(e) if isinstance(e, str) else e for e in answer])
        record.finish(200)
        self.memory.request_finished(record)
        return listener is not None

    async def ask(self, query: str, **fields: Any) -> str:
        return await self.memory.recall(RetrievalRequest(query, **fields))

    async def forget(self, what: object) -> Json:
        return await self.memory.answer({"forget": what})

    async def count(self) -> int:
        return int((await self.memory.answer({}))["turns"])

    @property
    def content(self) -> bytes:
        """All that the files hold."""
        return b"".join(file.read_bytes() for file in self.folder.iterdir())


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Remembering]:
    made = Remembering(tmp_path)
    made.configure(on=True)
    yield made
    made.memory.close()


@pytest.mark.parametrize(
    ("zone", "day"), [("Asia/Shanghai", "2024-10-04"), ("TST+6", "2024-10-03")]
)
async def test_a_fact_of_last_week_is_found_with_its_day_and_place(
    place: Remembering, set_zone: Callable[[str], None], zone: str, day: str
) -> None:
    set_zone(zone)
    call = ToolCall("1", "view", '{"path": "shop/fares.py", "content": "x"}')
    await place.chat("Why do children pay?", FACT, call, folders=["/home/u/shop"])
    await place.chat("Which colour has the logo?", "It is blue.", id="other")
    place.clock.now += 7 * DAY
    for query in ("what do children pay", "how is the fare parsed", "parseFare fares"):
        told = await place.ask(query)
        assert FACT in told, query
        assert f"{day}, in shop\n" in told
        assert "asked: Why do children pay?" in told
        assert "files: shop/fares.py\n" in told
        assert "blue" not in told


async def test_a_question_in_another_language_is_found_too(place: Remembering) -> None:
    await place.chat("为什么导入很慢？", "每一行都单独提交。")
    for query in ("导入慢的原因", "why is the import slow", "每一行都单独"):
        assert "每一行都单独提交" in await place.ask(query), query


async def test_what_hardly_matches_is_left_out_where_something_does(
    place: Remembering,
) -> None:
    await place.chat("Does the hinge of the oven door squeak?", "Oil its screw.")
    for number in range(9):
        said = f"Hall {number} has an oven, and a red door beside it."
        await place.chat("Describe the hall.", said, id=f"c{number}")
    told = await place.ask("screw in the squeaking hinge of the oven door")
    assert "Oil its screw." in told
    assert "red door" not in told


@pytest.mark.parametrize(
    "query", ["", "?!", "what is it", "fix the function", "zebra crossing of the lions"]
)
async def test_what_was_not_said_is_not_found(place: Remembering, query: str) -> None:
    await place.chat("Fix the lions' cage.", "The function of the cage is fixed.")
    assert await place.ask(query) == ""


async def test_the_newer_of_equal_answers_comes_first_and_few_are_shown(
    place: Remembering,
) -> None:
    for day in reversed(range(9)):
        place.clock.now = NOW + day * DAY
        await place.chat("Where is the oven door?", f"At wall {day}.", id=f"c{day}")
    place.clock.now = NOW + 8 * DAY
    told = await place.ask("where is the oven door")
    shown = [day for day in range(9) if f"At wall {day}." in told]
    assert shown == [5, 6, 7, 8]
    assert told.index("wall 8") < told.index("wall 5")
    long = "The oven door is heavy. " * 400
    place.clock.now += 99 * DAY
    for number in range(4):
        await place.chat("Where is the oven door?", long, id=f"long{number}")
    assert len(await place.ask("oven door", length=2000)) <= 500
    assert len(await place.ask("oven door", length=80_000)) <= 4000


async def test_an_agents_steps_are_one_turn(place: Remembering) -> None:
    def view(path: str) -> ToolCall:
        return ToolCall("1", "view", f'{{"path": "{path}"}}')

    await place.chat("Is the oven door heavy?", "I look.", view("door.py"))
    await place.chat("", view("door.py"), ToolCall("2", "run", '{"path": 3'))
    await place.chat("", "x\n" * 9000, view("oven.py"))
    await place.chat("", "It weighs 40 kg.")
    assert await place.count() == 1
    told = await place.ask("is the oven door heavy")
    assert "files: door.py, oven.py\n" in told
    assert "40 kg" in await place.ask("oven weighs")
    await place.forget("all")
    await place.chat("", "Done: the oven.")  # the rest of a turn that was forgotten
    assert "heavy" not in await place.ask("oven done")


SCOPES: list[tuple[list[str], dict[str, Any], bool]] = [
    (["/home/u/shop"], {"folders": ["/home/u/shop"]}, True),
    (["/home/u/shop"], {"folders": ["/home/u/shop/web"]}, True),
    (["/home/u/shop/web"], {"roots": ["/home/u/shop"]}, True),
    (["/home/u/bank", "/home/u/shop"], {"folders": ["/home/u/shop"]}, True),
    (["/home/u/shop"], {"folders": ["/home/u/shop2"]}, False),
    (["/home/u/shop"], {"roots": ["/home/u/bank"]}, False),
    ([], {"folders": ["/home/u/shop"]}, False),
    (["/home/u/shop"], {}, True),
    ([], {}, True),
    ([], {"conversation": "then"}, False),
]


@pytest.mark.parametrize(("folders", "asked", "found"), SCOPES)
async def test_other_conversations_of_the_same_folders_are_found(
    place: Remembering, folders: list[str], asked: dict[str, Any], *, found: bool
) -> None:
    await place.chat("Why do children pay?", FACT, folders=folders)
    assert (FACT in await place.ask("what do children pay", **asked)) is found


async def test_off_nothing_is_written_and_what_is_there_stays_as_it_is(
    place: Remembering, tmp_path: Path
) -> None:
    place.configure(on=False)
    assert not await place.chat("Why do children pay?", FACT)
    assert (await place.memory.answer({}))["turns"] == 0
    assert (await place.memory.status(), place.memory.recalls) == (None, False)
    assert [*tmp_path.iterdir()] == []
    place.configure(on=True)
    assert await place.chat("Why do children pay?", FACT)
    assert await place.count() == 1
    place.configure(on=False)
    place.memory.close()
    before = place.content
    again = Remembering(tmp_path)
    again.configure(on=False)
    again.clock.now += 1000 * DAY
    assert not await again.chat("Why do dogs pay?", "They do not.")
    [line] = await again.memory.status() or ()
    assert line.key == "memory.left"
    assert again.content == before
    again.memory.close()


async def test_only_chats_that_the_user_sees_and_that_were_answered_are_kept(
    place: Remembering,
) -> None:
    assert not await place.chat("Write a title.", "Fares", silent=True)
    assert await place.chat("Why do children pay?")
    assert await place.chat("Why do children pay?", "  ")
    assert await place.count() == 0


KEY = "sk-0123456789abcdefghijklmnop"
LEAKS = {
    "a known shape": f"use {KEY} here",
    "a known shape behind much else": "x " * 1990 + KEY,
    "half of one": "x" * 3990 + f" {KEY}",
    "a password": 'password = "correct-horse-7-battery"',
    "an element": "<password>hunter2hunter2</password>",
    "in a URL": "postgres://ana:hunter2hunter2@db/x",
    "a private key": "-----BEGIN PRIVATE KEY-----\n" + "QUJDREVGRw" * 4000,
    "one that byok uses": "the word is live-secret-of-byok",
}
# What is masked is short, so that the end of what is read may be kept.
_LONG = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "QUJDREVGRw" * 2300
    + "\n-----END PRIVATE KEY-----"
)
LEAKS["cut where reading ends"] = f"{_LONG:.<23985}{KEY}"
SECRETS = (KEY, "correct-horse", "hunter2", "QUJDREVGRw", "live-secret", "sk-0123")


@pytest.mark.case("B135")
@pytest.mark.parametrize("text", LEAKS.values(), ids=LEAKS)
async def test_no_secret_is_written(place: Remembering, text: str) -> None:
    place.site.redactor.add("live-secret-of-byok")
    half = len(text) // 2
    path = ToolCall("1", f"run {KEY}", json.dumps({"path": f"/{KEY}"}))
    await place.chat(f"Why? {text}", text[:half], text[half:], path, id=KEY)
    await place.chat("Why so?", text, id="plain", folders=[f"/{KEY}"])
    assert await place.count() == 2
    place.memory.close()
    assert b"Why so?" in place.content
    assert not [secret for secret in SECRETS if secret.encode() in place.content]


@pytest.mark.case("B135")
async def test_what_is_forgotten_is_in_no_file(place: Remembering) -> None:
    words = {"then": b"giraffe", "now": b"zebra", "old": b"leopard"}

    async def fill() -> None:
        for id, word in words.items():
            place.clock.now = NOW - (9 * DAY if id == "old" else 0)
            for number in range(20):
                said = f"The {word.decode()} sleeps in cage {number}. " * 20
                await place.chat(f"Where is the {word.decode()}?", said, id=id)

    def left() -> list[str]:
        return [id for id, word in words.items() if word in place.content]

    await fill()
    assert (await place.forget({"conversation": "none"}))["forgotten"] == 0
    assert (await place.forget({"conversation": "then"}))["forgotten"] == 20
    assert left() == ["now", "old"]
    place.clock.now = NOW
    assert (await place.forget({"days": 8}))["forgotten"] == 20
    assert left() == ["now"]
    place.configure(on=False)
    told = await place.forget("all")
    assert (told["forgotten"], told["turns"], told["bytes"]) == (20, 0, 0)
    assert place.content == b""


@pytest.mark.parametrize(
    "what", ["then", {"days": -1}, {"days": True}, {"days": 10**400}, {}, 1, []]
)
async def test_an_unclear_wish_to_forget_is_refused(
    place: Remembering, what: object
) -> None:
    await place.chat("Why do children pay?", FACT)
    with pytest.raises(BadRequest):
        await place.forget(what)
    assert await place.count() == 1


@pytest.mark.parametrize("length", [100, 400])
async def test_a_conversation_with_a_long_id_is_forgotten(
    place: Remembering, length: int
) -> None:
    long = "then" * 100
    await place.chat("Why do children pay?", FACT, id=long)
    assert (await place.forget({"conversation": long[:length]}))["forgotten"] == 1


async def test_what_cannot_be_forgotten_is_said(
    place: Remembering, tmp_path: Path
) -> None:
    await place.chat("Why do children pay?", FACT)
    await place.count()
    place.configure(on=False)  # closes the file
    await place.count()
    file = tmp_path / "memory.db"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")  # which is not byok's to change
    with pytest.raises(NotReady):
        await place.forget({"conversation": "then"})
    assert b"Children under six" in place.content


async def test_what_is_forgotten_while_it_is_answered_is_not_kept(
    place: Remembering,
) -> None:
    long = "then" * 99  # longer than what is kept of it
    wishes: list[object] = ["all", {"conversation": long}, {"conversation": long[:100]}]
    for wish in wishes:
        record = RequestRecord("r1", conversation=long)
        chat = ChatRequest((), question="Why do children pay?")
        await place.memory.admit(Asking(record, "fake", "one", chat, True))
        assert record.listener
        record.listener([TextDelta(FACT)])
        await place.forget(wish)
        place.memory.request_finished(record)
        assert await place.count() == 0


async def test_a_turn_is_kept_for_so_many_days(place: Remembering) -> None:
    for day in (0, 5, 9):
        place.clock.now = NOW + day * DAY
        await place.chat("Where is the oven?", f"In hall {day}.", id=f"c{day}")
    place.clock.now = NOW + 10 * DAY
    place.configure(on=True, days=5)
    told = await place.ask("the oven in the hall")
    assert "hall 9" in told
    assert "hall 5" in told
    assert "hall 0" not in told
    assert await place.count() == 2


@pytest.mark.parametrize("now", [-1e18, 0.0, NOW + 400 * DAY, 1e18])
async def test_a_clock_that_jumps_costs_nothing_and_stops_nothing(
    place: Remembering, now: float
) -> None:
    await place.chat("Why do children pay?", FACT)
    place.clock.now = now
    place.configure(on=True)
    await place.chat("Where is the oven?", "In the hall.", id="later")
    assert await place.memory.status()
    assert FACT in await place.ask("what do children pay")
    place.clock.now = NOW + DAY
    place.configure(on=True)
    assert FACT in await place.ask("what do children pay")


async def test_20_mb_cost_as_little_as_20_kb(place: Remembering) -> None:
    many = "The oven door is heavy. " * 900_000
    call = ToolCall("1", "save", json.dumps({"path": "a.py", "text": many}))
    tracemalloc.start()
    started = time.process_time()
    await place.chat(many, *[many[:5000]] * 4000, call, id=many)
    assert await place.count() == 1
    assert time.process_time() - started < 5
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert (await place.memory.answer({}))["bytes"] < 200_000


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database" * 1000),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
    ],
)
async def test_a_damaged_file_is_begun_anew_and_forgotten_with_the_rest(
    place: Remembering, tmp_path: Path, damage: Damage
) -> None:
    await place.chat("Why do children pay?", FACT)
    await place.count()
    place.memory.close()
    damage(tmp_path / "memory.db")
    again = Remembering(tmp_path)
    again.configure(on=True)
    await again.chat("Where is the oven?", "In the hall.")
    assert "In the hall" in await again.ask("the oven in the hall")
    await again.forget("all")
    assert again.content == b""
    again.memory.close()
