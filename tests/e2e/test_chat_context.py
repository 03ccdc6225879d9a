"""Code in chats, through the daemon: where it stands, and what the client is told."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.record import current_record
from byok.search.index.files.text import split_lines
from byok.search.index.store.store import Store
from byok.search.retrieval.model_aids import ModelAids, ReadChunks
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile
from tests.fakes.clients import MISSING, blob, find_code, indexed, upload
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream

LION = blob("src/lion.py", "def feed_lion():\n    return 'meat'\n")
BEAR = blob("src/bear.py", "def feed_bear():\n    return 'honey'\n")
EMU = blob("docs/emu.md", "# Emus\n\nThey eat seeds.\n")
QUESTION = "What does feed_lion return?"


def named(*names: str) -> dict[str, Any]:
    blobs = {"checkpoint_id": None, "added_blobs": list(names), "deleted_blobs": []}
    return {"blobs": blobs}


def asked(fake: FakeUpstream) -> str:
    """Return the last message that the upstream got."""
    last = fake.requests[-1]["messages"][-1]
    assert last["role"] == "user"
    text: str = last["content"]
    return text


def chunks(blobs: list[dict[str, str]], line: dict[str, Any]) -> Iterator[str]:
    """Return the parts of the client's files that the daemon says it showed."""
    contents = {blob["blob_name"]: blob["content"] for blob in blobs}
    for chunk in line["workspace_file_chunks"]:
        assert set(chunk) == {"char_start", "char_end", "blob_name"}
        content = contents[chunk["blob_name"]]
        assert 0 <= chunk["char_start"] < chunk["char_end"] <= len(content)
        yield content[chunk["char_start"] : chunk["char_end"]]


@pytest.mark.parametrize("mode", ["CHAT", None])
async def test_grounding_gives_a_question_the_code_it_is_about(
    fake: FakeUpstream, editor: Editor, mode: str | None
) -> None:
    names = await indexed(editor, LION, BEAR)
    body = {"mode": mode, "user_guidelines": "Be brief.", **named(*names, MISSING)}
    reply = await editor.chat(QUESTION, **body)
    first, *others = reply.lines
    assert reply.text == "Hi."
    [shown, *_] = chunks([LION, BEAR], first)
    assert shown == LION["content"]
    assert first["unknown_blob_names"] == [MISSING]
    assert all(line["workspace_file_chunks"] == [] for line in others)
    system, question = fake.requests[-1]["messages"]
    assert "feed" not in system["content"]
    assert question["content"].endswith(f"\n\n{QUESTION}")
    assert "Path: src/lion.py\n     1\tdef feed_lion():\n" in question["content"]
    whole = (await editor.post("/chat", {"message": QUESTION, **body})).json
    assert whole["workspace_file_chunks"] == first["workspace_file_chunks"]
    assert whole["unknown_blob_names"] == [MISSING]
    assert fake.requests[-1]["messages"] == [system, question]


async def test_grounding_of_a_checkpoint_leaves_out_deleted_blobs(
    fake: FakeUpstream, editor: Editor
) -> None:
    lion, bear = await indexed(editor, LION, BEAR)
    made = await editor.post("/checkpoint-blobs", named(lion, bear))
    blobs = {"checkpoint_id": made.json["new_checkpoint_id"], "added_blobs": []}
    reply = await editor.chat("feed", blobs={**blobs, "deleted_blobs": [lion]})
    [shown] = chunks([BEAR], reply.lines[0])
    assert shown == BEAR["content"]
    lost = await editor.chat("feed", blobs={"checkpoint_id": "lost"})
    assert lost.lines[0]["checkpoint_not_found"] is True
    assert asked(fake) == "feed"


