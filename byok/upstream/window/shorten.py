"""Shorten what is needed least: retrieved code, old tool results, images."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from byok.core.chat import (
    ContextPart,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.core.truncate import fair_share, truncate_middle
from byok.core.wire.json_body import parse_json

NO_IMAGE = TextPart("[a picture stood here; it was left out to save room]")
_ENDS = (1500, 500)  # characters of an old result that are kept first
_WORTH_SHOWING = 1000  # bytes of code

_LINES = "\n[… {} lines were left out here to save room …]\n"
_LINES_LEFT_OUT = re.compile(r"\[… (\d{1,9}) lines were left out here to save room …\]")
_OUTLINE = re.compile(r"\[.*; the rest was left out to save room\]")
_SHORT = 200  # characters: such a result says as much as a line about it
_LONGEST_ARGUMENT, _LONGEST_ERROR = 100, 200  # characters
_ARGUMENTS = (
    *("path", "file_path", "filePath", "target_file", "filename"),
    *("command", "cmd", "query", "information_request", "pattern", "url"),
)
_COMMANDS = ("command", "cmd")
_EXIT_CODE = re.compile(
    r"(?:return-code>|exit(?:ed with)?[ -](?:code|status):?)\s*(-?\d{1,9})", re.I
)
_REFERENCE = re.compile(r"reference[-_ ]?id:?\s*\S{1,100}", re.I)
_AT_AN_END = 300  # characters: there stand exit codes, and the id of the whole result

# Shortens a message with the help of the calls before it.
Shorten: TypeAlias = Callable[[Message, Mapping[str, ToolCall]], Message]


def keep_ends_of_results(message: Message, _: Mapping[str, ToolCall]) -> Message:
    """Leave out the middles of a message's tool results, and its images.

    A message with nothing to shorten is returned as the same object.
    """
    return _replace_parts(message, _keep_ends)


def outline_results(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    """Replace tool results by one line each: tool, main argument and outcome.

    `calls` has the calls by their ids. Short results stay, and so does what already is
    such a line: a second compaction leaves it byte for byte.
    """
    return _replace_parts(message, lambda r: _outline(r, calls.get(r.call_id)))


LEVELS: tuple[Shorten, ...] = (keep_ends_of_results, outline_results)
"""In the order in which room is sought."""


def _replace_parts(
    message: Message, shorter: Callable[[ToolResult], ToolResult]
) -> Message:
    if message.role not in (Role.TOOL, Role.USER):
        return message
    parts = tuple(_shorter(part, shorter) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _shorter(part: Part, shorter: Callable[[ToolResult], ToolResult]) -> Part:
    if isinstance(part, ImagePart):
        return NO_IMAGE
    return shorter(without_images(part)) if isinstance(part, ToolResult) else part


def _keep_ends(result: ToolResult) -> ToolResult:
    text, (head, tail) = result.content, _ENDS
    if len(text) <= head + tail + _SHORT:
        return result
    note = _LINES.format(text.count("\n", head, len(text) - tail))
    return replace(result, content=text[:head] + note + text[-tail:])


def _outline(result: ToolResult, call: ToolCall | None) -> ToolResult:
    text = result.content
    if len(text) <= _SHORT or _OUTLINE.fullmatch(text):
        return result
    key, argument = _main_argument(call)
    shown = f"{result.name} {argument}".strip()
    outcome = _outcome(result, is_command=key in _COMMANDS)
    if found := _REFERENCE.findall(text[-_AT_AN_END:]):
        outcome += f"; {' '.join(found[-1].split())}"
    line = f"[{shown}: {outcome}; the rest was left out to save room]"
    return replace(result, content=line)


def _main_argument(call: ToolCall | None) -> tuple[str, str]:
    """Return the name and the value, as one line, of what a call is about."""
    try:
        given = parse_json(call.arguments.encode("utf-8", "replace")) if call else {}
    except ValueError:  # byok passes on what a model wrote, whatever it is
        given = {}
    items = given.items() if isinstance(given, dict) else ()
    texts = {key: " ".join(v.split()) for key, v in items if isinstance(v, str)}
    key = next((key for key in (*_ARGUMENTS, *texts) if texts.get(key)), "")
    return key, _cut_line(texts.get(key, ""), _LONGEST_ARGUMENT)


def _outcome(result: ToolResult, *, is_command: bool) -> str:
    """Return how a call ended: its error, or its exit code and number of lines."""
    text = result.content
    if result.is_error:
        first = next((line for line in text.splitlines() if line.strip()), "")
        return f"error: {_cut_line(' '.join(first.split()), _LONGEST_ERROR)}"
    lines = text.count("\n") + (not text.endswith("\n"))
    for number in _LINES_LEFT_OUT.findall(text):
        lines += int(number) - 2  # the note stands on a line of its own
    ends = f"{text[:_AT_AN_END]}\n{text[-_AT_AN_END:]}"
    code = _EXIT_CODE.search(ends) if is_command else None
    ended = f"exit code {code[1]}" if code and int(code[1]) else "ok"
    return f"{ended}, {lines} line{'s' if lines > 1 else ''}"


def _cut_line(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[:longest]}…"


def without_images(result: ToolResult) -> ToolResult:
    """Return a result with a line of text instead of its images."""
    if not result.images:
        return result
    content = f"{result.content}\n{NO_IMAGE.text}"
    return replace(result, content=content, images=())


def shorter_system(messages: Sequence[Message], room: int) -> tuple[Message, ...]:
    """Cut the middles of system messages that have more than `room` bytes together.

    The size that is left is a power of two, so that it stays the same while what is
    known of a window changes a little: a prompt cache would miss.
    """
    most = 1 << max(0, room.bit_length() - 1)
    sizes = [len(p.text.encode("utf-8", "replace")) for p in _texts(messages)]
    cap = fair_share(sizes, most)
    return tuple(
        replace(m, parts=tuple(_cut(part, cap) for part in m.parts)) for m in messages
    )


def _texts(messages: Sequence[Message]) -> list[TextPart]:
    return [p for m in messages for p in m.parts if isinstance(p, TextPart)]


def _cut(part: Part, most: int) -> Part:
    if not isinstance(part, TextPart):
        return part
    size = len(part.text.encode("utf-8", "replace"))
    if size <= most:
        return part
    return replace(part, text=truncate_middle(part.text, most * len(part.text) // size))


def less_context(messages: Sequence[Message], excess: int) -> tuple[Message, ...]:
    """Remove about `excess` bytes of retrieved code from the last message.

    The end goes first, because the best matches stand first. A small rest goes as well.
    """
    if not messages:
        return ()
    *before, last = messages
    parts: list[Part] = []
    for part in last.parts:
        if isinstance(part, ContextPart):
            raw = part.text.encode("utf-8", "replace")
            kept = raw[: max(0, len(raw) - excess)].rpartition(b"\n")[0]
            excess -= len(raw) - len(kept)
            if len(kept) >= _WORTH_SHOWING:
                parts.append(ContextPart(kept.decode("utf-8", "replace")))
        else:
            parts.append(part)
    return (*before, replace(last, parts=tuple(parts)))


def without_context(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation without any retrieved code in its last message."""
    return less_context(messages, sys.maxsize)
