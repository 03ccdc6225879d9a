"""Parsers of the markup in which families of models write their tool calls.

A parser gets the text between two markers and returns the calls in it, or None where
anything else stands there as well. Each walks over the text once. Sources: the chat
templates that the vendors publish with their models.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from byok.wire.lenient_json import BrokenJson, parse_lenient

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it; in XML all values are strings."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


Parser: TypeAlias = Callable[[str], list[WrittenCall] | None]


class Unfinished(ValueError):
    """The text ends within a value: a marker in it belonged to an argument."""


def parse_hermes(text: str) -> list[WrittenCall] | None:
    """Parse Hermes' and Qwen's JSON, or the XML of Qwen's coding models."""
    text = text.strip()
    return parse_functions(text) if text.startswith("<") else _one_or_more(text)


_FUNCTION = re.compile(r"\s*<function=([^>\s]+)>")
_PARAMETER = re.compile(r"\s*<parameter=([^>\s]+)>")


def parse_functions(text: str) -> list[WrittenCall] | None:
    """Parse `<function=NAME><parameter=KEY>VALUE</parameter></function>`.

    Llama writes the arguments as JSON instead of the parameters.
    """
    calls: list[WrittenCall] = []
    for start, inner in _elements(text, _FUNCTION, "</function>") or ():
        if inner.lstrip().startswith("{"):
            arguments = _json(inner)
        else:
            found = _elements(inner, _PARAMETER, "</parameter>")
            if found is None:
                return None
            arguments = {m[1]: _without_breaks(value) for m, value in found}
        if not isinstance(arguments, dict):
            return None
        calls.append(WrittenCall(start[1], arguments))
    return calls or None


_NAME = re.compile(r"[\w.-]+")
_KEY = re.compile(r"\s*<arg_key>([^<]*)</arg_key>\s*<arg_value>")


def parse_glm(text: str) -> list[WrittenCall] | None:
    """Parse GLM's name, and pairs of `<arg_key>` and `<arg_value>`."""
    name, mark, rest = text.partition("<arg_key>")
    found = _elements(mark + rest, _KEY, "</arg_value>")
    if found is None or not _NAME.fullmatch(name.strip()):
        return None
    return [WrittenCall(name.strip(), {m[1].strip(): value for m, value in found})]


_KIMI = re.compile(
    r"\s*<\|tool_call_begin\|>\s*((?:functions\.)?([\w.-]+?)(?::\d+)?)\s*"
    r"<\|tool_call_argument_begin\|>"
)


def parse_kimi(text: str) -> list[WrittenCall] | None:
    """Parse Kimi's calls, whose ids are `functions.NAME:NUMBER`."""
    found = _elements(text, _KIMI, "<|tool_call_end|>")
    return _with_json([(m[2], inner, m[1]) for m, inner in found or ()])


_DEEPSEEK = re.compile(
    r"\s*<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*([\w.-]+)\s*(?:<｜tool▁sep｜>)?"
)


def parse_deepseek(text: str) -> list[WrittenCall] | None:
    """Parse the calls of DeepSeek up to V3.1; the JSON may stand in a code fence."""
    found = _elements(text, _DEEPSEEK, "<｜tool▁call▁end｜>")
    return _with_json([(m[1], _without_fence(inner), "") for m, inner in found or ()])


def invoke_parser(prefix: str) -> Parser:
    """Return the parser of `<invoke name=...><parameter name=...>` with a prefix."""
    mark = re.escape(prefix)
    invoke = re.compile(rf'\s*<{mark}invoke name="([^"]+)">')
    parameter = re.compile(
        rf'\s*<{mark}parameter name="([^"]+)"(?: string="(true|false)")?>'
    )

    def parse(text: str) -> list[WrittenCall] | None:
        calls: list[WrittenCall] = []
        for start, inner in _elements(text, invoke, f"</{prefix}invoke>") or ():
            found = _elements(inner, parameter, f"</{prefix}parameter>")
            if found is None:
                return None
            values = {m[1]: _json(v) if m[2] == "false" else v for m, v in found}
            calls.append(WrittenCall(start[1], values))
        return calls or None

    return parse


def parse_llama(text: str) -> list[WrittenCall] | None:
    """Parse one or more JSON objects with a name and parameters."""
    return _one_or_more(text)


_ARGS = re.compile(
    r"\s*(?:\[TOOL_CALLS\]\s*)?([\w.-]+)\s*(?:\[CALL_ID\]\s*([\w-]+)\s*)?\[ARGS\]"
)


def parse_mistral(text: str) -> list[WrittenCall] | None:
    """Parse a list in JSON, or names and arguments with `[ARGS]` between."""
    if text.lstrip().startswith(("[", "{")):
        return _one_or_more(text)
    calls: list[WrittenCall] = []
    at = 0
    while start := _ARGS.match(text, at):
        arguments, at = _decode(text, start.end())
        if not isinstance(arguments, dict):
            return None
        calls.append(WrittenCall(start[1], arguments, start[2] or ""))
    return None if text[at:].strip() else calls or None


def _one_or_more(text: str) -> list[WrittenCall] | None:
    """Parse objects in a row, or lists of them."""
    calls: list[WrittenCall] = []
    at = _after(text, 0)
    while at < len(text):
        value, at = _decode(text, at)
        for item in value if isinstance(value, list) else [value]:
            if (call := _from_object(item)) is None:
                return None
            calls.append(call)
        at = _after(text, at)
    return calls or None


def _after(text: str, at: int) -> int:
    """Skip white space, and the separators between objects."""
    while at < len(text) and text[at] in " \n\r\t;,":
        at += 1
    return at


def _from_object(item: Any) -> WrittenCall | None:
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    item = inner if isinstance(inner, dict) else item
    name = item.get("name", inner)
    arguments = item.get("arguments", item.get("parameters"))
    if isinstance(arguments, str):
        arguments = _json(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    call_id = item.get("id")
    return WrittenCall(name, arguments, call_id if isinstance(call_id, str) else "")


def _with_json(found: list[tuple[str, str, str]]) -> list[WrittenCall] | None:
    """Return calls of names, arguments in JSON, and ids."""
    calls = [WrittenCall(name, _json(text), call_id) for name, text, call_id in found]
    whole = all(isinstance(call.arguments, dict) for call in calls)
    return calls if calls and whole else None


def _elements(
    text: str, opener: re.Pattern[str], closer: str
) -> list[tuple[re.Match[str], str]] | None:
    """Divide a text into elements; None where other text stands between them."""
    found: list[tuple[re.Match[str], str]] = []
    at = 0
    while start := opener.match(text, at):
        end = text.find(closer, start.end())
        if end < 0:
            return None
        found.append((start, text[start.end() : end]))
        at = end + len(closer)
    return None if text[at:].strip() else found


def _decode(text: str, at: int) -> tuple[Any, int]:
    """Read one JSON value; return it, and where it ends. A broken one is None.

    Raises:
        Unfinished: the text ends within the value.
    """
    begin = _SPACE.match(text, at)
    start = begin.end() if begin else at
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _json(text[start:]), len(text)


def _json(text: str) -> Any:
    """Read a JSON value that is the whole text; a broken one is None."""
    try:
        return parse_lenient(text.strip())[0]
    except BrokenJson as error:
        if error.cut:
            raise Unfinished from error
        return None
    except (ValueError, RecursionError):
        return None


def _without_breaks(value: str) -> str:
    """Remove the line break after the opening and before the closing tag."""
    return value.removeprefix("\n").removesuffix("\n")


def _without_fence(text: str) -> str:
    text = text.strip().removeprefix("```json").removeprefix("```")
    return text.removesuffix("```")
