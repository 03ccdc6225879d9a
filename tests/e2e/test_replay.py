"""Recorded streams of real providers, through the real daemon, graded by compare.py."""

import importlib.util
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from tests.fakes.clients import ask
from tests.fakes.daemon import Editor, running
from tests.fakes.replay import recorded

pytestmark = pytest.mark.slow
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
