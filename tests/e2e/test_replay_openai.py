"""OpenAI's own client reads recorded streams through byok as it reads them directly."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import openai_client
from tests.fakes.daemon import Editor
from tests.fakes.replay import bytes_of, recorded

pytestmark = [pytest.mark.shared, pytest.mark.slow]
AT_ONCE = 8
ASK: list[Any] = [{"role": "user", "content": "Go on."}]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the client made of a stream, or the class of its exception."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str | None = None
    failure: str = ""


def normal(arguments: str | None) -> str:
    """Spell arguments that are JSON in one way; others stay."""
    try:
        return json.dumps(json.loads(arguments or ""), sort_keys=True)
    except ValueError:
        return arguments or ""


async def read(client: Any, model: str) -> Reading:
    """Read one stream with the accumulation of the client itself."""
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state: Any = ChatCompletionStreamState()
    try:
        stream = await client.chat.completions.create(
            model=model, messages=ASK, stream=True
        )
        async for chunk in stream:
            state.handle_chunk(chunk)
        choice = state.current_completion_snapshot.choices[0]
    except Exception as error:  # whatever the client itself stumbles over
        code = str(getattr(error, "code", ""))
        return Reading(failure=f"{type(error).__name__} {code}".strip())
    calls = choice.message.tool_calls or ()
    return Reading(
        choice.message.content or "",
        tuple((c.id, c.function.name, normal(c.function.arguments)) for c in calls),
        choice.finish_reason,
    )


def of_each_provider(items: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return so many streams of each provider at most, evenly spaced."""
    by_provider = defaultdict[str, list[dict[str, Any]]](list)
    for item in items:
        by_provider[item["provider"]].append(item)
    return [item for of in by_provider.values() for item in of[:: len(of) // most + 1]]


def expected_of(item: dict[str, Any]) -> Reading:
    """Return what the manifest says of a stream."""
    told = item["expected"]
    return Reading(
        told["text"] or "",
        tuple(
            (c["id"], c["name"], normal(c["arguments_raw"])) for c in told["tool_calls"]
        ),
        told["finish_reason"],
    )


async def of_all(
    items: Iterable[Any], work: Callable[[Any], Awaitable[tuple[Any, Any]]]
) -> list[tuple[Any, Any]]:
    """Do the work for all items, a few at once; keep the order."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(item: Any) -> tuple[Any, Any]:
        async with room:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))


async def test_replay_is_the_same_for_an_openai_client_through_byok(
    replay_editor: Editor, replay: str, shared: Path
) -> None:
    items = of_each_provider(recorded(shared, "chat_stream"), 5)
    async with (
        openai_client(replay, "none") as direct,
        openai_client(replay_editor.daemon.url, replay_editor.token) as byok,
    ):

        async def both(item: Any) -> tuple[Reading, Reading]:
            model: str = item["id"]
            return await read(direct, model), await read(byok, f"byok:replay:{model}")

        readings = await of_all(items, both)
    seen: Counter[str] = Counter()
    for item, (there, here) in zip(items, readings, strict=True):
        assert here == there, item["id"]
        seen[there.failure or "read"] += 1
        if item["expected"] and there == expected_of(item):
            seen["as expected"] += 1
            seen["with calls"] += bool(there.calls)
    print(len(items), dict(seen))
    assert seen["as expected"] > len(items) * 0.7
    assert seen["with calls"] > 8


async def test_replay_bytes_are_the_same_through_byok(
    replay_editor: Editor, replay: str, shared: Path
) -> None:
    streams = recorded(shared, "chat_stream")
    items = streams[:: len(streams) // 15]
    assert len(items) > 12

    async def both(item: Any) -> tuple[bytes, bytes]:
        sent = {"model": item["id"], "stream": True}
        async with replay_editor.http.post(
            f"{replay}/v1/chat/completions", json=sent
        ) as answer:
            there = await answer.read()
        through = {**sent, "model": f"byok:replay:{item['id']}"}
        return there, (await replay_editor.post("/v1/chat/completions", through)).raw

    for item, (there, here) in zip(items, await of_all(items, both), strict=True):
        assert here == there == bytes_of(shared, item), item["id"]
