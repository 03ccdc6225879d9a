"""Repair the arguments of a tool call, and never guess.

Why so strict: arguments are commands that run and files that are written. A wrong guess
does damage that nobody notices; a refused call costs one more request. So every value
of the result comes from the model's own text, or is a default that the tool's schema
declares. Text that parses is passed on byte for byte, except for lossless conversions
to the types of the schema ("5" for an integer).

Repaired, because there is only one meaning: code fences and words around the object,
JSON inside a JSON string, Python quotes and literals, trailing commas, the same object
twice, `{}` before the real arguments, brackets closed once too often after the object,
missing required fields with a declared default.

Refused: arguments that were cut off. A missing last brace looks just like a cut stream,
and the rest of the command is unknown. Also refused: a backslash before a character
that JSON does not escape. It may belong to a regular expression, a Windows path or
doubled escaping, and each requires another reading. Earlier versions read Python
escapes in double quotes as well; that changed shell commands and files. The model is
asked again instead (`correction_request` in `assemble.py`).

Of a schema only `type`, `properties`, `items`, `required`, `default` and `enum` are
read, and `additionalProperties` by `is_valid`. References are not followed and patterns
are not executed, so a hostile schema costs no more than one walk over the value.

The usual required fields of a memory tool (title, content, context) repeat the user's
last message, so its text fills them if they are absent, blank, or shorter than the
tool's schema allows: no client stores such a memory. No other field is ever filled in.

What breaks if this changes: a wider repair acts on text that the model did not write. A
narrower one drops calls that agents need, since local models often send fences and
Python literals. Integers beyond 64 bits must not pass through orjson, which rounds
them. The parser with its own rules is `core/wire/lenient_json.py`.
"""

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from byok.core.chat import Json, RepairMode
from byok.core.late import compile_late
from byok.core.wire.json_body import is_object, parse_json, write_json
from byok.core.wire.lenient_json import BrokenJson, parse_lenient, parse_run

_MAX_DEPTH = 32  # of nested values in a schema
_MAX_DECODINGS = 3  # of JSON inside a JSON string
_MAX_EXACT_FLOAT = 2**53
_EMPTY: dict[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [],
    "object": {}, "null": None,
}  # fmt: skip
_FENCE = "```"
_FENCE_LABEL = compile_late(r"[A-Za-z0-9_-]*[ \t\r]*\Z")
_JSON_CHARS = frozenset('{}[]"')
_LONG_NUMBER = compile_late(r"[0-9]{19}")

# A source of values for required properties: (arguments, schema) -> values to set.
Supply: TypeAlias = Callable[[Mapping[str, Any], Json], Mapping[str, Any]]


class Repair(Struct, frozen=True):
    """One repaired call, for the log."""

    tool: str
    before: str
    after: str
    rule: str


