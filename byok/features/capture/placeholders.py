"""Replace texts by placeholders of equal length; the structure of JSON stays.

What is kept: marks of JSON, white space, names of fields, counts, and the few values
that tell what an event is. Of everything else each letter becomes an `x`, so that a
report shows where a call was cut or how much was said, and not what.
"""

import re
from collections.abc import Iterator

from byok.features.capture.capture import Capture, Piece
from byok.features.capture.json_strings import JsonString, find_strings
from byok.record import Hop
from byok.redact import MARK

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
