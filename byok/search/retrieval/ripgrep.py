"""Search without an index: run ripgrep for each word of a question, and rank the files.

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
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

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

MAX_LINES_OF_FILE = 40
_MAX_FILES = 100
# The share of files assumed to contain a word whose search was stopped early.
_COMMON_WORD_SHARE = 0.5
_SATURATION = 1.5
_CONTEXT_LINES = 2
_USUAL_LINE_CHARS = 40  # assumed for the lines around a match
_MAX_GROUP_LINES = 30
# The weight of a match inside a longer word, such as `item` in `items`; the maximum for
# all such matches of a word in a file.
_PARTIAL_MATCH_WEIGHT, _MAX_PARTIAL_WEIGHT = 0.2, 0.6
ASK_IN_ENGLISH = (
    "Most code is written with English words: ask again in English, with any"
    " identifiers that you know."
)
_SEARCH_WORD = re.compile(
    r"[A-Za-z_\u00c0-\u1fff][A-Za-z0-9_\u00c0-\u1fff]{2,}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"  # kana, han, hangul
)
_MAX_UNSPACED_WORD_CHARS = 4  # of kana, han and hangul; longer ones are phrases
_MAX_QUESTION_CHARS = 10_000
_MAX_TOKEN_CHARS = 64
_MAX_TOKENS = 8
# Of a question with words of another language, which also gets English words.
_MAX_SPACED_WORDS, _MIN_UNSPACED_WORDS = 4, 2
_BLOCK_BYTES = 2**16
_KILL_SECONDS = 2.0
_MAX_OUTPUT_BYTES = 2 * 2**20
_ARGUMENTS = (
    *("--no-config", "--json", "--fixed-strings", "--ignore-case", "--no-messages"),
    *("--hidden", "--glob=!.git", "--no-require-git", "--max-filesize=1M"),
    "--no-ignore-parent",  # `allowed` applies the ignore files above the folder
    *(f"--max-count={MAX_LINES_OF_FILE}", "--threads=2"),
)
UNAVAILABLE = (
    "rg (ripgrep) is not available, so files could not be searched without the index:"
    " install ripgrep (for example `apt install ripgrep` or `brew install ripgrep`)"
    " and restart byok."
)
_FOLDER_IS_GONE = "The folder of the workspace is gone."
_INDEX_IN_USE = (
    "Another byok process has the index open, so this is a plain text search; ask "
    "again later for better results.\n"
)


class TextSearchResult(Struct, frozen=True):
    """The matching files, best first, and the searched `words`.

    The blob id of a file is its position, and `spans` has its chunks by this id, in the
    form that `pack` needs. `notes` say what was not searched, and why.
    """

    files: Sequence[RankedFile] = ()
    spans: Mapping[int, list[Span]] = {}
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass
class MatchCollector:
    """Collects matching lines while a search runs.

    Attributes:
        lines: text by path and line number, at most 40 lines of a file.
        counts: number of matching lines by word and path; matches inside longer words
            count less.
        searched: number of searched files, as far as known.
        common: words that match everywhere, so that their search was stopped early.
    """

    lines: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    searched: int = 0
    common: set[str] = field(default_factory=set)

    def add(self, token: str, path: str, number: int, text: str) -> None:
        """Add a line that contains a word."""
        lines = self.lines[path]
        if number in lines or len(lines) < MAX_LINES_OF_FILE:
            lines[number] = text[:MAX_LINE_CHARS]
        counts = self.counts.setdefault(token, {})
        count = counts.get(path, 0.0)
        if _whole_word(token).search(text):
            counts[path] = count + 1.0
        else:
            partial_weight = min(count + _PARTIAL_MATCH_WEIGHT, _MAX_PARTIAL_WEIGHT)
            counts[path] = max(count, partial_weight)


class _OutputReader(Struct, eq=False):
    """Reads the output of one run of `rg --json`; ignores lines that are no message.

    `has_output` says that at least one message was read.
    """

    program: str
    token: str
    matches: MatchCollector
    allowed: Callable[[str], bool]
    has_output: bool = False
    _is_allowed: dict[str, bool] = {}
    __repr__ = object.__repr__  # without code

    def feed(self, line: bytes) -> None:
        try:
            message = orjson.loads(line)
            data = message["data"]
            if message["type"] == "match":
                self._read_match(_decode_text(data["path"]), data)
            elif message["type"] == "summary":
                searches = data["stats"]["searches"]
                self.matches.searched = max(self.matches.searched, int(searches))
                self.has_output = True
        except (ValueError, TypeError, KeyError, AttributeError):
            return

    def _read_match(self, path: str, data: dict[str, Any]) -> None:
        path = path.removeprefix("./")
        if path not in self._is_allowed:
            self._is_allowed[path] = self.allowed(path)
        if not self._is_allowed[path]:
            return
        number = int(data["line_number"]) - 1
        text = _decode_text(data["lines"]).rstrip("\r\n")
        if number >= 0:
            self.matches.add(self.token, path, number, text)
        self.has_output = True


class Ripgrep(Struct, eq=False):
    """Runs ripgrep; `find` returns its path, None if it is not installed.

    `find` is called for each search, because the folders that may not hold programs
    change with the workspaces.
    """

    find: Callable[[], str | None]
    token_seconds: float = 10.0
    total_seconds: float = 20.0
    max_bytes: int = _MAX_OUTPUT_BYTES

    async def answer(
        self,
        root: Path,
        text: str,
        allowed: Callable[[str], bool],
        limit: int,
        *,
        prefix: str = "",
    ) -> str:
        """Search, and write an answer of at most `limit` characters.

        Paths in the answer begin with the prefix.
        """
        result = await self.search(root, text, allowed)
        return await asyncio.to_thread(_write_answer, root, result, limit, prefix)

    async def search(
        self, root: Path, text: str, allowed: Callable[[str], bool]
    ) -> TextSearchResult:
        """Search the files below `root` for the words of a question.

        `allowed` tells whether the lines of a path may be shown. A failure becomes a
        note in the result, beside the matches until then. Cancelling kills the process.
        """
        program = await asyncio.to_thread(self.find)
        if program is None:
            return TextSearchResult(notes=(UNAVAILABLE,))
        matches = MatchCollector()
        problems: dict[str, None] = {}
        loop = asyncio.get_running_loop()
        end = loop.time() + self.total_seconds
        words = await asyncio.to_thread(search_words, text)
        for token in words:
            seconds = min(self.token_seconds, end - loop.time())
            if seconds <= 0:
                problems[_timeout_note(self.total_seconds)] = None
                break
            run = _OutputReader(program, token, matches, allowed)
            if note := await self._run(run, root, seconds):
                problems[note] = None
            if note in (UNAVAILABLE, _FOLDER_IS_GONE):
                break
        if not matches.counts and not text.isascii():
            problems[ASK_IN_ENGLISH] = None
        query = await asyncio.to_thread(parse_query, text)
        files, spans = rank_by_rarity(matches, query.kinds)
        return TextSearchResult(files, spans, tuple(problems), tuple(words))

    async def _run(self, run: _OutputReader, root: Path, seconds: float) -> str | None:
        """Search for one word; return a note if something went wrong."""
        try:
            process = await _start(run, root)
        except (OSError, ValueError):
            exists = await asyncio.to_thread(root.is_dir)
            return UNAVAILABLE if exists else _FOLDER_IS_GONE
        try:
            async with asyncio.timeout(seconds):
                is_complete = await self._read(process, run)
                if is_complete:
                    await process.wait()
        except TimeoutError:
            return _timeout_note(seconds)
        finally:
            await _kill(process)
        if not is_complete:
            run.matches.common.add(run.token)
            return f"{run.token!r} is too common: only some files were searched for it."
        if process.returncode in (0, 1) or run.has_output:
            return None
        return f"rg failed (exit {process.returncode}), so its results are incomplete."

    async def _read(
        self, process: asyncio.subprocess.Process, run: _OutputReader
    ) -> bool:
        """Feed the output to the reader; False if it was cut at the limit."""
        assert process.stdout is not None  # noqa: S101 - asked for above
        free = self.max_bytes
        partial_line = b""
        while block := await process.stdout.read(_BLOCK_BYTES):
            free -= len(block)
            if free < 0:
                return False
            *lines, partial_line = (partial_line + block).split(b"\n")
            for line in lines:
                run.feed(line)
        run.feed(partial_line)
        return True


async def answer_without_index(
    ripgrep: Ripgrep,
    rules_of: Callable[[Path], Rules],
    question: str,
    roots: Sequence[Path],
) -> str:
    """Answer a question about folders while another process has the index.

    `rules_of` returns the ignore rules of a folder.
    """
    share = (DEFAULT_LENGTH - len(_INDEX_IN_USE)) // len(roots)
    answers = [
        await ripgrep.answer(
            root,
            question,
            partial(_is_shown, rules_of(root)),
            share,
            prefix=f"{root.name}/" if len(roots) > 1 else "",
        )
        for root in roots
    ]
    return "\n".join([*answers, _INDEX_IN_USE])[:DEFAULT_LENGTH]


def search_words(text: str) -> list[str]:
    """Return at most eight words to search for, or the start of a text without words.

    Task words come last, and stop words are used only if there is nothing else. A run
    of more than four characters of Chinese, Japanese or Korean, which have no spaces,
    is split into pairs of characters. The likeliest English words for words of other
    languages come before the words without spaces.
    """
    text = normalize(text, _MAX_QUESTION_CHARS)
    foreign = read_foreign(words(text))
    by_lower_case: dict[str, str] = {}
    for text_run in _SEARCH_WORD.findall(text):
        is_word = text_run[0] < IDEOGRAPHS or len(text_run) <= _MAX_UNSPACED_WORD_CHARS
        for word in (text_run[:_MAX_TOKEN_CHARS],) if is_word else expand(text_run):
            by_lower_case.setdefault(word.lower(), word)
    meaningful = [
        word
        for low, word in by_lower_case.items()
        if stem(low) not in STOP_WORDS and low not in foreign.stop_terms
    ]
    meaningful.sort(key=lambda word: stem(word.lower()) in TASK_WORDS)
    if foreign.english:
        meaningful = _with_english(meaningful, foreign.english)
    if by_lower_case:
        return (meaningful or list(by_lower_case.values()))[:_MAX_TOKENS]
    pieces = (piece.strip() for piece in re.split(r"[\x00\r\n]+", text))
    first = next(filter(None, pieces), "")[:_MAX_TOKEN_CHARS]
    return [first] if first else []


def rank_by_rarity(
    matches: MatchCollector, kinds: Mapping[Kind, float] = NO_KINDS
) -> tuple[list[RankedFile], dict[int, list[Span]]]:
    """Rank files by the rarity of their words, times the factor of the kind.

    Return the files and their spans, as in `TextSearchResult`. Lines near each other
    form one chunk, whose score is the number of matches.
    """
    total = max([matches.searched, *map(len, matches.counts.values())], default=0)
    scores: dict[str, float] = defaultdict(float)
    for token, counts in matches.counts.items():
        files = _COMMON_WORD_SHARE * total if token in matches.common else len(counts)
        rarity = math.log(1 + total / max(files, 1))
        for path, count in counts.items():
            scores[path] += rarity * count / (count + _SATURATION)
    scored = [
        (path, score * kind_factor(kind_of(path), kinds))
        for path, score in scores.items()
        if matches.lines[path]
    ]
    scored.sort(key=lambda item: (-item[1], item[0]))
    ranked: list[RankedFile] = []
    spans: dict[int, list[Span]] = {}
    for position, (path, score) in enumerate(scored[:_MAX_FILES]):
        groups = _group_lines(sorted(matches.lines[path].items()))
        spans[position] = [span for span, _ in groups]
        chunks = [ChunkScore(position, n, count) for n, (_, count) in enumerate(groups)]
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        kind, factor = kind_of(path), kind_factor(kind_of(path))
        reasons = Reasons(score / factor, 0.0, 0.0, factor, 0.0)
        ranked.append(RankedFile(position, path, kind, score, tuple(chunks), reasons))
    return ranked, spans


def _write_answer(root: Path, result: TextSearchResult, limit: int, prefix: str) -> str:
    files = [replace(file, path=prefix + file.path) for file in result.files]
    packed = pack(files, result.spans.__getitem__, limit)

    def lines_of(file: PackedFile) -> list[str] | None:
        path = result.files[file.blob_id].path
        try:
            with Folder(root) as folder:
                content, _ = folder.read(path, MAX_BYTES)
        except Unreadable:
            return None
        lines = lines_in(content, path)
        if isinstance(lines, SkipReason):
            return None
        return sources_alone(lines) if is_notebook(path) else lines

    find = find_texts(result.words)
    return render(packed, lines_of, limit, result.notes, find=find).text


async def _start(run: _OutputReader, root: Path) -> asyncio.subprocess.Process:
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
        async with asyncio.timeout(_KILL_SECONDS):
            while await process.stdout.read(_BLOCK_BYTES):  # until it is closed
                pass
            await process.wait()


def _decode_text(value: dict[str, str]) -> str:
    """Decode a text of `rg --json`, which is in base64 if it is not UTF-8."""
    if "text" in value:
        return value["text"]
    try:
        return os.fsdecode(base64.b64decode(value["bytes"]))
    except binascii.Error as error:
        raise ValueError from error


def _with_english(meaningful: list[str], english: Mapping[str, float]) -> list[str]:
    """Put English words after at most four spaced words and before all others."""
    spaced = [word for word in meaningful if word[0] < IDEOGRAPHS][:_MAX_SPACED_WORDS]
    unspaced = [word for word in meaningful if word not in spaced]
    spaced_lower = {word.lower() for word in spaced}
    # A word of two letters, such as "id", is in every file.
    added = [word for word in english if word not in spaced_lower and len(word) > 2]
    added.sort(key=lambda word: (stem(word) in TASK_WORDS, -english[word]))
    free = _MAX_TOKENS - len(spaced) - min(len(unspaced), _MIN_UNSPACED_WORDS)
    return [*spaced, *added[:free], *unspaced]


@lru_cache(maxsize=64)
def _whole_word(token: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(token)}(?!\w)", re.IGNORECASE)


def _group_lines(lines: Iterable[tuple[int, str]]) -> list[tuple[Span, int]]:
    """Join lines whose context overlaps; return groups with their number of matches."""
    groups: list[tuple[Span, int]] = []
    for number, text in lines:
        first, last = max(0, number - _CONTEXT_LINES), number + _CONTEXT_LINES
        chars = len(text) + 2 * _CONTEXT_LINES * _USUAL_LINE_CHARS
        group, count = groups[-1] if groups else (Span(0, -_MAX_GROUP_LINES, 0), 0)
        if first <= group.last + 1 and last - group.first < _MAX_GROUP_LINES:
            groups[-1] = (Span(group.first, last, group.chars + chars), count + 1)
        else:
            groups.append((Span(first, last, chars), 1))
    return groups


def _timeout_note(seconds: float) -> str:
    return f"rg was stopped after {seconds:.0f} s, so its results are incomplete."


def _is_shown(rules: Rules, path: str) -> bool:
    return rules.reason(path) is None
