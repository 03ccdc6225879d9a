'''The text of a chunk that is embedded: where it is, what it has in it, how it begins.

    src/flask/json/provider.py                      the path
    class JSONProvider:                             what encloses the chunk
    def load(self, fp: t.IO[t.AnyStr]) -> t.Any:    its outline: lines indented least
    def dumps(self, obj: t.Any) -> str:             its first lines
        """Serialize data as JSON.
        ...

No parser is asked: what encloses a line can be seen by indentation, in any language
that people indent. More of a chunk than this is not worth its price, as was measured
(docs/reference/retrieval.md). Secrets are masked before anything is cut, so that no
part of one is left over. So are the user's own keys, which need not look like any; a
text without one of them is the same for every user.

A change of what is written here needs another `RECIPE`: vectors of different texts
cannot be told apart otherwise.
'''

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from byok.search.index.files.languages import kind_of
from byok.search.index.store.schema import INDEXED, SPAN_BYTES
from byok.search.index.types import Kind, Span
from byok.search.retrieval.masking import mask, mask_lines
from byok.search.vectors.types import Key

if TYPE_CHECKING:
    from byok.search.index.store.store import Store


RECIPE = "1"
LONGEST = 600  # characters of a text; about 440 are usual, or 150 tokens
_KINDS = frozenset({Kind.CODE, Kind.CONF})
_LONGEST_PATH = 160
_LONGEST_LINE = 160
_ENCLOSING = 3  # lines: a method, its class, and one around that
_OUTLINE = 8  # lines
_FIRST = 7  # lines
_LONGEST_HEADING = 100  # of enclosing lines and of the outline
_MOST_LINES = 200  # of a chunk that are looked at
_TAB = 4
# How lines begin that enclose nothing, and how those that end what does.
_COMMENTS = ("#", "//", "/*", "*", "--", ";", "<!--", '"""', "'''")
_CLOSERS = (")", "]", "}", "end", "</")


class ChunkText(NamedTuple):
    """The text of a chunk, the chunk's place in its blob, and the key of the text."""

    ordinal: int
    key: Key
    text: str


def is_embedded(path: str) -> bool:
    """Tell whether chunks of this file are embedded: code and configuration are.

    Tests and documents are two thirds of all chunks, and rank far below code.
    """
    return kind_of(path) in _KINDS


def key_of(text: str) -> Key:
    """Return the key that a text made by this recipe is stored under (32 bytes)."""
    return hashlib.sha256(f"{RECIPE}\0{text}".encode()).digest()


def texts_of(
    path: str,
    lines: Sequence[str],
    spans: Sequence[Span],
    *,
    redact: Callable[[str], str] = str,
) -> list[ChunkText]:
    """Return the texts of a blob's chunks; chunks without a letter have none.

    `lines` are those of the file as it is, `spans` its chunks in order. `redact`
    removes the user's own keys from a text. A file whose kind is not embedded has no
    texts.
    """
    if not is_embedded(path):
        return []
    masked = mask_lines(_without_keys(lines, redact), path=path)
    shown = [line[:_LONGEST_LINE] for line in masked]
    head = mask(redact(path), path=path)[-_LONGEST_PATH:]
    enclosing = _enclosing(shown, [span.first for span in spans])
    found = []
    for ordinal, span in enumerate(spans):
        body = shown[span.first : min(span.last + 1, span.first + _MOST_LINES)]
        if not any(map(_has_letter, body)):
            continue
        text = _join([head, *enclosing[ordinal], *_sketch(body)])
        found.append(ChunkText(ordinal, key_of(text), text))
    return found


def _without_keys(lines: Sequence[str], redact: Callable[[str], str]) -> Sequence[str]:
    whole = "\n".join(lines)  # at once, as hardly any file has a key of the user's
    return lines if redact(whole) == whole else [redact(line) for line in lines]


def _enclosing(lines: Sequence[str], starts: Sequence[int]) -> list[list[str]]:
    """Return for each of these lines (from 0, ascending) those that enclose it."""
    found: list[list[str]] = []
    open_lines: list[tuple[int, str]] = []  # indentation and text, outermost first
    wanted = iter(starts)
    start = next(wanted, None)
    for number, line in enumerate(lines):
        while start == number:
            depth = _depth_from(lines, number)
            around = [text for indent, text in open_lines if indent < depth]
            found.append(around[-_ENCLOSING:])
            start = next(wanted, None)
        text = line.strip()
        if not text or text.startswith(_COMMENTS):
            continue
        indent = _indent(line)
        closes = text.startswith(_CLOSERS) or not _has_letter(text)
        while open_lines and open_lines[-1][0] >= indent + closes:
            open_lines.pop()
        if not closes:
            open_lines.append((indent, text[:_LONGEST_HEADING]))
    found += [[]] * (len(starts) - len(found))
    return found


def _depth_from(lines: Sequence[str], number: int) -> int:
    """Return the indentation of the first line of code from here on.

    A comment belongs to what follows it.
    """
    for line in lines[number : number + _MOST_LINES]:
        text = line.strip()
        if text and not text.startswith(_COMMENTS):
            return _indent(line)
    return 0


def _indent(line: str) -> int:
    width = len(line) - len(line.lstrip(" \t"))
    return width + (_TAB - 1) * line.count("\t", 0, width)


