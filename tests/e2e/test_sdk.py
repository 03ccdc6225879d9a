"""The client's official Python SDK chats, indexes and searches through byok."""

import asyncio
from typing import Any

import pytest

from tests.fakes.clients import ask
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, answer

sdk: Any = None


@pytest.fixture(scope="module", autouse=True)
def official_sdk() -> None:
    """Import the SDK, which only this file needs."""
    global sdk
    sdk = pytest.importorskip("auggie_sdk.context", reason="it is not installed")


async def test_the_sdk_chats_with_the_demo() -> None:
    async with running(upstream="demo") as editor:
        reply = await ask(editor, "What is a ferry?")
    assert "no model" in reply
    assert reply.endswith("You asked: What is a ferry?")


async def test_line_separators_in_the_answer_reach_the_sdk(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(answer("one\u2028two\u2029three\u0085four ", "é😀"))
    reply = await ask(editor, "Separate.")
    assert reply == "one\u2028two\u2029three\u0085four é😀"


async def test_sdk_shows_an_upstream_that_is_down_in_one_readable_line(
    fake: FakeUpstream,
) -> None:
    async with running(settings_for("http://127.0.0.1:9/v1")) as editor:
        reply = await ask(editor, "Anybody there?")
    assert reply.strip().startswith("[byok] fake: nothing answers at")
    assert fake.requests == []


def context_of(editor: Editor, state: Any = None) -> Any:
    """Make the SDK's index of files, new or from a state that was exported."""
    keys = {"api_key": editor.token, "api_url": editor.daemon.url}
    if state is None:
        return sdk.DirectContext.create(**keys)
    return sdk.DirectContext.import_state(state, **keys)


async def search(context: Any, query: str) -> str:
    found: str = await asyncio.to_thread(context.search, query)
    return found


def wave(first: int, last: int) -> list[Any]:
    return [
        sdk.File(
            path=f"src/ferry_{n}.py", contents=f"def sail_{n}():\n    return {n}\n"
        )
        for n in range(first, last)
    ]


async def test_the_sdk_indexes_1200_files_and_finds_them_after_a_restart(
    fake: FakeUpstream,
) -> None:
    async with running(settings_for(fake.url)) as editor:
        context = context_of(editor)
        added = await asyncio.to_thread(context.add_to_index, wave(0, 1200))
        assert len(added.newly_uploaded) == 1200
        assert context.checkpoint_id
        text = await search(context, "Where is sail_777?")
        assert "Path: src/ferry_777.py\n     1\tdef sail_777():" in text

        new = sdk.File(path="src/ferry_777.py", contents="def moor():\n    return 1\n")
        await asyncio.to_thread(context.add_to_index, [new])
        assert "def moor" in await search(context, "Where is moor?")
        assert "def sail_777()" not in await search(context, "Where is sail_777?")

        again = await asyncio.to_thread(context.add_to_index, wave(0, 10))
        assert (len(again.newly_uploaded), len(again.already_uploaded)) == (0, 10)
        await asyncio.to_thread(context.remove_from_index, ["src/ferry_5.py"])
        assert "ferry_5.py" not in await search(context, "Where is sail_5?")

        fake.play(answer("In ferry_42."))
        asked = await asyncio.to_thread(context.search_and_ask, "Where is sail_42?")
        assert asked == "In ferry_42."
        assert "def sail_42()" in str(fake.requests[-1]["messages"])
        state = context.export()
    async with running(settings_for(fake.url)) as editor:
        context = context_of(editor, state)
        assert "def sail_778()" in await search(context, "Where is sail_778?")
        assert "def moor" in await search(context, "Where is moor?")
        assert "def sail_777()" not in await search(context, "Where is sail_777?")
        assert "ferry_5.py" not in await search(context, "Where is sail_5?")
        none = await asyncio.to_thread(context.add_to_index, wave(1190, 1200))
        assert none.newly_uploaded == []


async def test_the_sdk_hears_of_a_checkpoint_that_was_lost() -> None:
    async with running(upstream="demo") as editor:
        context = context_of(editor)
        await asyncio.to_thread(context.add_to_index, wave(0, 2))
        context.checkpoint_id = "from-elsewhere"
        text = await search(context, "Where is sail_1?")
    assert "def sail_1()" in text
    assert "The checkpoint that this client named is unknown" in text
