"""Recorded streams of real providers, through the real daemon, graded by compare.py."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemon import Editor, running
from tests.fakes.replay import recorded
from tests.fakes.sdk import ask

pytestmark = pytest.mark.slow
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
    "cut", "cut=0.05", "cut=0.95", "eof", "eof=0.95", "eofraw", "stall", "stall=0",
    "errevent", "errevent=0", "errfinish", "errevline", "badjson", "status=429",
    "status=500", "status=401", "status=400", "status=503x9", "html200", "html502",
    "json200", "empty200", "doneonly", "refuse",
)  # fmt: skip
DROPPED = ("argtrunc", "argtrunc=5")


def in_parts(faults: tuple[str, ...], most: int = 6) -> list[tuple[str, ...]]:
    """Share faults out among tests, which run in parallel."""
    return [faults[n : n + most] for n in range(0, len(faults), most)]


@pytest.fixture
def chosen(shared: Path, tmp_path: Path) -> str:
    """A manifest of the streams of three providers alone; its path."""
    rows = [
        row for row in recorded(shared, "chat_stream") if row["provider"] in PROVIDERS
    ]
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(manifest)


async def grade(editor: Editor, shared: Path, *options: str) -> tuple[int, str]:
    """Run compare.py; return its exit code and what it printed."""
    command = [
        sys.executable,
        str(shared / "streams" / "compare.py"),
        *("--byok", editor.daemon.url, "--token", editor.token),
        *("--upstream", "replay", "-v", *options),
    ]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=300
    )
    return done.returncode, (done.stdout + done.stderr)[-4000:]


async def test_every_recorded_stream_is_exact(
    replay_editor: Editor, shared: Path, replay: str
) -> None:
    code, printed = await grade(replay_editor, shared, "--replay", replay)
    assert code == 0, printed


@pytest.mark.parametrize("some", in_parts((*TRANSPARENT, *REPAIRED)), ids=" ".join)
async def test_transparent_and_repairable_faults_change_nothing(
    replay_editor: Editor, shared: Path, chosen: str, some: tuple[str, ...]
) -> None:
    for faults in some:
        code, printed = await grade(
            replay_editor, shared, "--manifest", chosen, "--faults", faults
        )
        assert code == 0, f"{faults}: {printed}"


@pytest.mark.parametrize("some", in_parts((*BROKEN, *DROPPED)), ids=" ".join)
async def test_broken_streams_end_honestly(
    hasty_editor: Editor, shared: Path, chosen: str, some: tuple[str, ...]
) -> None:
    for faults in some:
        code, printed = await grade(
            hasty_editor, shared, "--manifest", chosen, "--faults", faults,
            "--expect-error", "--parallel", "60",
        )  # fmt: skip
        assert code == 0, f"{faults}: {printed}"


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
async def test_cut_arguments_never_become_a_call(
    replay_editor: Editor, shared: Path, fault: str
) -> None:
    items = items_with_tools(shared)
    assert len(items) > 20
    for item in items:
        reply = await replay_editor.chat(model=f"byok:replay:{item['id']}@{fault}")
        assert reply.tool_uses == [], item["id"]


async def test_doubled_arguments_are_read_once(
    replay_editor: Editor, shared: Path
) -> None:
    async def calls(model: str) -> list[tuple[str, Any]]:
        uses = (await replay_editor.chat(model=model)).tool_uses
        return [(use["tool_name"], json.loads(use["input_json"])) for use in uses]

    for item in items_with_tools(shared):
        model = f"byok:replay:{item['id']}"
        assert await calls(f"{model}@argdouble") == await calls(model), item["id"]


async def test_the_sdk_reads_a_recorded_answer(
    replay_editor: Editor, shared: Path
) -> None:
    rows = (row for row in recorded(shared, "chat_stream") if row["expected"])
    item = next(row for row in rows if not row["expected"]["tool_calls"])
    settings = {
        "upstreams": {"replay": replay_editor.services.settings.upstreams["replay"]},
        "routing": {"default": f"byok:replay:{item['id']}"},
    }
    async with running(settings) as other:
        reply = await ask(other, "Go on.")
    assert reply == item["expected"]["text"]
