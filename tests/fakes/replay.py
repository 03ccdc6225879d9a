"""The server that replays recorded streams, in a process of its own."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.fakes.patience import PATIENCE
from tests.fakes.ports import free_port


@contextmanager
def replaying(shared: Path) -> Iterator[str]:
    """Start the replay server on a free port; give its URL."""
    port = free_port()
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
        process.wait(PATIENCE)


async def answering(url: str) -> None:
    """Wait until a server answers."""
    async with aiohttp.ClientSession() as http, asyncio.timeout(PATIENCE):
        while True:
            try:
                async with http.get(url):
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


def recorded(shared: Path, kind: str) -> list[dict[str, Any]]:
    """Return the lines of the manifest about one kind of item."""
    lines = (shared / "streams" / "manifest.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [row for row in rows if row["kind"] == kind]


def bytes_of(shared: Path, item: dict[str, Any]) -> bytes:
    """Return the body that was recorded."""
    return (shared / "streams" / str(item["file"])).read_bytes()
