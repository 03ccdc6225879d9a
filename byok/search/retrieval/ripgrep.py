"""Search without an index: ripgrep for each word of a question, files ranked.

The arguments are fixed, so that neither a word nor a file can pass an option. Files are
ranked by the rarity of the words that they contain, and by their kind. This is much
weaker than the index, and answers while there is none.
"""

import asyncio
import base64
import binascii
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from byok.core.code_query import DEFAULT_LENGTH
from byok.core.platform.programs import clean_environment, kill_group
from byok.search.index.files.ignore import Rules
from byok.search.index.files.languages import kind_of
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.files.text import is_notebook, lines_in, sources_alone
from byok.search.index.parse.tokens import IDEOGRAPHS, expand, stem, words
from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import MAX_BYTES, Kind, SkipReason, Span
from byok.search.retrieval.excerpts import find_texts
from byok.search.retrieval.foreign.words import normalize, read_foreign
from byok.search.retrieval.pack import MAX_LINE_CHARS, PackedFile, pack
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, parse_query
from byok.search.retrieval.rank import NO_KINDS, RankedFile, Reasons, kind_factor
from byok.search.retrieval.render import render

# Rank files by the lines that a text search found.
#
# A file scores by the rarity of the words it contains, times the factor of its kind.


LINES_A_FILE = 40
_FILES = 100
# The share of files assumed to contain a word whose search was stopped early.
_COMMON = 0.5
_SATURATION = 1.5
_CONTEXT = 2
_USUAL_LINE = 40
_LONGEST_GROUP = 30
# Of matches inside longer words, such as `item` in `items`: of each, and of all.
_PART_WORTH, _PARTS_WORTH = 0.2, 0.6


class LineMatch(NamedTuple):
    """A matching line, cut at 400 characters; `number` counts from 0."""

    number: int
    text: str


class FileMatches(NamedTuple):
    """A file with matching lines, in order."""

    path: str
    kind: Kind
    score: float
    lines: tuple[LineMatch, ...]


@dataclass
class MatchCollector:
    """Collects matching lines while a search runs.

    Attributes:
        lines: text by path and line number, at most 40 lines a file.
        counts: number of matching lines by word and path; those where the word is only
            a part of longer ones count less.
        searched: number of files searched, as far as known.
        common: words whose search was stopped early because they match everywhere.
    """

    lines: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    searched: int = 0
    common: set[str] = field(default_factory=set)

    def add(self, token: str, path: str, number: int, text: str) -> None:
        """Add a line that contains a word."""
        lines = self.lines[path]
        if number in lines or len(lines) < LINES_A_FILE:
            lines[number] = text[:MAX_LINE_CHARS]
        counts = self.counts.setdefault(token, {})
        before = counts.get(path, 0.0)
        if _whole_word(token).search(text):
            counts[path] = before + 1.0
        else:
            counts[path] = max(before, min(before + _PART_WORTH, _PARTS_WORTH))


@lru_cache(maxsize=64)
def _whole_word(token: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(token)}(?!\w)", re.IGNORECASE)


def rank_by_rarity(
    found: MatchCollector, kinds: Mapping[Kind, float] = NO_KINDS
) -> tuple[FileMatches, ...]:
    """Rank files by the rarity of their words, times the factor of the kind."""
    total = max([found.searched, *map(len, found.counts.values())], default=0)
    scores: dict[str, float] = defaultdict(float)
    for token, counts in found.counts.items():
        files = _COMMON * total if token in found.common else len(counts)
        rarity = math.log(1 + total / max(files, 1))
        for path, count in counts.items():
            scores[path] += rarity * count / (count + _SATURATION)
    ranked = []
    for path, score in scores.items():
        kind = kind_of(path)
        lines = sorted(LineMatch(n, text) for n, text in found.lines[path].items())
        if lines:
            score *= kind_factor(kind, kinds)
            ranked.append(FileMatches(path, kind, score, tuple(lines)))
    ranked.sort(key=lambda file: (-file.score, file.path))
    return tuple(ranked[:_FILES])


def to_ranked(
    files: Iterable[FileMatches], prefix: str = ""
) -> tuple[list[RankedFile], dict[int, list[Span]]]:
    """Return matches as ranked files and their spans, ready for `pack`.

    Lines near each other form one chunk, whose score is the number of matches. The
    position of a file stands for its blob id.
    """
    ranked: list[RankedFile] = []
    spans: dict[int, list[Span]] = {}
    for place, file in enumerate(files):
        groups = _groups(file.lines)
        spans[place] = [span for span, _ in groups]
        chunks = [ChunkScore(place, n, worth) for n, (_, worth) in enumerate(groups)]
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        factor = kind_factor(file.kind)
        why = Reasons(file.score / factor, 0.0, 0.0, factor, 0.0)
        ranked.append(
            RankedFile(
                place, prefix + file.path, file.kind, file.score, tuple(chunks), why
            )
        )
    return ranked, spans


def _groups(lines: Iterable[LineMatch]) -> list[tuple[Span, int]]:
    """Join lines whose context overlaps; give each group and its number of matches."""
    found: list[tuple[Span, int]] = []
    for number, text in lines:
        first, last = max(0, number - _CONTEXT), number + _CONTEXT
        chars = len(text) + 2 * _CONTEXT * _USUAL_LINE
        before, worth = found[-1] if found else (Span(0, -_LONGEST_GROUP, 0), 0)
        if first <= before.last + 1 and last - before.first < _LONGEST_GROUP:
            found[-1] = (Span(before.first, last, before.chars + chars), worth + 1)
        else:
            found.append((Span(first, last, chars), 1))
    return found