def _has_letter(line: str) -> bool:
    return any(map(str.isalpha, line))


def _sketch(body: Sequence[str]) -> list[str]:
    """Return the outline of a chunk below its first lines, and these lines."""
    lines = _dedent(body)
    outline = [
        line[:_LONGEST_HEADING]
        for line in lines[_FIRST:]
        if not line.startswith((" ", *_COMMENTS, *_CLOSERS)) and _has_letter(line)
    ]
    return outline[:_OUTLINE] + lines[:_FIRST]


def _dedent(lines: Sequence[str]) -> list[str]:
    """Return the lines that are not blank, without the indentation they share."""
    kept = [line.expandtabs(_TAB).rstrip() for line in lines if line.strip()]
    shared = min(map(_indent, kept), default=0)
    return [line[shared:] for line in kept]


def _join(lines: Sequence[str]) -> str:
    """Return one text, cut; what cannot be written as UTF-8 is replaced."""
    text = "\n".join(lines)[:LONGEST].rstrip()
    return text.encode("utf-8", "replace").decode()


# What filling would send, estimated from the rows of the index: no file is read.


# Of the text of a chunk, measured over eight repositories, with a model's prefix; a
# token is about three characters of code.
USUAL_TOKENS = 150


def count_chunks(store: "Store") -> int:
    """Return about how many chunks of the index are to have vectors; blocks.

    Equal texts are counted each, and embedded once.
    """
    with store.reading() as db:
        rows = db.execute(
            "SELECT path, length(spans) / ? FROM blob "
            "WHERE state = ? AND reason IS NULL AND length(spans) > 0",
            (SPAN_BYTES, INDEXED),
        )
        return sum(count for path, count in rows if is_embedded(path))


# What models expect before such a text.
#
# Many models were trained with such words and rank worse without them. The rows come
# from the model cards of their makers. Models that are not here take texts as they are,
# such as those of OpenAI, Mistral and Voyage; their APIs may know further fields, which
# are not sent.


class Prefixes(NamedTuple):
    """The text before each piece of code, and before each question."""

    document: str = ""
    query: str = ""


_NONE = Prefixes()
# Of models that are told their task; the sentence is up to whoever asks.
_TASK = "Given a question about a program, retrieve the source code that answers it"
_INSTRUCT = Prefixes("", f"Instruct: {_TASK}\nQuery: ")
_PASSAGES = Prefixes("", "Represent this sentence for searching relevant passages: ")
_CODE = Prefixes("", "Represent this query for searching relevant code: ")

# A pattern of a model's name, in small letters; the first row that matches counts.
_ROWS: tuple[tuple[str, Prefixes], ...] = (
    (r"nomic-embed-code|coderankembed", _CODE),
    (r"nomic-embed", Prefixes("search_document: ", "search_query: ")),
    (r"\be5-.*instruct|e5-mistral|gte-qwen2", _INSTRUCT),
    (r"\be5-", Prefixes("passage: ", "query: ")),
    (r"bge-m3|bge-multilingual|bge-code|bge-.*icl", _NONE),
    (r"bge-.*-zh", Prefixes("", "为这个句子生成表示以用于检索相关文章：")),
    (r"\bbge-", _PASSAGES),
    (r"mxbai-embed", _PASSAGES),
    (r"arctic-embed2|arctic-embed-.*v2", Prefixes("", "query: ")),
    (r"arctic-embed", _PASSAGES),
    (r"qwen3-embedding", Prefixes("", f"Instruct: {_TASK}\nQuery:")),
    (
        r"embedding-?gemma",
        Prefixes("title: none | text: ", "task: code retrieval | query: "),
    ),
    (
        r"jina-code-embeddings",
        Prefixes(
            "Candidate code snippet:\n",
            "Find the most relevant code snippet given the following query:\n",
        ),
    ),
)
_COMPILED = tuple((re.compile(pattern), row) for pattern, row in _ROWS)


def prefixes_of(
    model: str, document: str | None = None, query: str | None = None
) -> Prefixes:
    """Return the prefixes of a model; those that the user gives replace them."""
    name = model.lower().replace("_", "-")
    known = next((row for pattern, row in _COMPILED if pattern.search(name)), _NONE)
    return Prefixes(
        known.document if document is None else document,
        known.query if query is None else query,
    )


# What vendors ask for embeddings, in dollars per million tokens, as of November 2026.
#
# For estimates only, so few rows will do; the setting `embeddings.price` outranks them.
# A price belongs to a vendor's own address: another host may ask for another one.


# By the vendor's host, then by model.
_PRICES: Mapping[str, Mapping[str, float]] = {
    "api.openai.com": {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
    },
    "api.mistral.ai": {"mistral-embed": 0.10, "codestral-embed": 0.15},
    "api.voyageai.com": {"voyage-code-3": 0.18},
    "generativelanguage.googleapis.com": {"gemini-embedding-001": 0.15},
}


def dollars_per_million(host: str, model: str) -> float | None:
    """Return the price of a model at a host (with or without a port), if known."""
    rows = _PRICES.get(host.partition(":")[0], {})
    return rows.get(model.lower().removeprefix("models/"))
