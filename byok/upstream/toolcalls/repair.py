"""Repair the arguments of a tool call, and never guess.

Why so strict: arguments are commands that run and files that are written. A wrong guess
does damage that nobody sees; a refused call costs one more request. So every value of
the result stands in the model's own text, or is a default that the tool's schema
declares. Text that parses is passed on byte for byte, except for lossless conversions
to the types of the schema ("5" where an integer is wanted).

Repaired, because there is only one meaning: code fences and words around the object,
JSON inside a JSON string, Python quotes and literals, trailing commas, the same object
twice, `{}` before the real arguments, brackets closed once too often after the object,
missing required fields with a declared default.

Refused: whatever is cut. A missing last brace looks just like a cut stream, and the
rest of the command is unknown. Also refused: a backslash before a character that JSON
does not escape. It may belong to a regular expression, a Windows path or doubled
escaping, and each wants another reading. Earlier versions read Python escapes in double
quotes as well; that changed shell commands and files. The model is asked again instead
(`correction.py`).

What breaks if this changes: a wider repair acts on text that the model did not write. A
narrower one drops calls that agents need, since local models often send fences and
Python literals. Integers beyond 64 bits must not pass through orjson, which rounds
them. The parser with its own rules is `core/wire/lenient_json.py`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from byok.core.chat import Json, RepairMode
from byok.core.wire.json_body import is_object, parse_json, write_json
from byok.core.wire.lenient_json import BrokenJson, parse_lenient, parse_run
from byok.upstream.toolcalls.coerce import coerce, fill_missing

_FENCE = "```"
_FENCE_LABEL = re.compile(r"[A-Za-z0-9_-]*[ \t\r]*\Z")
_JSON_CHARS = frozenset('{}[]"')
_LONG_NUMBER = re.compile(r"[0-9]{19}")
_DECODED_TWICE = 3


@dataclass(frozen=True, slots=True)
class Repair:
    """One repaired call, for the log."""

    tool: str
    before: str
    after: str
    rule: str


# Another source for required properties: (arguments, schema) -> those to set.
Supply: TypeAlias = Callable[[Mapping[str, Any], Json], Mapping[str, Any]]


class Unrepairable(ValueError):
    """The arguments are cut or not a JSON object; the call must not be passed on.

    If they are not `cut`, `at` is the index of the first wrong character, or 0 where
    none is known.
    """

    def __init__(self, message: str, at: int = 0, *, cut: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.cut = cut


def repair_arguments(
    raw: str,
    schema: Json | None,
    *,
    mode: RepairMode = RepairMode.LOSSLESS,
    supply: Supply | None = None,
) -> tuple[str, list[str]]:
    """Return the JSON text of an object, and the rules that were applied.

    With `schema` None (the tool was not offered) only the syntax is repaired. `supply`
    may return values for required properties that are missing or blank.

    Raises:
        Unrepairable: the text is cut, or is not a JSON object, or would have to be
            repaired although `mode` is OFF.
    """
    try:
        value, rules = _read(raw)
    except Unrepairable:
        if is_object(raw):  # it has a number beyond the range of a float
            return raw, []
        raise
    if mode is RepairMode.OFF:
        return _require_json(raw or "{}"), []
    if schema is not None:
        value = fill_missing(value, schema, rules)
        if supply is not None and (added := supply(value, schema)):
            value = {**value, **added}
            rules.append("filled from the conversation: " + ", ".join(sorted(added)))
        if mode is RepairMode.FILL:
            value = fill_missing(value, schema, rules, invent=True)
        value = coerce(value, schema, rules)
    return (raw, []) if not rules else (_write(value), rules)


def _require_json(raw: str) -> str:
    if is_object(raw):
        return raw
    raise Unrepairable("not JSON, and tools.repair is off")


def _read(raw: str) -> tuple[dict[str, Any], list[str]]:
    """Read the text as an object: as strict JSON, or else with every known liberty."""
    rules: list[str] = []
    text = raw
    for _ in range(_DECODED_TWICE):
        if not text.strip():
            return {}, [*rules, "empty arguments"]
        try:
            value, liberties = _strictly(text)
        except (ValueError, RecursionError):
            value, liberties = _loosely(text)
        rules += liberties
        if value is None:
            return {}, [*rules, "null arguments"]
        if isinstance(value, dict):
            return value, rules
        if not isinstance(value, str):
            break
        rules.append("double-encoded JSON")
        text = value
    raise Unrepairable("not a JSON object")


def _parse(text: str) -> Any:
    return parse_json(text.encode("utf-8", "surrogatepass"))


def _strictly(text: str) -> tuple[Any, list[str]]:
    """Parse JSON, without orjson if it has integers beyond 64 bits, which it rounds."""
    return parse_lenient(text) if _LONG_NUMBER.search(text) else (_parse(text), [])


def _loosely(text: str) -> tuple[Any, list[str]]:
    """Try each possible reading of the text; the first complete value counts."""
    failures: list[BrokenJson] = []
    for candidate, liberty in _candidates(text):
        try:
            values, rules = parse_run(candidate)
        except BrokenJson as error:
            failures.append(error)
            continue
        value, more = _one(values)
        return value, [*liberty, *rules, *more]
    first, cut = failures[0], any(error.cut for error in failures)
    raise Unrepairable(str(first), first.at, cut=cut) from first


def _one(values: list[Any]) -> tuple[Any, list[str]]:
    """Return the single value that several values in a row stand for.

    Gateways send `{}` before the arguments, or the arguments twice.
    """
    if len(values) == 1:
        return values[0], []
    values = [{} if value is None else value for value in values]
    if not all(isinstance(value, dict) for value in values):
        raise Unrepairable("several values in a row")
    distinct = {_write(value): value for value in values}
    rule = "repeated object"
    if len(distinct) > 1:
        distinct.pop("{}", None)
        rule = "empty object beside another"
    if len(distinct) > 1:
        raise Unrepairable("several different objects in a row")
    return next(iter(distinct.values())), [rule]


def _candidates(text: str) -> list[tuple[str, list[str]]]:
    """List the possible readings: the text, its fenced part, from first { to last }."""
    out: list[tuple[str, list[str]]] = [(text, [])]
    if (fenced := _inside_fence(text)) is not None:
        out.append((fenced, ["code fence"]))
    start, end = text.find("{"), text.rfind("}") + 1
    if 0 <= start < end and not _has_json(text[:start] + text[end:]):
        out.append((text[start:end], ["stray text"]))
    return out


def _inside_fence(text: str) -> str | None:
    """Return the content of the first code fence, unless JSON stands outside of it."""
    start = text.find(_FENCE)
    line_end = text.find("\n", start)
    end = text.find(_FENCE, line_end)
    if start < 0 or line_end < 0 or end < 0:
        return None
    label = text[start + len(_FENCE) : line_end]
    if not _FENCE_LABEL.match(label) or _has_json(text[:start] + text[end + 3 :]):
        return None
    return text[line_end + 1 : end].strip()


def _has_json(text: str) -> bool:
    return not _JSON_CHARS.isdisjoint(text)


def _write(value: Any) -> str:
    return write_json(value).decode()