class Unrepairable(ValueError):
    """The arguments are cut or not a JSON object; the call must not be passed on.

    If they are not `cut`, `offset` is the index of the first wrong character, or 0 if
    it is unknown.
    """

    def __init__(self, message: str, offset: int = 0, *, cut: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.cut = cut


# ---- Values and their schema


def coerce(
    value: Any, schema: Json, rules: list[str], *, path: str = "", depth: int = 0
) -> Any:
    """Return the value with lossless conversions; each adds a line to `rules`."""
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return value
    types = _types(schema)
    if types and not any(_IS[kind](value) for kind in types):
        converted = [(kind, new) for kind in types for new in _TO[kind](value)]
        if len(converted) == 1 and _is_allowed(converted[0][1], schema):
            kind, value = converted[0]
            rules.append(f"{path or 'arguments'}: type made {kind}")
    if isinstance(value, dict):
        properties = _mapping(schema.get("properties"))
        return {
            key: coerce(
                item,
                _mapping(properties.get(key)),
                rules,
                path=f"{path}.{key}" if path else key,
                depth=depth + 1,
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = _mapping(schema.get("items"))
        return [
            coerce(item, items, rules, path=f"{path}[]", depth=depth + 1)
            for item in value
        ]
    return value


def is_valid(value: Any, schema: Json, depth: int = 0) -> bool:
    """Tell whether a schema allows a value, by the keywords that are read here."""
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return True
    types = _types(schema)
    if types and not any(_IS[kind](value) for kind in types):
        return False
    if not _is_allowed(value, schema):
        return False
    if isinstance(value, dict):
        properties = _mapping(schema.get("properties"))
        is_closed = schema.get("additionalProperties") is False
        if missing_required(value, schema) or (is_closed and value.keys() - properties):
            return False
        pairs = ((item, _mapping(properties.get(key))) for key, item in value.items())
        return all(is_valid(item, inner, depth + 1) for item, inner in pairs)
    if isinstance(value, list):
        items = _mapping(schema.get("items"))
        return all(is_valid(item, items, depth + 1) for item in value)
    return True


def fill_missing(
    value: dict[str, Any], schema: Json, rules: list[str], *, invent: bool = False
) -> dict[str, Any]:
    """Add the declared defaults of required properties that are missing.

    With `invent`, a required property without a default gets the empty value of its
    type.
    """
    properties = _mapping(schema.get("properties"))
    added: dict[str, Any] = {}
    for name in missing_required(value, schema):
        declared = _mapping(properties.get(name))
        kinds = _types(declared)
        if "default" in declared:
            added[name] = copy.deepcopy(declared["default"])
            rules.append(f"{name}: schema default")
        elif invent and kinds:
            added[name] = copy.deepcopy(_EMPTY[kinds[0]])
            rules.append(f"{name}: filled with an empty {kinds[0]}")
    return {**value, **added} if added else value


def missing_required(value: Mapping[str, Any], schema: Json) -> list[str]:
    """List the required properties that the value lacks."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return [n for n in names if isinstance(n, str) and n not in value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _types(schema: Json) -> list[str]:
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    return [kind for kind in kinds if isinstance(kind, str) and kind in _IS]


def _is_allowed(value: Any, schema: Json) -> bool:
    choices = schema.get("enum")
    return not isinstance(choices, list) or value in choices


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": _is_integer,
    "number": lambda v: _is_integer(v) or isinstance(v, float),
    "boolean": lambda v: isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def _from_text(kind: str) -> Callable[[Any], list[Any]]:
    """Return a converter of strings that are just the JSON text of a type."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, str):
            return []
        try:
            parsed, liberties = parse_lenient(value)  # which rounds no number
        except ValueError:
            return []
        return [parsed] if _IS[kind](parsed) and not liberties else []

    return read


def _to_integer(value: Any) -> list[Any]:
    if isinstance(value, float):
        is_exact = value.is_integer() and abs(value) < _MAX_EXACT_FLOAT
        return [int(value)] if is_exact else []
    return _from_text("integer")(value)


_TO: dict[str, Callable[[Any], list[Any]]] = {
    "string": lambda v: [str(v)] if _is_integer(v) else [],
    "integer": _to_integer,
    "number": _from_text("number"),
    "boolean": lambda v: (
        [v.strip().lower() == "true"]
        if isinstance(v, str) and v.strip().lower() in ("true", "false")
        else []
    ),
    "array": _from_text("array"),
    "object": _from_text("object"),
    "null": lambda v: [],
}


# ---- The text of the arguments


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
        if is_object(raw):  # with a number beyond the range of a float
            return raw, []
        raise
    if mode is RepairMode.OFF:
        if not is_object(raw or "{}"):
            raise Unrepairable("not JSON, and tools.repair is off")
        return raw or "{}", []
    if schema is not None:
        value = fill_missing(value, schema, rules)
        if supply is not None and (added := supply(value, schema)):
            value = {**value, **added}
            rules.append("filled from the conversation: " + ", ".join(sorted(added)))
        if mode is RepairMode.FILL:
            value = fill_missing(value, schema, rules, invent=True)
        value = coerce(value, schema, rules)
    return (raw, []) if not rules else (_write(value), rules)


def _read(raw: str) -> tuple[dict[str, Any], list[str]]:
    """Read the text as an object: as strict JSON, or else with every known liberty."""
    rules: list[str] = []
    text = raw
    for _ in range(_MAX_DECODINGS):
        if not text.strip():
            return {}, [*rules, "empty arguments"]
        try:
            if _LONG_NUMBER.search(text):  # orjson rounds integers beyond 64 bits
                value, liberties = parse_lenient(text)
            else:
                raw_text = text.encode("utf-8", "surrogatepass")
                value, liberties = parse_json(raw_text), []
        except (ValueError, RecursionError):
            value, liberties = _parse_leniently(text)
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


def _parse_leniently(text: str) -> tuple[Any, list[str]]:
    """Try each possible reading of the text; the first complete value counts."""
    failures: list[BrokenJson] = []
    for candidate, liberty in _candidates(text):
        try:
            values, rules = parse_run(candidate)
        except BrokenJson as error:
            failures.append(error)
            continue
        value, merge_rules = _merge_values(values)
        return value, [*liberty, *rules, *merge_rules]
    first, cut = failures[0], any(error.cut for error in failures)
    raise Unrepairable(str(first), first.at, cut=cut) from first


def _merge_values(values: list[Any]) -> tuple[Any, list[str]]:
    """Return the only value that several values in a row can mean, with the rule.

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
    candidates: list[tuple[str, list[str]]] = [(text, [])]
    if (fenced := _fence_content(text)) is not None:
        candidates.append((fenced, ["code fence"]))
    start, end = text.find("{"), text.rfind("}") + 1
    if 0 <= start < end and not _has_json(text[:start] + text[end:]):
        candidates.append((text[start:end], ["stray text"]))
    return candidates


def _fence_content(text: str) -> str | None:
    """Return the content of the first code fence, unless there is JSON outside."""
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


# ---- Memory tools, whose missing fields the user's message fills


_TITLE_FIELDS = frozenset({"title", "name", "summary"})
_CONTENT_FIELDS = frozenset({"memory", "content", "text"})
_CONTEXT_FIELDS = frozenset({"context", "scenario"})
_MAX_TITLE_CHARS = 80
# A description of storing, so not "shows memory usage" or "searches memories".
_STORES = compile_late(
    r"\b(?:remembers?|memori[sz]es?)\b"
    r"|\b(?:saves?|stores?|adds?|creates?|records?|writes?|keeps?)\b[^.\n]{0,40}"
    r"\bmemor(?:y|ies)\b"
    r"|(?:保存|存储|添加|创建|写入|记录)[^。\n]{0,20}记忆|记住",
    re.IGNORECASE,
)
# By the script of the user's text: when to use the memory, and an introduction of the
# user's text.
_SENTENCES = (
    (
        compile_late(r"[\u3040-\u30ff]"),
        ("同じ質問がまた出たときに使う。", "ユーザーの発言："),
    ),
    (
        compile_late(r"[\uac00-\ud7af]"),
        ("같은 질문이 다시 나오면 사용한다.", "사용자의 말: "),
    ),
    (compile_late(r"[\u4e00-\u9fff]"), ("再次遇到同样的问题时使用。", "用户说：")),
)
_ENGLISH = "Use this when the same question comes up again.", "The user said: "
_MIN_SCRIPT_SHARE = 0.2  # of the characters, in a text of that script


def is_memory_tool(name: str, description: str = "") -> bool:
    """Tell by its name or its description whether a tool stores memories."""
    lowered = name.lower()
    if "memory" in lowered or "remember" in lowered:
        return True
    return _STORES.search(description) is not None


def memory_supply(user_text: str) -> Supply:
    """Return a `Supply` for the calls of memory tools.

    It fills missing required text fields with `user_text`, the user's last message.
    """

    def supply(arguments: Mapping[str, Any], schema: Json) -> Mapping[str, Any]:
        required, text = schema.get("required"), " ".join(user_text.split())
        names = required if text and isinstance(required, list) else []
        return {
            name: value
            for name in names
            if isinstance(name, str)
            and (value := _field_from(text, name))
            and _lacks_text(name, arguments, schema)
        }

    return supply


def _lacks_text(name: str, arguments: Mapping[str, Any], schema: Json) -> bool:
    """Tell whether a field that may be text has no text that a client would store."""
    declared = _mapping(_mapping(schema.get("properties")).get(name))
    kind = declared.get("type", "string")
    kinds = kind if isinstance(kind, list) else [kind]
    if "string" not in kinds:
        return False
    value, min_length = arguments.get(name), declared.get("minLength")
    if not isinstance(value, str):
        return name not in arguments or (value is None and "null" not in kinds)
    is_short = isinstance(min_length, int) and len(value) < min_length
    return not value.strip() or is_short


def _field_from(text: str, name: str) -> str:
    """Return the value of a memory's field, "" for an unknown field."""
    sentences = (
        sentences
        for script, sentences in _SENTENCES
        if len(script.findall(text)) >= _MIN_SCRIPT_SHARE * len(text)
    )
    use, intro = next(sentences, _ENGLISH)
    if name in _TITLE_FIELDS:
        return text[:_MAX_TITLE_CHARS]
    if name in _CONTENT_FIELDS:
        return f"{text}\n{use}"
    if name in _CONTEXT_FIELDS:
        return f"{intro}{text[:_MAX_TITLE_CHARS]}"
    return ""


# ---- The names of offered tools, as models spell them


_MAX_NAME_CHARS = 256  # longer texts are no names
_NAMESPACES = (
    *("functions", "function", "tools", "tool", "default_api", "api", "namespace"),
    *("multi_tool_use", "recipient_name", "recipient", "python", "assistant", "call"),
)
_NAMESPACE_PREFIX = compile_late(
    rf"(?:to=)?(?:(?:{'|'.join(_NAMESPACES)})(?:\.|::?|/))*", re.IGNORECASE
)
_MARK_AND_TAIL = compile_late(r"[<({\[|｜\"'`\s].*", re.DOTALL)
_SUFFIX = compile_late(r":\d+\Z|\.call\Z")  # Kimi's ids, Llama's built-in tools
_SEPARATORS = compile_late(r"[\s._-]+")


class ToolNames:
    """Finds offered tools by the names that a model uses for them.

    Models wrap the names of tools as they learned it elsewhere: in the namespace of
    their training (`functions.view`, `default_api.view`), with the text that follows a
    name in their chat template (`view<|channel|>commentary`), in another case (`View`).

    `sent` maps the names that were sent to the model to the original names.
    """

    def __init__(self, sent: Mapping[str, str]) -> None:
        self._sent = sent
        self._by_folded: dict[str, set[str]] = {}
        for name, original in sent.items():
            self._by_folded.setdefault(_fold(name), set()).add(original)
        self._beginnings = (*map(_fold, sent), *map(_fold, _NAMESPACES))

    def find(self, name: str) -> str | None:
        """Return the original name of the only offered tool that a name can mean."""
        if (original := self._sent.get(name)) is not None:
            return original
        if len(name) > _MAX_NAME_CHARS:
            return None
        bare = _unwrap(name)
        if (original := self._sent.get(bare)) is not None:
            matches = self._by_folded.get(_fold(name.strip()), set()) | {original}
        else:
            matches = {
                tool
                for spelling in (name.strip(), bare)
                for tool in self._by_folded.get(_fold(spelling), ())
            }
        return matches.pop() if len(matches) == 1 else None

    def can_begin(self, text: str) -> bool:
        """Tell whether a text may be the beginning of a tool's name."""
        bare = _fold(_NAMESPACE_PREFIX.sub("", text, count=1))
        return any(name.startswith(bare) for name in self._beginnings)


def _unwrap(name: str) -> str:
    name = _NAMESPACE_PREFIX.sub("", name.strip(" \t\r\n\"'`<"), count=1)
    return _SUFFIX.sub("", _MARK_AND_TAIL.sub("", name))


def _fold(name: str) -> str:
    return _SEPARATORS.sub("", name.casefold())
