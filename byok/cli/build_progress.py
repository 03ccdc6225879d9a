"""Wait until folders are indexed, with a progress bar on a terminal."""

import asyncio
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from byok.cli.daemon_client.client import LocalClient
from byok.cli.output import count_noun
from byok.core.chat import Json
from byok.core.errors import IndexFailed
from byok.core.routing import Service

_POLL_SECONDS = 0.2
_DONE = ("complete", "workspace-too-large", "folder-gone")
_LEFT_OUT = {
    "ignored": "ignored",
    "secret": "private",
    "too_large": "too large",
    "not_accessible": "not readable",
    "not_plain_files": "not regular files",
    "encoding_errors": "with undecodable names",
}


@dataclass(frozen=True, slots=True)
class Built:
    """The status of workspaces after waiting for them, and the seconds it took."""

    workspaces: Sequence[dict[str, Any]]
    seconds: float


async def until_built(
    client: LocalClient, roots: Collection[str] | None = None
) -> Built:
    """Wait until the given workspaces, or all of them, are indexed.

    Raises:
        IndexFailed: the index cannot be written.
    """
    began = time.monotonic()
    with _bar() as show:
        while True:
            answer = await _status(client)
            spaces = [
                space
                for space in answer["workspaces"]
                if roots is None or space["root"] in roots
            ]
            seconds = time.monotonic() - began
            if all(map(is_settled, spaces)):
                return Built(spaces, seconds)
            show(spaces, seconds)
            await asyncio.sleep(_POLL_SECONDS)


async def until_rebuilt(client: LocalClient, files: int) -> None:
    """Wait until no file is left to be indexed; there were `files` at the start.

    Raises:
        IndexFailed: the index cannot be written.
    """
    began = time.monotonic()
    with _bar() as show:
        while (answer := await _status(client))["waiting"]:
            done = max(0, files - answer["waiting"])
            share = 100.0 * done / max(1, files)
            whole = {"phase": "indexing", "percentage": share}
            counts = {"files_processed": done, "files_tracked": files}
            show([{**whole, **counts}], time.monotonic() - began)
            await asyncio.sleep(_POLL_SECONDS)


async def _status(client: LocalClient) -> Json:
    answer = await client.ask(Service.INDEX_STATUS, {})
    if answer["state"] == "error":
        raise IndexFailed(f"Indexing failed: {answer['error']}")
    return answer


def is_settled(space: dict[str, Any]) -> bool:
    """Tell whether a workspace is complete or failed, so that waiting is useless."""
    failed = space["phase"] == "scanning" and space["note"]
    return space["phase"] in _DONE or bool(failed)


def describe(space: dict[str, Any]) -> str:
    """Describe the state of a workspace in one line."""
    root, count = space["root"], space["files_tracked"]
    if space["phase"] == "workspace-too-large":
        return (
            f"{root}: {space['note'] or 'too many files'}. It is not indexed; choose a "
            "folder inside it, exclude files with .augmentignore, or raise "
            "context.max_files."
        )
    if space["phase"] != "complete":
        return f"{root}: {space['note'] or space['phase']}"
    left = [
        f"{space['counters'][name]:,} {words}"
        for name, words in _LEFT_OUT.items()
        if space["counters"].get(name)
    ]
    text = f"{root}: {count_noun(count, 'file')} indexed"
    return f"{text}; excluded: {', '.join(left)}" if left else text


@contextmanager
def _bar() -> Iterator[Any]:
    """Give a function that shows progress on stderr, or nothing in a pipe.

    The bar appears with the first progress; for a complete index it never does.
    """
    if not sys.stderr.isatty():
        yield lambda spaces, seconds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %  {task.fields[files]}"),
    )
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("scanning", total=100, files="")

    def show(spaces: Sequence[dict[str, Any]], seconds: float) -> None:
        done, total, share = _sums(spaces)
        scanning = any(space["phase"] == "scanning" for space in spaces)
        rate = done / seconds if seconds else 0
        progress.update(
            task,
            description="scanning" if scanning else "indexing",
            completed=share,
            files=f"{done:,} of {total:,} files, {rate:,.0f}/s",
        )
        progress.start()

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()


def _sums(spaces: Sequence[dict[str, Any]]) -> tuple[int, int, float]:
    """Return the files done, the files in total, and the percentage of the work."""
    done = sum(space["files_processed"] for space in spaces)
    total = sum(space["files_tracked"] for space in spaces)
    weights = [max(1, space["files_tracked"]) for space in spaces]
    shares = [space["percentage"] for space in spaces]
    if not weights:
        return done, total, 100.0
    joined = sum(w * s for w, s in zip(weights, shares, strict=True)) / sum(weights)
    return done, total, joined
