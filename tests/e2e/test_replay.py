"""Recorded streams of real providers, through the real daemon, graded by compare.py."""

import asyncio
import importlib.util
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from tests.fakes.clients import ask, openai_client
from tests.fakes.daemon import Editor, running
from tests.fakes.replay import bytes_of, recorded

pytestmark = [pytest.mark.shared, pytest.mark.slow]
Grade: TypeAlias = Callable[..., Awaitable[None]]
PROVIDERS = ("mistral", "groq", "openrouter")
TRANSPARENT = (
    "split=7,onebyte", "utf8split", "crlfsplit", "eventsplit", "oneshot,delay=1",
    "ttfb=50", "crlf", "cr", "lf", "comments", "pings", "eventlines", "idlines",
    "nospace", "bom", "multiline", "wrongct", "gzip", "close", "nodone", "lastnonl",
    "afterdone", "keepopen=2000", "usagechunk", "emptychunks", "nullfields", "argsplit",
    "argmerge", "idrepeat", "idrepeat=name", "dupfinal", "split=3:5,cr,multiline",
)  # fmt: skip
REPAIRED = (
    "finishstop", "noindex", "index1", "index0", "noid", "argobject", "argcomma",
    "argfence", "argpy", "argnl", "argstr", "argprefix",
)  # fmt: skip
BROKEN = (
    "cut", "cut=0.05", "cut=0.95", "eof", "eof=0.95", "eofraw", "errevent",
    "errevent=0", "errfinish", "errevline", "badjson", "status=429", "status=500",
    "status=401", "status=400", "status=503x9", "html200", "html502", "json200",
    "empty200", "doneonly", "refuse",
)  # fmt: skip
DROPPED = ("argtrunc", "argtrunc=5")
SILENT = ("stall", "stall=0")


def in_parts(faults: tuple[str, ...], most: int = 6) -> list[tuple[str, ...]]:
    """Share faults out among tests, which run in parallel."""
    return [faults[n : n + most] for n in range(0, len(faults), most)]


@pytest.fixture
def chosen(shared: Path, tmp_path: Path) -> Callable[[str], str]:
    """Manifests of the streams of three providers; for a fault, the path of one.

    A fault meets a ninth of the streams, the next one another ninth.
    """
    rows = [
        row for row in recorded(shared, "chat_stream") if row["provider"] in PROVIDERS
    ]

    def some(fault: str) -> str:
        number = (*TRANSPARENT, *REPAIRED, *BROKEN, *DROPPED, *SILENT).index(fault)
        manifest = tmp_path / f"{number}.jsonl"
        ninth = rows[number % 9 :: 9]
        manifest.write_text("".join(json.dumps(row) + "\n" for row in ninth), "utf-8")
        return str(manifest)

    return some


@pytest.fixture(scope="module")
def compare(shared: Path) -> ModuleType:
    """compare.py as a module: a process for each run would cost as much as the run."""
    path = shared / "streams" / "compare.py"
    spec = importlib.util.spec_from_file_location("compare", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def grade(compare: ModuleType, capsys: pytest.CaptureFixture[str]) -> Grade:
    """Compare answers of a daemon with what was recorded."""

    async def run(editor: Editor, **options: Any) -> None:
        chosen = {
            "byok": editor.daemon.url,
            "token": editor.token,
            "upstream": "replay",
            "manifest": compare.HERE + "/manifest.jsonl",
            "kind": "chat_stream",
            "faults": "",
            "expect_error": False,
            "replay": "",
            "only": "",
            "provider": "",
            "parallel": 8,
            "at_least": 1.0,
            "verbose": True,
            **options,
        }
        code = await compare.run(SimpleNamespace(**chosen))
        assert code == 0, f"{options}: {capsys.readouterr().out[-4000:]}"

    return run


async def test_replay_of_every_recorded_stream_is_exact(
    replay_editor: Editor, replay: str, grade: Grade
) -> None:
    # One is a printed call of an offered tool, which byok makes of its text.
    await grade(replay_editor, replay=replay, at_least=494 / 495)


@pytest.mark.parametrize("some", in_parts((*TRANSPARENT, *REPAIRED)), ids=" ".join)
async def test_replay_with_transparent_and_repairable_faults_is_unchanged(
    replay_editor: Editor,
    grade: Grade,
    chosen: Callable[[str], str],
    some: tuple[str, ...],
) -> None:
    for faults in some:
        await grade(replay_editor, manifest=chosen(faults), faults=faults)


@pytest.mark.parametrize("some", in_parts((*BROKEN, *DROPPED)), ids=" ".join)
async def test_replay_of_broken_streams_ends_with_an_error(
    replay_editor: Editor,
    grade: Grade,
    chosen: Callable[[str], str],
    some: tuple[str, ...],
) -> None:
    for faults in some:
        await grade(
            replay_editor,
            manifest=chosen(faults),
            faults=faults,
            expect_error=True,
            parallel=60,
        )


async def test_replay_of_streams_that_fall_silent_ends_with_an_error(
    hasty_editor: Editor, grade: Grade, chosen: Callable[[str], str]
) -> None:
    for faults in SILENT:
        await grade(
            hasty_editor,
            manifest=chosen(faults),
            faults=faults,
            expect_error=True,
            parallel=60,
        )


def items_with_tools(shared: Path) -> list[dict[str, Any]]:
    """The recorded streams of the three providers whose calls all have arguments."""
    return [
        row
        for row in recorded(shared, "chat_stream")
        if row["provider"] in PROVIDERS
        and (calls := (row["expected"] or {}).get("tool_calls"))
        and all(len(call.get("arguments_raw") or "") > 5 for call in calls)
    ]


@pytest.mark.parametrize("fault", DROPPED)
async def test_replay_of_truncated_arguments_gives_no_tool_call(
    replay_editor: Editor, shared: Path, fault: str
) -> None:
    items = items_with_tools(shared)
    assert len(items) > 20
    for item in items:
        reply = await replay_editor.chat(model=f"byok:replay:{item['id']}@{fault}")
        assert reply.tool_uses == [], item["id"]


async def test_replay_of_doubled_arguments_gives_them_once(
    replay_editor: Editor, shared: Path
) -> None:
    async def calls(model: str) -> list[tuple[str, Any]]:
        uses = (await replay_editor.chat(model=model)).tool_uses
        return [(use["tool_name"], json.loads(use["input_json"])) for use in uses]

    for item in items_with_tools(shared):
        model = f"byok:replay:{item['id']}"
        assert await calls(f"{model}@argdouble") == await calls(model), item["id"]


async def test_replay_is_read_by_the_sdk(replay_editor: Editor, shared: Path) -> None:
    rows = (row for row in recorded(shared, "chat_stream") if row["expected"])
    item = next(row for row in rows if not row["expected"]["tool_calls"])
    settings = {
        "upstreams": {"replay": replay_editor.services.settings.upstreams["replay"]},
        "routing": {"default": f"byok:replay:{item['id']}"},
    }
    async with running(settings) as other:
        reply = await ask(other, "Go on.")
    assert reply == item["expected"]["text"]


# OpenAI's own client reads them through byok as it reads them directly.

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
