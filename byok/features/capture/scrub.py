"""Remove secrets and texts from what passed, before any of it reaches the disk.

The pieces of a hop are joined first: a read may end within a key. Of headers only the
values of harmless ones stay, of addresses no value of a query and no user.
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

# Find the strings of JSON within any text: bodies, lines, server-sent events.
#
# The places are those of the text itself, so whatever stands there can be replaced
# without writing the JSON anew. Broken JSON is read as far as it goes.


# Possessive: else 128 bytes are kept for each letter of a string, to go back to.
_TOKEN = re.compile(r'"([^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+)("?)|[{}\[\]:,]|\n')
_DEEPEST = 200


class JsonString(NamedTuple):
    """A string without its quotes: where it begins and ends, and the keys above it.

    `is_key` tells the name of a field; its `path` ends with the field around it.
    """

    start: int
    end: int
    path: tuple[str, ...]
    is_key: bool


def find_strings(text: str) -> Iterator[JsonString]:
    """Yield the strings in their order; lists add nothing to a path."""
    place = _Place()
    for token in _TOKEN.finditer(text):
        if text[token.start()] != '"':
            place.read(text, token)
            continue
        start, end = token.span(1)
        is_key = place.awaits_key and _is_followed_by_colon(text, token.end())
        yield JsonString(start, end, place.path, is_key)
        if is_key:
            place.key = text[start:end]


class _Place:
    """Where in a value the reader is: the keys around it, innermost last."""

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
            case "{" | "[" as mark if len(self._stack) < _DEEPEST:
                self._stack.append("" if mark == "{" else None)
                self.awaits_key = mark == "{"
            case "}" | "]" if self._stack:
                self._stack.pop()
                self.awaits_key = False
            case ":" if self._stack and self._stack[-1] is not None:
                self._stack[-1] = self.key
                self.awaits_key = False
            case "\n" if text.startswith("data:", token.end()):
                self._stack.clear()  # an event begins anew
            case _:
                return
        self.path = tuple(key for key in self._stack if key)


def _is_followed_by_colon(text: str, at: int) -> bool:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at < len(text) and text[at] == ":"


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
"""Headers whose values are kept, as far as they hold no secret."""
_LIMITS = re.compile(r"(anthropic-|x-)?ratelimit-[a-z-]+")
_QUERY_VALUE = re.compile(r"(?<==)[^&#]*")
LONGEST_BASE64 = 1024  # characters; what is longer is a picture or a file
_WINDOW, _OVERLAP = 64 * 1024, 16 * 1024
# From the begin of a run only: long words would take the square of their length.
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{{{LONGEST_BASE64},}}=*")

FindSecrets = Callable[[str], Iterable[tuple[int, int]]]
_ANSWERS = (Hop.FROM_UPSTREAM, Hop.TO_CLIENT)
_TAIL = 4096  # characters before a place where something is missing
_MOST_ODD = 0.1  # of the characters; what has more is no text


class RawPiece(NamedTuple):
    """What passed, as it was: a head, bytes, or how many bytes were left out."""

    at: float
    hop: Hop
    attempt: int
    content: bytes | Head | int


class HiddenSpan(NamedTuple):
    """A part of a text that is replaced by `shown`."""

    start: int
    end: int
    shown: str


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
    """Return the numbers of the pieces that belong together."""
    streams: defaultdict[tuple[Hop, int], list[int]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        streams[piece.hop, piece.attempt].append(number)
    return streams


def _scrub_stream(
    pieces: Sequence[RawPiece], numbers: Iterable[int], redactor: Redactor
) -> dict[int, str]:
    """Return the texts of the pieces of one stream; of what is no text, nothing."""
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
    """Return the texts; a letter cut in two goes to the later one. None: no text."""
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
    return None if odd > _MOST_ODD * size else texts


def _cut_tail(spans: list[HiddenSpan], size: int) -> list[HiddenSpan]:
    """Take off the end, where a secret may have begun that was left out."""
    start = max(0, size - _TAIL)
    kept = [span for span in spans if span.start < start]
    if kept and kept[-1].end > start:
        start = kept.pop().start
    return [*kept, HiddenSpan(start, size, "[cut]")]


def _replace(texts: list[str], spans: list[HiddenSpan]) -> Iterator[str]:
    """Replace spans of the joined texts; a mark goes to where its span begins."""
    at, number = 0, 0
    for text in texts:
        end, here, shown = at + len(text), at, []
        while number < len(spans) and spans[number].start < end:
            span = spans[number]
            if span.start >= at:
                shown += [text[here - at : span.start - at], span.shown]
            here = min(span.end, end)
            if span.end > end:
                break
            number += 1
        shown.append(text[here - at :])
        yield "".join(shown)
        at = end


def _scrub_head(head: Head, redactor: Redactor) -> Head:
    headers = (_scrub_header(name, value, redactor) for name, value in head.headers)
    return Head(_scrub_line(head.line, redactor), tuple(headers))


def _scrub_header(name: str, value: str, redactor: Redactor) -> tuple[str, str]:
    low = name.lower()
    plain = low in PLAIN_HEADERS or _LIMITS.fullmatch(low)
    return redactor(name), redactor(value) if plain else MARK


def _scrub_line(line: str, redactor: Redactor) -> str:
    """Keep the names of a query, and drop its values, a fragment and the user."""
    address, mark, query = redactor(line).partition("?")
    address = re.sub(r"(?<=://)[^/@]*@", f"{MARK}@", address.partition("#")[0])
    return address + mark + _QUERY_VALUE.sub(MARK, query.partition("#")[0])


def find_spans(text: str, secrets: FindSecrets, *, fragments: bool) -> list[HiddenSpan]:
    """Return what has to be replaced, in order and apart from each other.

    With `fragments` the text is a stream of events or lines of JSON.
    """
    found = [*_windows(text, secrets)]
    if fragments:
        found += _in_fields(text, secrets)
    long = [HiddenSpan(*place, "") for place in _windows(text, _find_base64)]
    return _merge([HiddenSpan(*place, MARK) for place in found], long)


def _windows(text: str, find: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield places in the whole text; what a window cuts is looked at again."""
    start = 0
    while True:
        end = min(len(text), start + _WINDOW)
        places = [(start + a, start + b) for a, b in find(text[start:end])]
        yield from places
        if end == len(text):
            return
        # What reaches the end may go on; it is searched again from its beginning.
        cut = [begin for begin, stop in places if stop == end and begin > start]
        start = max(start + _OVERLAP, min([end - _OVERLAP, *cut]))


