"""Remove secrets from what passed, before any of it reaches the disk.

The pieces of a hop are joined first: a read may end within a key. Of headers only the
values of harmless ones stay, of addresses no value of a query and no user.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from byok.capture.capture import Piece
from byok.capture.spans import HiddenSpan, find_spans
from byok.errors import UpstreamGarbled
from byok.record import Head, Hop
from byok.redact import MARK, Redactor
from byok.wire.inflate import Inflate

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
_ANSWERS = (Hop.FROM_UPSTREAM, Hop.TO_CLIENT)
_TAIL = 4096  # characters before a place where something is missing
_MOST_ODD = 0.1  # of the characters; what has more is no text


class RawPiece(NamedTuple):
    """What passed, as it was: a head, bytes, or how many bytes were left out."""

    at: float
    hop: Hop
    attempt: int
    content: bytes | Head | int


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