RESULT = {"id": 1, "type": 1, "tool_result_node": {"tool_use_id": "c", "content": "4"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "AGENT"},
        {"mode": "CLI_AGENT"},
        {"silent": True},
        {"disable_retrieval": True},
        {"nodes": [RESULT]},
    ],
    ids=str,
)
async def test_grounding_of_an_agent_that_searches_reports_unknown_blobs_only(
    fake: FakeUpstream, editor: Editor, fields: dict[str, Any]
) -> None:
    names = await indexed(editor, LION)
    guided = {"user_guided_blobs": names}
    reply = await editor.chat(QUESTION, **named(*names, MISSING), **guided, **fields)
    assert b"Path: " not in fake.bodies[-1]
    assert b"return 'meat'" not in fake.bodies[-1]
    assert reply.lines[0]["workspace_file_chunks"] == []
    assert reply.lines[0]["unknown_blob_names"] == [MISSING]


async def test_grounding_can_be_switched_off(fake: FakeUpstream) -> None:
    settings = {**settings_for(fake.url), "chat": {"retrieval": False}}
    async with running(settings) as editor:
        names = await indexed(editor, LION)
        await editor.chat(QUESTION, **named(*names), user_guided_blobs=names)
    assert asked(fake) == QUESTION


@pytest.mark.parametrize("guided", [False, True])
async def test_grounding_takes_no_more_room_than_configured(
    fake: FakeUpstream, guided: bool
) -> None:
    blobs = [
        blob(f"lion{n}.py", f"def feed_lion_{n}():\n    return 'meat'\n\n\n" * 200)
        for n in range(8)
    ]
    settings = {**settings_for(fake.url), "chat": {"context_chars": 3000}}
    async with running(settings) as editor:
        names = await indexed(editor, *blobs)
        fields = {"user_guided_blobs": names[:2]} if guided else {}
        reply = await editor.chat(QUESTION, **named(*names), **fields)
    assert 2000 < len(asked(fake)) - len(f"\n\n{QUESTION}") <= 3000
    assert sum(map(len, chunks(blobs, reply.lines[0]))) < 3000


@pytest.mark.parametrize("field", ["user_guided_blobs", "user_specified_files"])
async def test_attached_files_come_first_whatever_the_question(
    fake: FakeUpstream, editor: Editor, field: str
) -> None:
    lion, _, emu = await indexed(editor, LION, BEAR, EMU)
    body = {field: [emu, MISSING], **named(lion)}
    reply = await editor.chat(QUESTION, **body)
    assert list(chunks([LION, EMU], reply.lines[0])) == [
        EMU["content"], LION["content"]
    ]  # fmt: skip
    text = asked(fake)
    assert text.startswith("[files that the user attached]\nPath: docs/emu.md\n")
    assert text.index("docs/emu.md") < text.index("src/lion.py")
    assert reply.lines[0]["unknown_blob_names"] == [MISSING]
    alone = await editor.chat("Why?", **{field: [emu]})
    assert list(chunks([EMU], alone.lines[0])) == [EMU["content"]]
    assert "feed" not in asked(fake)


async def test_attached_file_that_is_unknown_is_shown_once_uploaded(
    fake: FakeUpstream, editor: Editor
) -> None:
    name = LION["blob_name"]
    first = await editor.chat("Why?", user_guided_blobs=[name, name])
    assert first.lines[0]["unknown_blob_names"] == [name]
    assert asked(fake) == "Why?"
    await upload(editor, LION)
    second = await editor.chat("Why?", user_guided_blobs=[name])
    assert second.lines[0]["unknown_blob_names"] == []
    assert list(chunks([LION], second.lines[0])) == [LION["content"]]


@pytest.mark.case("B73")
async def test_grounding_sends_no_secret_file_and_no_key(
    fake: FakeUpstream, editor: Editor
) -> None:
    key = "sk-abcdef1234567890abcdef"
    blobs = [
        blob(".env", "LION_PASSWORD=roar\n"),
        blob("deploy/id_rsa", "lion_password roar\n"),
        blob("lion.py", f"lion_password = '{key}'\n"),
    ]
    names = await indexed(editor, *blobs)
    for fields in ({}, {"user_guided_blobs": names}):
        reply = await editor.chat("lion_password?", **named(*names), **fields)
        assert b"roar" not in fake.bodies[-1]
        assert key.encode() not in fake.bodies[-1]
        [chunk] = reply.lines[0]["workspace_file_chunks"]
        assert chunk["blob_name"] == blobs[2]["blob_name"]
        assert reply.lines[0]["unknown_blob_names"] == []


