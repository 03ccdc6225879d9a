"""Remove secrets, and if needed all texts, from captures before they are stored.

The pieces of a hop are joined first, because a read may end within a key. Only the
values of harmless headers stay, and the values of queries and the users of addresses
are removed.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from byok.core.errors import UpstreamGarbled
from byok.core.record import Head, Hop
from byok.core.redact import MARK, Redactor
from byok.core.wire.inflate import Inflate
from byok.features.capture.capture import Capture, Piece

# ---- The strings of JSON within any text: bodies, lines, server-sent events


# Possessive: a backtracking pattern stores 128 bytes for each letter of a string.
_TOKEN = re.compile(r'"([^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+)("?)|[{}\[\]:,]|\n')
_MAX_DEPTH = 200


class JsonString(NamedTuple):
    """A string without its quotes: its offsets, and the keys above it.

    `is_key`: it is the name of a field, and its `path` ends with the field around it.
    """

    start: int
    end: int
    path: tuple[str, ...]
    is_key: bool


def find_strings(text: str) -> Iterator[JsonString]:
    """Yield the strings in their order; lists add nothing to a path.

    The offsets are those in `text`, so a string can be replaced without encoding the
    JSON again. Broken JSON is read as far as possible.
    """
    position = _Position()
    for token in _TOKEN.finditer(text):
        if text[token.start()] != '"':
            position.read(text, token)
            continue
        start, end = token.span(1)
        is_key = position.awaits_key and _is_followed_by_colon(text, token.end())
        yield JsonString(start, end, position.path, is_key)
        if is_key:
            position.key = text[start:end]


class _Position:
    """The position of the reader in a value: the keys around it, innermost last."""

    def __init__(self) -> None:
        self._stack: list[str | None] = []  # the key in each object, None for a list
        self.awaits_key = False
        self.key = ""
        self.path: tuple[str, ...] = ()

    def read(self, text: str, token: re.Match[str]) -> None:
        """Read a mark between strings."""
        match text[token.start()]:
            case "," if self._stack:
                self.awaits_key = self._stack[-1] is not None
                if self.awaits_key:
                    self._stack[-1] = ""
            case "{" | "[" as mark if len(self._stack) < _MAX_DEPTH:
                self._stack.append("" if mark == "{" else None)
                self.awaits_key = mark == "{"
            case "}" | "]" if self._stack:
                self._stack.pop()
                self.awaits_key = False
            case ":" if self._stack and self._stack[-1] is not None:
                self._stack[-1] = self.key
                self.awaits_key = False
            case "\n" if text.startswith("data:", token.end()):
                self._stack.clear()  # another event begins
            case _:
                return
        self.path = tuple(key for key in self._stack if key)


def _is_followed_by_colon(text: str, offset: int) -> bool:
    while offset < len(text) and text[offset] in " \t\r\n":
        offset += 1
    return offset < len(text) and text[offset] == ":"


# ---- Secrets


# Headers whose values stay, unless they contain a secret.
PLAIN_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "accept-language",
        "anthropic-beta",
        "anthropic-version",
        "cache-control",
        "connection",
        "content-encoding",
        "content-language",
        "content-length",
        "content-type",
        "conversation-id",
        "date",
        "host",
        "openai-processing-ms",
        "openai-version",
        "retry-after",
        "retry-after-ms",
        "server",
        "transfer-encoding",
        "user-agent",
        "x-api-version",
        "x-mode",
        "x-request-id",
        "x-request-session-id",
    ]
)
_LIMITS = re.compile(r"(anthropic-|x-)?ratelimit-[a-z-]+")
_QUERY_VALUE = re.compile(r"(?<==)[^&#]*")
LONGEST_BASE64 = 1024  # characters; longer base64 is a picture or a file
_WINDOW, _OVERLAP = 64 * 1024, 16 * 1024  # characters
# Only from the beginning of a run: long words would take the square of their length.
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{{{LONGEST_BASE64},}}=*")
_ANSWERS = (Hop.FROM_UPSTREAM, Hop.TO_CLIENT)
_TAIL = 4096  # characters that are removed before a gap
_MAX_ODD_SHARE = 0.1  # of the characters of a text

FindSecrets = Callable[[str], Iterable[tuple[int, int]]]


class RawPiece(NamedTuple):
    """Unchanged content: a head, bytes, or the number of bytes that were left out."""

    at: float
    hop: Hop
    attempt: int
    content: bytes | Head | int


class HiddenSpan(NamedTuple):
    """A part of a text that is replaced by another text."""

    start: int
    end: int
    replacement: str


def scrub(pieces: Sequence[RawPiece], redactor: Redactor) -> Iterator[Piece]:
    """Yield the pieces without secrets, in their order."""
    texts: dict[int, str] = {}
    for numbers in _streams(pieces).values():
        texts |= _scrub_stream(pieces, numbers, redactor)
    for number, (at, hop, attempt, content) in enumerate(pieces):
        if isinstance(content, Head):
            yield Piece(at, hop, attempt, head=_scrub_head(content, redactor))
        elif isinstance(content, int):
            yield Piece(at, hop, attempt, left_out=content)
        elif number in texts:
            yield Piece(at, hop, attempt, texts[number])
        else:
            yield Piece(at, hop, attempt, left_out=len(content))


def _streams(pieces: Sequence[RawPiece]) -> dict[tuple[Hop, int], list[int]]:
    """Return the numbers of the pieces of each hop and attempt."""
    streams: defaultdict[tuple[Hop, int], list[int]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        streams[piece.hop, piece.attempt].append(number)
    return streams


def _scrub_stream(
    pieces: Sequence[RawPiece], numbers: Iterable[int], redactor: Redactor
) -> dict[int, str]:
    """Return the texts of the pieces of one stream, nothing if they are no text."""
    coding, is_cut, hop = "", False, Hop.FROM_CLIENT
    parts: dict[int, bytes] = {}
    for number in numbers:
        hop, content = pieces[number].hop, pieces[number].content
        if isinstance(content, Head):
            names = {name.lower(): value for name, value in content.headers}
            coding = names.get("content-encoding", "") if hop in _ANSWERS else ""
        elif isinstance(content, int):
            is_cut = True
        else:
            parts[number] = content
    texts = _decode(parts, coding)
    if texts is None:
        return {}
    joined = "".join(texts.values())
    spans = find_spans(joined, redactor.find_spans, fragments=hop in _ANSWERS)
    if is_cut and joined:
        spans = _cut_tail(spans, len(joined))
    return dict(zip(texts, _replace(list(texts.values()), spans), strict=True))


def _decode(parts: dict[int, bytes], coding: str) -> dict[int, str] | None:
    """Decode the parts, None if they are no text; split letters go to the later one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts: dict[int, str] = {}
    try:
        inflate = Inflate(coding)
        for number, raw in parts.items():
            texts[number] = decoder.decode(b"".join(inflate.feed(raw)))
    except UpstreamGarbled:
        return None
    if texts:
        texts[number] += decoder.decode(b"", final=True)
    size = sum(map(len, texts.values()))
    odd = sum(text.count("\ufffd") + 10 * text.count("\0") for text in texts.values())
    return None if odd > _MAX_ODD_SHARE * size else texts