# Choose the words of a question that are searched without an index.


ASK_IN_ENGLISH = (
    "Most code is written with English words: ask again in English, with any"
    " identifiers that you know."
)
_WORD = re.compile(
    r"[A-Za-z_\u00c0-\u1fff][A-Za-z0-9_\u00c0-\u1fff]{2,}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"  # kana, han, hangul
)
_LONGEST_WORD = 4  # of kana, han and hangul; longer ones are phrases
_LONGEST_QUERY = 10_000
_LONGEST_TOKEN = 64
_TOKENS = 8
_SPACED_WORDS, _OWN_WORDS = 4, 2  # of a question with words of another language


def search_words(text: str) -> list[str]:
    """Return what to search for: at most eight words, else the start of the text.

    Task words come last, and stop words are used only if there is nothing else. Of
    Chinese, Japanese and Korean, which have no spaces, a run of more than four
    characters is searched by pairs of characters. For words of other languages the
    likeliest English words are searched too, before words without spaces.
    """
    text = normalize(text, _LONGEST_QUERY)
    foreign = read_foreign(words(text))
    said: dict[str, str] = {}
    for found in _WORD.findall(text):
        whole = found[0] < IDEOGRAPHS or len(found) <= _LONGEST_WORD
        for word in (found[:_LONGEST_TOKEN],) if whole else expand(found):
            said.setdefault(word.lower(), word)
    telling = [
        word
        for low, word in said.items()
        if stem(low) not in STOP_WORDS and low not in foreign.idle
    ]
    telling.sort(key=lambda word: stem(word.lower()) in TASK_WORDS)
    if foreign.english:
        telling = _with_english(telling, foreign.english)
    if said:
        return (telling or list(said.values()))[:_TOKENS]
    pieces = (piece.strip() for piece in re.split(r"[\x00\r\n]+", text))
    first = next(filter(None, pieces), "")[:_LONGEST_TOKEN]
    return [first] if first else []


def _with_english(said: list[str], english: Mapping[str, float]) -> list[str]:
    """Put English words after at most four words with spaces and before the rest."""
    spaced = [word for word in said if word[0] < IDEOGRAPHS][:_SPACED_WORDS]
    rest = [word for word in said if word not in spaced]
    known = {word.lower() for word in spaced}
    # A word of two letters, such as "id", is in every file.
    fresh = [word for word in english if word not in known and len(word) > 2]
    fresh.sort(key=lambda word: (stem(word) in TASK_WORDS, -english[word]))
    room = _TOKENS - len(spaced) - min(len(rest), _OWN_WORDS)
    return [*spaced, *fresh[:room], *rest]


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


class TextSearchResult(Struct, frozen=True):
    """The files found, best first; `notes` say what was not searched, and why.

    `words` are those that were searched for.
    """

    files: tuple[FileMatches, ...] = ()
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Ripgrep(Struct, eq=False):
    """Runs ripgrep; `find` returns its path, None if it is not installed.

    It is asked at each search, because which folders may hold programs changes with the
    workspaces.
    """

    find: Callable[[], str | None]
    token_seconds: float = 10.0
    total_seconds: float = 20.0
    most_bytes: int = _MOST_BYTES

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
        program = await asyncio.to_thread(self.find)
        if program is None:
            return TextSearchResult(notes=(UNAVAILABLE,))
        found = MatchCollector()
        troubles: dict[str, None] = {}
        loop = asyncio.get_running_loop()
        end = loop.time() + self.total_seconds
        words = await asyncio.to_thread(search_words, text)
        for token in words:
            seconds = min(self.token_seconds, end - loop.time())
            if seconds <= 0:
                troubles[_timeout_note(self.total_seconds)] = None
                break
            run = _Run(program, token, found, allowed)
            if trouble := await self._run(run, root, seconds):
                troubles[trouble] = None
            if trouble in (UNAVAILABLE, _GONE):
                break
        if not found.counts and not text.isascii():
            troubles[ASK_IN_ENGLISH] = None
        query = await asyncio.to_thread(parse_query, text)
        ranked = rank_by_rarity(found, query.kinds)
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
        room = self.most_bytes
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


class _Run(Struct, eq=False):
    """Reads the output of one run of `rg --json`; skips lines that are no message."""

    program: str
    token: str
    found: MatchCollector
    allowed: Callable[[str], bool]
    understood: bool = False
    _known: dict[str, bool] = {}
    __repr__ = object.__repr__  # it shows nothing of what it holds

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
            self._known[path] = self.allowed(path)
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


# Answer with ripgrep where another process has the index open.


_WHY = (
    "Another byok process has the index open, so this is a plain text search; ask "
    "again later for better results.\n"
)


async def answer_without_index(
    ripgrep: Ripgrep,
    rules_of: Callable[[Path], Rules],
    question: str,
    roots: Sequence[Path],
) -> str:
    """Return the answer to a question about these folders, by their ignore rules."""
    share = (DEFAULT_LENGTH - len(_WHY)) // len(roots)
    answers = [
        await ripgrep.answer(
            root,
            question,
            partial(_is_open, rules_of(root)),
            share,
            prefix=f"{root.name}/" if len(roots) > 1 else "",
        )
        for root in roots
    ]
    return "\n".join([*answers, _WHY])[:DEFAULT_LENGTH]


def _is_open(rules: Rules, path: str) -> bool:
    return rules.reason(path) is None