def _in_fields(text: str, secrets: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield the places of secrets that are spread over strings of the same field."""
    fields: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for string in find_strings(text):
        if not string.is_key and string.end > string.start:
            fields[string.path].append((string.start, string.end))
    for places in fields.values():
        if len(places) > 1:
            joined = "".join(text[start:end] for start, end in places)
            yield from _trace(places, sorted(_windows(joined, secrets)))


def _trace(
    places: list[tuple[int, int]], found: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Translate places in the joined text to places in the whole one."""
    at, number = 0, 0
    for start, end in _join(found):
        while number < len(places) and at + _size(places[number]) <= start:
            at += _size(places[number])
            number += 1
        here, seek = at, number
        while seek < len(places) and here < end:
            begin, size = places[seek][0], _size(places[seek])
            yield begin + max(0, start - here), begin + min(size, end - here)
            here += size
            seek += 1


def _size(place: tuple[int, int]) -> int:
    return place[1] - place[0]


def _join(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join places that touch; they are sorted."""
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _find_base64(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _BASE64.finditer(text)]


def _merge(secrets: list[HiddenSpan], long: list[HiddenSpan]) -> list[HiddenSpan]:
    """Put both kinds together; a secret within base64 ends with it."""
    all_of_them = _join(sorted((span.start, span.end) for span in (*secrets, *long)))
    large = _join(sorted((span.start, span.end) for span in long))
    starts = dict(large)
    return [
        HiddenSpan(
            start, end, MARK if starts.get(start) != end else _count(end - start)
        )
        for start, end in all_of_them
    ]


def _count(size: int) -> str:
    return f"[base64 of {size} characters]"


# Replace texts by placeholders of equal length; the structure of JSON stays.
#
# What is kept: marks of JSON, white space, names of fields, counts, and the few values
# that tell what an event is. Of everything else each letter becomes an `x`, so that a
# report shows where a call was cut or how much was said, and not what.


_HIDDEN = re.compile(r'(?:\\u[0-9a-fA-F]{4}|\\.)|[^{}\[\]":,\\\s]')
_KEY = re.compile(r"[A-Za-z_$][\w$.-]{0,39}")
_WORD = re.compile(r"[A-Za-z0-9_./:-]{1,64}")
_FRAME = re.compile(r"^(?:data: ?(?:\[DONE\])?|event: ?[\w.]{1,64}|retry: ?\d{1,9})")
_LITERAL = re.compile(r"[\s{}\[\]:,]|-?\d[\d.eE+-]{0,30}|true|false|null")
_DIGIT = re.compile(r"\d")
_COUNTS = re.compile(r"type|index|id|status|stop_reason|\w*_tokens|token_usage")
# Fields whose values are words of a protocol.
_TELLING = frozenset(
    ("type", "role", "object", "finish_reason", "stop_reason", "status", "code")
)
# What stands below these is a user's, whatever the fields are called.
_OWN = frozenset(
    ("input", "args", "arguments", "parameters", "properties", "input_schema")
)


def hide_content(capture: Capture) -> Capture:
    """Return the capture without what a user or a model said."""
    texts: dict[tuple[Hop, int], str] = {}
    places: dict[tuple[Hop, int], int] = {}
    for piece in capture.pieces:
        stream = piece.hop, piece.attempt
        if stream not in texts:
            texts[stream] = hide_text(capture.text(*stream))
            places[stream] = 0
    return Capture(capture.facts, tuple(_hide_pieces(capture, texts, places)))


def _hide_pieces(
    capture: Capture,
    texts: dict[tuple[Hop, int], str],
    places: dict[tuple[Hop, int], int],
) -> Iterator[Piece]:
    """Cut the hidden texts where the pieces were cut."""
    for piece in capture.pieces:
        stream = piece.hop, piece.attempt
        at = places[stream]
        places[stream] = end = at + len(piece.text)
        yield piece._replace(text=texts[stream][at:end])


def hide_text(text: str) -> str:
    """Return a text of the same length in which nothing can be read."""
    shown: list[str] = []
    at, counts = 0, False
    for string in find_strings(text):
        shown.append(_hide_between(text[at : string.start], counts=counts))
        content = text[string.start : string.end]
        tells = _tells(string, content)
        shown.append(content if tells else _hide(content))
        at = string.end
        counts = string.is_key and tells and _COUNTS.fullmatch(content) is not None
    shown.append(_hide_between(text[at:], counts=counts))
    return "".join(shown)


def _tells(string: JsonString, content: str) -> bool:
    """Tell whether a string says nothing of a user's."""
    if content == MARK:
        return True
    if _OWN.intersection(string.path):
        return False
    if string.is_key:
        return _KEY.fullmatch(content) is not None
    last = string.path[-1] if string.path else ""
    return last in _TELLING and _WORD.fullmatch(content) is not None


def _hide(content: str) -> str:
    return _HIDDEN.sub(lambda match: _like(match[0]), content)


def _like(found: str) -> str:
    """Keep an escape of JSON, unless it stands for any letter."""
    return found if len(found) == 2 else "x" * len(found)


def _hide_between(text: str, *, counts: bool) -> str:
    """Hide what stands between strings, but for JSON and the frames of events.

    Digits become ones, unless the number `counts` something.
    """
    lines = text.splitlines(keepends=True)
    return "".join(_hide_line(line, counts=counts) for line in lines)


def _hide_line(line: str, *, counts: bool) -> str:
    shown: list[str] = []
    at = 0
    if frame := _FRAME.match(line):
        shown.append(frame[0])
        at = frame.end()
    while at < len(line):
        if line[at] == '"':
            shown.append('"')
            at += 1
        elif literal := _LITERAL.match(line, at):
            shown.append(literal[0] if counts else _DIGIT.sub("1", literal[0]))
            at = literal.end()
        else:
            shown.append("x")
            at += 1
    return "".join(shown)