def _cut_tail(spans: list[HiddenSpan], size: int) -> list[HiddenSpan]:
    """Hide the end of a text too, where a secret may have begun that was cut off."""
    start = max(0, size - _TAIL)
    earlier = [span for span in spans if span.start < start]
    if earlier and earlier[-1].end > start:
        start = earlier.pop().start
    return [*earlier, HiddenSpan(start, size, "[cut]")]


def _replace(texts: list[str], spans: list[HiddenSpan]) -> Iterator[str]:
    """Replace spans of the joined texts, each in the text in which it starts."""
    begin, number = 0, 0
    for text in texts:
        end, done, parts = begin + len(text), begin, []
        while number < len(spans) and spans[number].start < end:
            span = spans[number]
            if span.start >= begin:
                parts += [text[done - begin : span.start - begin], span.replacement]
            done = min(span.end, end)
            if span.end > end:
                break
            number += 1
        parts.append(text[done - begin :])
        yield "".join(parts)
        begin = end


def _scrub_head(head: Head, redactor: Redactor) -> Head:
    """Remove the user, values of the query, a fragment, and values of headers."""
    headers = []
    for name, value in head.headers:
        lowered = name.lower()
        is_plain = lowered in PLAIN_HEADERS or _LIMITS.fullmatch(lowered)
        headers.append((redactor(name), redactor(value) if is_plain else MARK))
    address, mark, query = redactor(head.line).partition("?")
    address = re.sub(r"(?<=://)[^/@]*@", f"{MARK}@", address.partition("#")[0])
    line = address + mark + _QUERY_VALUE.sub(MARK, query.partition("#")[0])
    return Head(line, tuple(headers))