@pytest.mark.case("B64")
@pytest.mark.parametrize("name", ["f" * 64, "mine", "../x\n"])
async def test_grounding_names_a_file_as_its_client_does(
    fake: FakeUpstream, editor: Editor, name: str
) -> None:
    await indexed(editor, {**LION, "blob_name": name})
    made = await editor.post("/checkpoint-blobs", named(name))
    checkpoint = {"checkpoint_id": made.json["new_checkpoint_id"]}
    for body in (
        named(name), {"user_guided_blobs": [name]}, {"blobs": checkpoint}
    ):  # fmt: skip
        reply = await editor.chat(QUESTION, **body)
        [chunk] = reply.lines[0]["workspace_file_chunks"]
        assert chunk["blob_name"] == name, body
        assert reply.lines[0]["unknown_blob_names"] == []


async def test_a_chat_goes_on_where_the_index_cannot_be_opened(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    paths = find_paths()
    paths.database.parent.mkdir(parents=True, mode=0o700)
    store = Store(paths.database, paths.index)  # as another process would
    try:
        async with running(settings_for(fake.url)) as editor:
            caplog.clear()
            body = {"user_guided_blobs": [MISSING], **named(MISSING)}
            reply = await editor.chat(QUESTION, **body)
            assert reply.text == "Hi."
            assert asked(fake) == QUESTION
            assert reply.lines[0]["workspace_file_chunks"] == []
            assert reply.lines[0]["unknown_blob_names"] == []
            told = [r for r in caplog.records if "continues without" in r.getMessage()]
            assert len(told) == 1
    finally:
        store.close()


ODD: list[Any] = [None, 5, "x", [], {}, [1], [None], [[]], [{}], {"a": 1}, True, [""]]


@pytest.mark.parametrize("value", ODD, ids=repr)
async def test_fields_of_odd_types_never_break_a_chat(
    fake: FakeUpstream, editor: Editor, value: Any
) -> None:
    fields = ["user_guided_blobs", "user_specified_files", "blobs", "disable_retrieval"]
    [lion] = await indexed(editor, LION)
    for body in (
        *({field: value} for field in [*fields, "mode"]),
        dict.fromkeys(fields, value),
        {"blobs": {"added_blobs": value, "deleted_blobs": value}},
        {"blobs": {"added_blobs": [lion], "checkpoint_id": value}},
        {"user_guided_blobs": value, **named(lion)},
    ):
        for path in ("/chat-stream", "/chat"):
            reply = await editor.post(path, {"message": QUESTION, **body})
            assert reply.status == 200, (path, body)
            assert reply.text == "Hi.", (path, body)
            assert asked(fake).endswith(QUESTION)


@pytest.mark.case("B63")
async def test_grounding_with_thousands_of_hostile_names(
    fake: FakeUpstream, editor: Editor
) -> None:
    hostile = [
        "../../etc/passwd",
        "a\0b",
        "x" * 5000,
        "'; DROP TABLE blob;--",
        "\ud83d",
    ]
    many = [f"{n:064x}" for n in range(3000)]
    [lion] = await indexed(editor, LION)
    body = {"user_guided_blobs": [*hostile, lion, *many], **named(*hostile, lion)}
    reply = await editor.chat(QUESTION, **body)
    assert reply.text == "Hi."
    first = reply.lines[0]
    assert list(chunks([LION], first)) == [LION["content"]]
    unknown = first["unknown_blob_names"]
    assert len(unknown) == len(set(unknown)) == 999
    assert {"../../etc/passwd", "a\0b", many[0]} <= set(unknown)
    assert lion not in unknown
    assert "root:" not in asked(fake)
    again = await editor.chat(QUESTION, **named(lion))  # nothing was dropped
    assert list(chunks([LION], again.lines[0])) == [LION["content"]]


ENDS = ["\n", "\r\n", "\r"]
WORDS = ["lion", "é", "😀", "北岸", *"\u2028\x0b\ufeff\tx", "e\u0301", " = "]


def odd_file(number: int) -> dict[str, str]:
    """Make a file of odd characters and mixed line ends; each line has a number."""
    chosen = random.Random(number)
    ends = chosen.sample(ENDS, chosen.randint(1, 3))
    lines = [
        "".join(chosen.choices(WORDS, k=chosen.randint(0, 12))) + f"#{n}"
        for n in range(chosen.randint(1, 120))
    ]
    text = "".join(line + chosen.choice(ends) for line in lines)
    text = text if chosen.random() < 0.5 else text.rstrip("\r\n")
    mark = "\ufeff" if chosen.random() < 0.3 else ""
    return blob(f"notes{number}.txt", mark + text)


def shown_numbers(text: str) -> list[list[str]]:
    """Return the numbers in each run of lines that stands in a text."""
    runs: list[list[str]] = []
    for line in text.split("\n"):
        if row := re.fullmatch(r" *\d+\t(?:.*#)?(\d+)", line):
            runs[-1].append(row[1])
        elif line.startswith("Path: ") or line == "...":
            runs.append([])
    return [run for run in runs if run]


@pytest.mark.parametrize("seed", range(4))
async def test_grounding_places_are_exactly_the_lines_shown(
    fake: FakeUpstream, seed: int
) -> None:
    blobs = [odd_file(seed * 100 + n) for n in range(40)]
    settings = {**settings_for(fake.url), "chat": {"context_chars": 16_000}}
    async with running(settings) as editor:
        names = await indexed(editor, *blobs)
        body = {"user_guided_blobs": names[:6], **named(*names)}
        reply = await editor.chat("lion", **body)
    told = [
        [line.rpartition("#")[2] for line in split_lines(part)]
        for part in chunks(blobs, reply.lines[0])
    ]
    assert told == shown_numbers(asked(fake))
    assert len({c["blob_name"] for c in reply.lines[0]["workspace_file_chunks"]}) > 6


async def test_a_chat_without_blobs_opens_nothing(
    fake: FakeUpstream, editor: Editor
) -> None:
    for body in ({}, {**named(), "user_guided_blobs": []}):
        reply = await editor.chat(QUESTION, **body)
        assert reply.lines[0]["workspace_file_chunks"] == []
        assert reply.lines[0]["unknown_blob_names"] == []
    assert not find_paths().database.exists()


class Seen:
    """A rerank that only looks at where its question may go."""

    def __init__(self) -> None:
        self.places: list[frozenset[str] | None] = []

    async def __call__(
        self,
        question: str,
        query: Query,
        files: Sequence[RankedFile],
        read: ReadChunks,
    ) -> list[RankedFile]:
        self.places.append(current_record().chat_upstreams)
        return [*files]


async def chat_in(editor: Editor, window: str, model: str, **fields: Any) -> None:
    body = {"message": "Go on.", "model": model, **fields}
    headers = {"X-Request-Session-Id": window}
    assert (await editor.post("/chat-stream", body, headers=headers)).status == 200


async def test_questions_know_where_the_chats_of_their_window_went() -> None:
    async with FakeUpstream() as near, FakeUpstream() as far:
        upstreams = {
            "near": {"base_url": near.url, "model": "n"},
            "far": {"base_url": far.url, "model": "f"},
        }
        async with running({"upstreams": upstreams}) as editor:
            seen = Seen()
            editor.services.context.aids = ModelAids(rerank=seen)
            lion, bear = blob("lion.py", "lion\n"), blob("bear.py", "lions\n")
            blobs = {"added_blobs": await indexed(editor, lion, bear)}

            async def places(window: str) -> frozenset[str] | None:
                await find_code(editor, "the lions", window=window, blobs=blobs)
                return seen.places.pop()

            assert await places("a") is None
            await chat_in(editor, "a", "byok:far:x")
            await chat_in(editor, "b", "")
            await chat_in(editor, "b", "byok:far:x", silent=True)  # a job, not a chat
            assert await places("a") == frozenset({"far"})
            assert await places("b") == frozenset({"near"})
            assert await places("c") is None
