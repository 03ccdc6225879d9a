"""Recorded streams of real providers, through the real daemon, graded by compare.py."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.test_sdk import ask
from tests.fakes.daemon import Editor, running

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
    "argfence", "argpy", "argnl", "argstr",
)  # fmt: skip
BROKEN = (
    "cut", "cut=0.05", "cut=0.95", "eof", "eof=0.95", "eofraw", "stall", "stall=0",
    "errevent", "errevent=0", "errfinish", "errevline", "badjson", "status=429",
    "status=500", "status=401", "status=400", "status=503x9", "html200", "html502",
    "json200", "empty200", "doneonly", "refuse",
)  # fmt: skip
DROPPED = ("argtrunc", "argtrunc=5", "argdouble")


@pytest.fixture(scope="module")
def replay(shared: Path) -> Iterator[str]:
    """The replay server in a process of its own; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = shared / "streams" / "replay.py"
    process = subprocess.Popen(
        [sys.executable, str(script), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()  # it would wait for the streams it stalls
        process.wait(10)


@pytest.fixture
async def editor(replay: str) -> AsyncIterator[Editor]:
    """A daemon whose upstream is the replay server, with a short limit of silence."""
    await _answering(f"{replay}/_faults")
    upstream = {"base_url": f"{replay}/v1", "timeout": 1}
    async with running({"upstreams": {"replay": upstream}}) as editor:
        yield editor


async def _answering(url: str) -> None:
    """Wait until a server answers, at most 20 s."""
    async with aiohttp.ClientSession() as http, asyncio.timeout(20):
        while True:
            try:
                async with http.get(url):
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


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
    editor: Editor, shared: Path, replay: str
) -> None:
    code, printed = await grade(editor, shared, "--replay", replay)
    assert code == 0, printed


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_transparent_and_repairable_faults_change_nothing(
    editor: Editor, shared: Path, provider: str
) -> None:
    for faults in (*TRANSPARENT, *REPAIRED):
        code, printed = await grade(
            editor, shared, "--provider", provider, "--faults", faults
        )
        assert code == 0, f"{faults}: {printed}"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_broken_streams_end_honestly(
    editor: Editor, shared: Path, provider: str
) -> None:
    for faults in (*BROKEN, *DROPPED):
        code, printed = await grade(
            editor, shared, "--provider", provider, "--faults", faults,
            "--expect-error", "--parallel", "60",
        )  # fmt: skip
        assert code == 0, f"{faults}: {printed}"


def recorded(shared: Path) -> list[dict[str, Any]]:
    """The recorded chat streams whose outcome is known."""
    lines = (shared / "streams" / "manifest.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [r for r in rows if r["kind"] == "chat_stream" and r.get("expected")]


def items_with_tools(shared: Path) -> list[dict[str, Any]]:
    """The recorded streams of the three providers whose calls all have arguments."""
    return [
        row
        for row in recorded(shared)
        if row["provider"] in PROVIDERS
        and (calls := row["expected"].get("tool_calls"))
        and all(len(call.get("arguments_raw") or "") > 5 for call in calls)
    ]


@pytest.mark.parametrize("fault", DROPPED)
async def test_cut_or_doubled_arguments_never_become_a_call(
    editor: Editor, shared: Path, fault: str
) -> None:
    items = items_with_tools(shared)
    assert len(items) > 20
    for item in items:
        reply = await editor.chat(model=f"byok:replay:{item['id']}@{fault}")
        assert reply.tool_uses == [], item["id"]


async def test_the_sdk_reads_a_recorded_answer(editor: Editor, shared: Path) -> None:
    item = next(row for row in recorded(shared) if not row["expected"]["tool_calls"])
    settings = {
        "upstreams": {"replay": editor.services.settings.upstreams["replay"]},
        "routing": {"default": f"byok:replay:{item['id']}"},
    }
    async with running(settings) as other:
        reply = await ask(other, "Go on.")
    assert reply == item["expected"]["text"]
