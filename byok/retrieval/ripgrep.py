"""Search without an index: run ripgrep once for each word of a question.

The arguments are fixed, so that neither a word nor a file can pass an option. Files are
ranked by the rarity of the words that they contain, and by their kind. This is much
weaker than the index, and answers while there is none.
"""

import asyncio
import base64
import binascii
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from byok.index.files.notebooks import is_notebook, sources_alone
from byok.index.files.reading import Folder, Unreadable
from byok.index.files.text import lines_in
from byok.index.types import SkipReason
from byok.index.versions import MAX_BYTES
from byok.platform.programs import clean_environment, kill_group
from byok.retrieval.excerpts import find_texts
from byok.retrieval.matches import (
    LINES_A_FILE,
    FileMatches,
    MatchCollector,
    rank_by_rarity,
    to_ranked,
)
from byok.retrieval.pack import PackedFile, pack
from byok.retrieval.query import parse_query
from byok.retrieval.render import render
from byok.retrieval.search_words import ASK_IN_ENGLISH, search_words

_BLOCK = 2**16
_LAST_WORDS = 2.0
_MOST_BYTES = 2 * 2**20
_ARGUMENTS = (
    *("--no-config", "--json", "--fixed-strings", "--ignore-case", "--no-messages"),
    *("--hidden", "--glob=!.git", "--no-require-git", "--max-filesize=1M"),
    "--no-ignore-parent",  # `allowed` applies the rules that lie outside
    *(f"--max-count={LINES_A_FILE}", "--threads=2"),
)

UNAVAILABLE = (
    "rg (ripgrep) is not available, so files could not be searched without the index:"
    " install ripgrep (for example `apt install ripgrep` or `brew install ripgrep`)"
    " and restart byok."
)
_GONE = "The folder of the workspace is gone."


