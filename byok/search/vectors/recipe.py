'''The text of a chunk that is embedded: its path, what encloses it, outline and start.

    src/flask/json/provider.py                      the path
    class JSONProvider:                             lines that enclose the chunk
    def load(self, fp: t.IO[t.AnyStr]) -> t.Any:    its outline: lines indented least
    def dumps(self, obj: t.Any) -> str:             its first lines
        """Serialize data as JSON.
        ...

No parser is needed: indentation shows what encloses a line, in any language that people
indent. More of a chunk than this is not worth its price, as was measured
(docs/reference/retrieval.md). Secrets are masked before anything is cut, so that no
part of one remains. So are the user's own keys, which need not look like keys; a text
without any of them is the same for every user.

A change of these texts needs another `RECIPE`: otherwise the vectors of old and new
texts could not be told apart.
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
MAX_TEXT_CHARS = 600  # about 440 are usual, or 150 tokens
# Tokens of a chunk's text and a model's prefix, measured over eight repositories; a
# token is about three characters of code.
USUAL_TOKENS = 150
_EMBEDDED_KINDS = frozenset({Kind.CODE, Kind.CONF})
_MAX_PATH_CHARS = 160
_MAX_LINE_CHARS = 160
_MAX_ENCLOSING = 3  # lines: a method, its class, and an outer one
_MAX_OUTLINE = 8  # lines
_FIRST_LINES = 7
_MAX_HEADING_CHARS = 100  # of enclosing lines and of the outline
_MAX_LINES = 200  # of a chunk that are read
_TAB_WIDTH = 4
# Beginnings of lines that enclose nothing, and of lines that end a block.
_COMMENTS = ("#", "//", "/*", "*", "--", ";", "<!--", '"""', "'''")
_CLOSERS = (")", "]", "}", "end", "</")


class ChunkText(NamedTuple):
    """The text of a chunk, the chunk's ordinal in its blob, and the key of the text."""

    ordinal: int
    key: Key
    text: str


def is_embedded(path: str) -> bool:
    """Tell whether the chunks of a file are embedded: those of code and configuration.

    Tests and documents are two thirds of all chunks, and rank far below code.
    """
    return kind_of(path) in _EMBEDDED_KINDS


def key_of(text: str) -> Key:
    """Return the key under which a text of this recipe is stored (32 bytes)."""
    return hashlib.sha256(f"{RECIPE}\0{text}".encode()).digest()


def texts_of(
    path: str,
    lines: Sequence[str],
    spans: Sequence[Span],
    *,
    redact: Callable[[str], str] = str,
) -> list[ChunkText]:
    """Return the texts of a blob's chunks; chunks without a letter have none.

    `lines` are the unchanged lines of the file, `spans` its chunks in order. `redact`
    removes the user's own keys from a text. A file whose kind is not embedded has no
    texts.
    """
    if not is_embedded(path):
        return []
    whole = "\n".join(lines)  # redacted at once, as hardly any file has such a key
    if redact(whole) != whole:
        lines = [redact(line) for line in lines]
    masked = mask_lines(lines, path=path)
    visible = [line[:_MAX_LINE_CHARS] for line in masked]
    masked_path = mask(redact(path), path=path)[-_MAX_PATH_CHARS:]
    enclosing = _enclosing_lines(visible, [span.first for span in spans])
    texts = []
    for ordinal, span in enumerate(spans):
        body = visible[span.first : min(span.last + 1, span.first + _MAX_LINES)]
        if not any(map(_has_letter, body)):
            continue
        parts = [masked_path, *enclosing[ordinal], *_outline_and_start(body)]
        text = "\n".join(parts)[:MAX_TEXT_CHARS].rstrip()
        text = text.encode("utf-8", "replace").decode()  # without lone surrogates
        texts.append(ChunkText(ordinal, key_of(text), text))
    return texts