def find_spans(text: str, secrets: FindSecrets, *, fragments: bool) -> list[HiddenSpan]:
    """Return the spans to hide, in order and without overlap.

    With `fragments` the text is a stream of events or lines of JSON.
    """
    secret_spans = [*_search_windows(text, secrets)]
    if fragments:
        secret_spans += _search_fields(text, secrets)
    base64 = [HiddenSpan(*span, "") for span in _search_windows(text, _find_base64)]
    return _merge([HiddenSpan(*span, MARK) for span in secret_spans], base64)


def _search_windows(text: str, find: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield the spans that `find` finds in overlapping windows of the text."""
    start = 0
    while True:
        end = min(len(text), start + _WINDOW)
        spans = [(start + a, start + b) for a, b in find(text[start:end])]
        yield from spans
        if end == len(text):
            return
        # A span that reaches the end may continue; the next window begins with it.
        cut = [begin for begin, stop in spans if stop == end and begin > start]
        start = max(start + _OVERLAP, min([end - _OVERLAP, *cut]))


def _search_fields(text: str, secrets: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield the parts of secrets that are spread over strings of the same field."""
    fields: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for string in find_strings(text):
        if not string.is_key and string.end > string.start:
            fields[string.path].append((string.start, string.end))
    for strings in fields.values():
        if len(strings) > 1:
            joined = "".join(text[start:end] for start, end in strings)
            yield from _trace(strings, sorted(_search_windows(joined, secrets)))


def _trace(
    strings: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Translate spans of the joined strings to spans of the whole text."""
    offset, number = 0, 0  # of a string in the joined text, and its number
    for start, end in _join(spans):
        while number < len(strings) and offset + _size(strings[number]) <= start:
            offset += _size(strings[number])
            number += 1
        begin, current = offset, number
        while current < len(strings) and begin < end:
            string, size = strings[current][0], _size(strings[current])
            yield string + max(0, start - begin), string + min(size, end - begin)
            begin += size
            current += 1


def _size(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _join(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join sorted spans that touch."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _find_base64(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _BASE64.finditer(text)]


def _merge(secrets: list[HiddenSpan], base64: list[HiddenSpan]) -> list[HiddenSpan]:
    """Merge both kinds; a span that is more than base64 counts as a secret."""
    merged = _join(sorted((span.start, span.end) for span in (*secrets, *base64)))
    pure = dict(_join(sorted((span.start, span.end) for span in base64)))
    return [
        HiddenSpan(
            start,
            end,
            f"[base64 of {end - start} characters]" if pure.get(start) == end else MARK,
        )
        for start, end in merged
    ]


# ---- Placeholders of equal length for all texts


_HIDDEN = re.compile(r'(?:\\u[0-9a-fA-F]{4}|\\.)|[^{}\[\]":,\\\s]')
_KEY = re.compile(r"[A-Za-z_$][\w$.-]{0,39}")
_WORD = re.compile(r"[A-Za-z0-9_./:-]{1,64}")
_FRAME = re.compile(r"^(?:data: ?(?:\[DONE\])?|event: ?[\w.]{1,64}|retry: ?\d{1,9})")
_LITERAL = re.compile(r"[\s{}\[\]:,]|-?\d[\d.eE+-]{0,30}|true|false|null")
_DIGIT = re.compile(r"\d")
_COUNTS = re.compile(r"type|index|id|status|stop_reason|\w*_tokens|token_usage")
# Fields whose values are words of a protocol.
_PROTOCOL_FIELDS = frozenset(
    ("type", "role", "object", "finish_reason", "stop_reason", "status", "code")
)
# Everything below these fields is the user's own, also the names of fields.
_USER_FIELDS = frozenset(
    ("input", "args", "arguments", "parameters", "properties", "input_schema")
)


def hide_content(capture: Capture) -> Capture:
    """Return the capture without the texts of users and models."""
    texts: dict[tuple[Hop, int], str] = {}
    offsets: dict[tuple[Hop, int], int] = {}
    for piece in capture.pieces:
        stream = piece.hop, piece.attempt
        if stream not in texts:
            texts[stream] = hide_text(capture.text(*stream))
            offsets[stream] = 0
    return Capture(capture.facts, tuple(_hide_pieces(capture, texts, offsets)))


def _hide_pieces(
    capture: Capture,
    texts: dict[tuple[Hop, int], str],
    offsets: dict[tuple[Hop, int], int],
) -> Iterator[Piece]:
    """Cut the hidden texts where the pieces were cut."""
    for piece in capture.pieces:
        stream = piece.hop, piece.attempt
        start = offsets[stream]
        offsets[stream] = end = start + len(piece.text)
        yield piece._replace(text=texts[stream][start:end])


def hide_text(text: str) -> str:
    """Return a text of the same length in which nothing can be read.

    The structure of JSON, white space, names of fields, counts and the few values that
    identify an event stay. All other letters become an `x`, so that a report shows
    where a call was cut or how long a text was, and not the text.
    """
    parts: list[str] = []
    end, is_count = 0, False
    for string in find_strings(text):
        parts.append(_hide_between(text[end : string.start], is_count=is_count))
        content = text[string.start : string.end]
        is_harmless = _is_harmless(string, content)
        parts.append(content if is_harmless else _hide_string(content))
        end = string.end
        is_count = bool(string.is_key and is_harmless and _COUNTS.fullmatch(content))
    parts.append(_hide_between(text[end:], is_count=is_count))
    return "".join(parts)


def _is_harmless(string: JsonString, content: str) -> bool:
    """Tell whether a string has nothing of the user's texts."""
    if content == MARK:
        return True
    if _USER_FIELDS.intersection(string.path):
        return False
    if string.is_key:
        return _KEY.fullmatch(content) is not None
    last = string.path[-1] if string.path else ""
    return last in _PROTOCOL_FIELDS and _WORD.fullmatch(content) is not None


def _hide_string(content: str) -> str:
    """Replace each character by an x, but leave short escapes of JSON."""
    return _HIDDEN.sub(lambda m: m[0] if len(m[0]) == 2 else "x" * len(m[0]), content)


def _hide_between(text: str, *, is_count: bool) -> str:
    """Hide the text between strings, except JSON and the frames of events.

    Digits become ones, unless the number `is_count`.
    """
    lines = text.splitlines(keepends=True)
    return "".join(_hide_line(line, is_count=is_count) for line in lines)


def _hide_line(line: str, *, is_count: bool) -> str:
    parts: list[str] = []
    offset = 0
    if frame := _FRAME.match(line):
        parts.append(frame[0])
        offset = frame.end()
    while offset < len(line):
        if line[offset] == '"':
            parts.append('"')
            offset += 1
        elif literal := _LITERAL.match(line, offset):
            parts.append(literal[0] if is_count else _DIGIT.sub("1", literal[0]))
            offset = literal.end()
        else:
            parts.append("x")
            offset += 1
    return "".join(parts)