@dataclass(frozen=True, slots=True)
class TextSearchResult:
    """The files found, best first; `notes` say what was not searched, and why.

    `words` are those that were searched for.
    """

    files: tuple[FileMatches, ...] = ()
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Ripgrep:
    """Runs ripgrep; `find` returns its path, None if it is not installed.

    It is asked at each search, because which folders may hold programs changes with the
    workspaces.
    """

    def __init__(
        self,
        find: Callable[[], str | None],
        *,
        token_seconds: float = 10.0,
        total_seconds: float = 20.0,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._find = find
        self._token_seconds = token_seconds
        self._total_seconds = total_seconds
        self._most_bytes = most_bytes

    async def answer(
        self,
        root: Path,
        text: str,
        allowed: Callable[[str], bool],
        limit: int,
        *,
        prefix: str = "",
    ) -> str:
        """Search like `search`, and write an answer of at most `limit` characters.

        Paths are written with the prefix.
        """
        found = await self.search(root, text, allowed)
        return await asyncio.to_thread(_write_answer, root, found, limit, prefix)

    async def search(
        self, root: Path, text: str, allowed: Callable[[str], bool]
    ) -> TextSearchResult:
        """Search the files below `root` for the words of a question.

        `allowed` tells for a path whether its lines may be shown. A failure does not
        raise: it becomes a note beside what was found before. Cancelling kills the
        process.
        """
        program = await asyncio.to_thread(self._find)
        if program is None:
            return TextSearchResult(notes=(UNAVAILABLE,))
        found = MatchCollector()
        troubles: dict[str, None] = {}
        loop = asyncio.get_running_loop()
        end = loop.time() + self._total_seconds
        words = await asyncio.to_thread(search_words, text)
        for token in words:
            seconds = min(self._token_seconds, end - loop.time())
            if seconds <= 0:
                troubles[_timeout_note(self._total_seconds)] = None
                break
            run = _Run(program, token, found, allowed)
            if trouble := await self._run(run, root, seconds):
                troubles[trouble] = None
            if trouble in (UNAVAILABLE, _GONE):
                break
        if not found.counts and not text.isascii():
            troubles[ASK_IN_ENGLISH] = None
        query = await asyncio.to_thread(parse_query, text)
        ranked = rank_by_rarity(found, query.names)
        return TextSearchResult(ranked, tuple(troubles), tuple(words))

    async def _run(self, run: "_Run", root: Path, seconds: float) -> str | None:
        """Search for one word; return a note if something went wrong."""
        try:
            process = await _start(run, root)
        except (OSError, ValueError):
            there = await asyncio.to_thread(root.is_dir)
            return UNAVAILABLE if there else _GONE
        try:
            async with asyncio.timeout(seconds):
                whole = await self._read(process, run)
                if whole:
                    await process.wait()
        except TimeoutError:
            return _timeout_note(seconds)
        finally:
            await _kill(process)
        if not whole:
            run.found.common.add(run.token)
            return f"{run.token!r} is too common: only some files were searched for it."
        if process.returncode in (0, 1) or run.understood:
            return None
        return f"rg failed (exit {process.returncode}), so its results are incomplete."

    async def _read(self, process: asyncio.subprocess.Process, run: "_Run") -> bool:
        """Feed the output to `run`; False if it was cut at the limit."""
        assert process.stdout is not None  # noqa: S101 - asked for above
        room = self._most_bytes
        rest = b""
        while block := await process.stdout.read(_BLOCK):
            room -= len(block)
            if room < 0:
                return False
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                run.feed(line)
        run.feed(rest)
        return True


async def _start(run: "_Run", root: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(run.program, *_ARGUMENTS, "-e", run.token, "--", "./"),
        cwd=root,
        env=clean_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process group if it still runs, and wait for its end."""
    if process.returncode is None:
        kill_group(process.pid)
    assert process.stdout is not None  # noqa: S101 - asked for above
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS):
            while await process.stdout.read(_BLOCK):  # it is closed only at its end
                pass
            await process.wait()


def _write_answer(root: Path, found: TextSearchResult, limit: int, prefix: str) -> str:
    ranked, spans = to_ranked(found.files, prefix)
    packed = pack(ranked, spans.__getitem__, limit)

    def lines_of(file: PackedFile) -> list[str] | None:
        path = found.files[file.blob_id].path
        try:
            with Folder(root) as folder:
                content, _ = folder.read(path, MAX_BYTES)
        except Unreadable:
            return None
        lines = lines_in(content, path)
        if isinstance(lines, SkipReason):
            return None
        return sources_alone(lines) if is_notebook(path) else lines

    find = find_texts(found.words)
    return render(packed, lines_of, limit, found.notes, find=find).text


def _timeout_note(seconds: float) -> str:
    return f"rg was stopped after {seconds:.0f} s, so its results are incomplete."


class _Run:
    """Reads the output of one run of `rg --json`; skips lines that are no message."""

    def __init__(
        self,
        program: str,
        token: str,
        found: MatchCollector,
        allowed: Callable[[str], bool],
    ) -> None:
        self.program = program
        self.token = token
        self.found = found
        self.understood = False
        self._allowed = allowed
        self._known: dict[str, bool] = {}

    def feed(self, line: bytes) -> None:
        try:
            message = orjson.loads(line)
            data = message["data"]
            if message["type"] == "match":
                self._match(_text(data["path"]), data)
            elif message["type"] == "summary":
                searches = data["stats"]["searches"]
                self.found.searched = max(self.found.searched, int(searches))
                self.understood = True
        except (ValueError, TypeError, KeyError, AttributeError):
            return

    def _match(self, path: str, data: dict[str, Any]) -> None:
        path = path.removeprefix("./")
        if path not in self._known:
            self._known[path] = self._allowed(path)
        if not self._known[path]:
            return
        number = int(data["line_number"]) - 1
        text = _text(data["lines"]).rstrip("\r\n")
        if number >= 0:
            self.found.add(self.token, path, number, text)
        self.understood = True


def _text(value: dict[str, str]) -> str:
    """Decode a text of rg, which is base64 where it is not UTF-8."""
    if "text" in value:
        return value["text"]
    try:
        return os.fsdecode(base64.b64decode(value["bytes"]))
    except binascii.Error as error:
        raise ValueError from error