def _enclosing_lines(lines: Sequence[str], starts: Sequence[int]) -> list[list[str]]:
    """Return the lines that enclose each of `starts`, which are ascending numbers."""
    enclosing: list[list[str]] = []
    open_lines: list[tuple[int, str]] = []  # indentation and text, outermost first
    next_starts = iter(starts)
    start = next(next_starts, None)
    for number, line in enumerate(lines):
        while start == number:
            depth = _next_indent(lines, number)
            outer = [text for indent, text in open_lines if indent < depth]
            enclosing.append(outer[-_MAX_ENCLOSING:])
            start = next(next_starts, None)
        text = line.strip()
        if not text or text.startswith(_COMMENTS):
            continue
        indent = _indent(line)
        closes = text.startswith(_CLOSERS) or not _has_letter(text)
        while open_lines and open_lines[-1][0] >= indent + closes:
            open_lines.pop()
        if not closes:
            open_lines.append((indent, text[:_MAX_HEADING_CHARS]))
    enclosing += [[]] * (len(starts) - len(enclosing))
    return enclosing


def _next_indent(lines: Sequence[str], number: int) -> int:
    """Return the indentation of the first line of code at or below a line.

    Comments are skipped: each belongs to the code that follows it.
    """
    for line in lines[number : number + _MAX_LINES]:
        text = line.strip()
        if text and not text.startswith(_COMMENTS):
            return _indent(line)
    return 0


def _indent(line: str) -> int:
    width = len(line) - len(line.lstrip(" \t"))
    return width + (_TAB_WIDTH - 1) * line.count("\t", 0, width)


def _has_letter(line: str) -> bool:
    return any(map(str.isalpha, line))


def _outline_and_start(body: Sequence[str]) -> list[str]:
    """Return the outline of a chunk's later lines, then its first lines."""
    expanded = [line.expandtabs(_TAB_WIDTH).rstrip() for line in body if line.strip()]
    shared = min(map(_indent, expanded), default=0)
    lines = [line[shared:] for line in expanded]
    outline = [
        line[:_MAX_HEADING_CHARS]
        for line in lines[_FIRST_LINES:]
        if not line.startswith((" ", *_COMMENTS, *_CLOSERS)) and _has_letter(line)
    ]
    return outline[:_MAX_OUTLINE] + lines[:_FIRST_LINES]


def count_chunks(store: "Store") -> int:
    """Estimate how many chunks of the index need vectors; blocks, but reads no file.

    Equal texts are embedded once, but each is counted.
    """
    with store.reading() as db:
        rows = db.execute(
            "SELECT path, length(spans) / ? FROM blob "
            "WHERE state = ? AND reason IS NULL AND length(spans) > 0",
            (SPAN_BYTES, INDEXED),
        )
        return sum(count for path, count in rows if is_embedded(path))


class Prefixes(NamedTuple):
    """The text that a model expects before each text of code, and each question.

    Many models were trained with such words and rank worse without them.
    """

    document: str = ""
    query: str = ""


_NONE = Prefixes()
# For models that are told their task; the caller chooses the sentence.
_TASK = "Given a question about a program, retrieve the source code that answers it"
_INSTRUCT = Prefixes("", f"Instruct: {_TASK}\nQuery: ")
_PASSAGES = Prefixes("", "Represent this sentence for searching relevant passages: ")
_CODE = Prefixes("", "Represent this query for searching relevant code: ")

# Prefixes by a pattern of the lower-case model name, from the model cards of their
# makers; the first row that matches counts. Other models take texts unchanged, such as
# those of OpenAI, Mistral and Voyage; further fields of their APIs are not sent.
_MODEL_PREFIXES: tuple[tuple[str, Prefixes], ...] = (
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
_COMPILED = tuple((re.compile(pattern), row) for pattern, row in _MODEL_PREFIXES)


def prefixes_of(
    model: str, document: str | None = None, query: str | None = None
) -> Prefixes:
    """Return the prefixes of a model; those of the user replace them."""
    name = model.lower().replace("_", "-")
    defaults = next((row for pattern, row in _COMPILED if pattern.search(name)), _NONE)
    return Prefixes(
        defaults.document if document is None else document,
        defaults.query if query is None else query,
    )


# Prices of vendors by host and model, in dollars per million tokens, as of November
# 2026. They are for estimates only, so a few rows are enough; `embeddings.price` of the
# settings overrides them. They hold for a vendor's own host, as others may charge
# other prices.
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
