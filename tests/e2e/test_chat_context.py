"""Code in chats, through the daemon: where it stands, and what the client is told."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.record import current_record
from byok.search.index.store.store import Store
from byok.search.retrieval.model_aids import ModelAids, ReadChunks
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile
from tests.fakes.clients import MISSING, blob, find_code, indexed
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream

LION = blob("src/lion.py", "def feed_lion():\n    return 'meat'\n")
BEAR = blob("src/bear.py", "def feed_bear():\n    return 'honey'\n")
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


async def test_grounding_of_an_agent_that_searches_reports_unknown_blobs_only(
    fake: FakeUpstream, editor: Editor
) -> None:
    names = await indexed(editor, LION)
    body = {"mode": "AGENT", "user_guided_blobs": names, **named(*names, MISSING)}
    reply = await editor.chat(QUESTION, **body)
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


async def test_grounding_takes_no_more_room_than_configured(
    fake: FakeUpstream,
) -> None:
    blobs = [
        blob(f"lion{n}.py", f"def feed_lion_{n}():\n    return 'meat'\n\n\n" * 200)
        for n in range(8)
    ]
    settings = {**settings_for(fake.url), "chat": {"context_chars": 3000}}
    async with running(settings) as editor:
        names = await indexed(editor, *blobs)
        body = {"user_guided_blobs": names[:2], **named(*names)}
        reply = await editor.chat(QUESTION, **body)
    assert 2000 < len(asked(fake)) - len(f"\n\n{QUESTION}") <= 3000
    assert sum(map(len, chunks(blobs, reply.lines[0]))) < 3000


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


# The window from which a question comes is known by its chats


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


async def chat(editor: Editor, window: str, model: str, **fields: Any) -> None:
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
            await chat(editor, "a", "byok:far:x")
            await chat(editor, "b", "")
            await chat(editor, "b", "byok:far:x", silent=True)  # a job, not a chat
            assert await places("a") == frozenset({"far"})
            assert await places("b") == frozenset({"near"})
            assert await places("c") is None
