"""One grammar for the tool calls that models print, whatever model printed them.

A printed call is the name of an offered tool and arguments that its schema allows. All
known forms write these two in one of four ways, each between marks that carry nothing:

    {"name": "view", "arguments": {"path": "a"}}   an object of JSON, or a list of them
    view{"path": "a"}                              a name, then an object
    <invoke name="view"><parameter name="path">a   a name, then keys and values in tags
    view(path="a")                                 a call as in code

Marks are special tokens (`<|tool_call|>`, `<｜tool▁sep｜>`), tags (`<tool_call>`),
words in brackets (`[TOOL_CALLS]`), code fences, and a few words (`Action:`, `json`). So
a form that no table lists is read as well, if it consists of these. It is safe because
a text counts only if it contains nothing else, if each name is that of an offered tool,
and if the arguments are complete and valid. Sources: the chat templates that vendors
publish with their models, and reports of calls that arrived as text.

Everything here is a function of the text. `read_calls` raises `Unfinished` for a text
that may become calls, and `NotCalls` for one that cannot, so that a stream is buffered
only as long as needed. It walks over a text at most twice.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from byok.core.chat import Json
from byok.core.late import compile_late
from byok.core.wire.json_body import read_float
from byok.core.wire.lenient_json import BrokenJson, LenientParser, parse_lenient
from byok.upstream.toolcalls.repair import ToolNames, coerce, fill_missing, is_valid

MAX_CALLS = 64  # in one text
_MAX_FRAGMENT = 24  # characters at the end of a text that may be half of a mark


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


# Words that may come before a name, between it and the arguments, and after a call.
_BEFORE_NAME = _words(
    "to=|assistant|assistantcommentary|assistantanalysis|commentary|analysis|json|code"
    "|functools|await |print(|>>>|✿function✿:"
    "|function call|tool call|called function|calling|action:|tool:|function:|call:"
    "|tool call:|function call:|tool name:|function name:"
)
_BEFORE_ARGUMENTS = _words(
    "(json):|(json)|(json|json|code|commentary|=>|->|:|=|✿args✿:|action input:"
    "|arguments:|args:|parameters:|input:|tool input:|with args:|with arguments:"
)
_AFTER_CALL = _words(",|;|observation:|✿return✿:|✿return✿|✿result✿:|✿result✿")

# Keys of JSON objects: for the name, the arguments, inner calls, and others.
_NAME_KEYS = _words(
    "name|tool|tool_name|toolName|function|function_name|action|recipient_name"
)
_ARGUMENT_KEYS = _words(
    "arguments|args|parameters|params|input|kwargs|tool_input|toolInput|action_input"
    "|function_args"
)
_INNER_KEYS = _words(
    "tool_calls|toolCalls|function_calls|tool_uses|calls|function|function_call"
    "|functionCall|tool_call|toolCall|tool_use|call"
)
_ID_KEYS = _words("id|call_id|tool_call_id|tool_use_id")
_OTHER_KEYS = {
    *_ID_KEYS,
    *_words("type|index|role|content|refusal|thought|server_name"),
}

# Tags: those around calls, around names or all arguments, and around one argument.
HOLDER_WORDS = "tool|func|call|action|invoke|plugin"
_HOLDER = rf"[\w.-]*(?:{HOLDER_WORDS})[\w.-]*"
_PARTS = r"name|arguments|parameters|args|params|input|kwargs"
_ARGUMENT_TAGS = _words("parameter|param|arg|argument")
_IGNORED_TAGS = _words("server_name|thought|call_id|tool_call_id")
_NAME_ATTRIBUTES = _words("name|tool|function|key")
_NAMESPACE = r"(?:｜DSML｜|(?!\w+:opensource)[A-Za-z]\w*:)?"
_SUFFIX = r"(?::opensource)?"  # of Hunyuan 3
_M3 = r"\]<\]minimax\[>\["  # MiniMax M3 writes this token before each tag
# Kimi K3 writes tags as <|open|>call tool="view"<|sep|> and <|close|>call<|sep|>.
_SPECIAL = (
    r"(?!<\|(?:open|close)\|>)<[|｜][^<>|｜\"\n]{1,60}[|｜]>"
    r"|<\|[a-z_]{1,40}>|<[a-z_]{1,40}\|>"
)
_MARKS = compile_late(
    rf"(?:\s+|{_SPECIAL}|{_M3}|(?:```|~~~)[\w+-]*"
    rf"|</?{_NAMESPACE}(?:{_HOLDER}|{_PARTS}){_SUFFIX}\s*>"
    r"|<\|(?:open|close)\|>\w+<\|sep\|>"
    r"|</?(?:s|eos|end_of_turn|end_of_sentence|seed:eos|bot_end|think|code)>"
    r"|\[/?(?=[A-Za-z_]*(?:tool|call|args|func|action))(?!call_id)[A-Za-z_]+\]"
    r"|\[unused\d+\]|\[\|[a-z]+\|\])++",
    re.IGNORECASE,
)
_DELIMITER = compile_late(
    rf"\s*(?:{_SPECIAL}|{_M3}|<\|open\|>|</?{_NAMESPACE}(?!tools>){_HOLDER}[\s=>:]"
    r"|\[/?(?=[A-Z_]*(?:TOOL|CALL|ARGS))[A-Z_]+\]|```(?:tool|function|action)"
    r"|functools\[|\[unused\d+\]"
    r"|>>>|✿|call:\w|(?:assistant ?)?(?:commentary |analysis )?\s*to=|Action:"
    r"|\[?called function|function call<)",
    re.IGNORECASE,
)
_TAG = compile_late(
    rf"(?:{_M3})?<(?P<close>/?){_NAMESPACE}(?P<tag>[\w.-]+){_SUFFIX}"
    r"(?:=[\"']?(?P<value>[^\"'<>\n]{1,200})[\"']?|(?P<attributes>\s[^<>]{0,400}?))?"
    r"\s*(?P<empty>/?)>"
    r"|<\|(?P<k3>open|close)\|>(?P<k3_tag>\w+)(?P<k3_attributes>[^<>]{0,400})<\|sep\|>"
)
_ATTRIBUTE = compile_late(r"([\w-]+)\s*=\s*[\"']?([^\"'>]*)[\"']?")
_HOLDER_TAG = compile_late(_HOLDER, re.IGNORECASE)
_PART = compile_late(rf"\s+|</?({_PARTS})>")
# A mark or a tag that is not complete; group 1 is the name of a tag that is.
_HALF_TAG = compile_late(
    rf"(?:{_M3})?(?:</?{_NAMESPACE}([\w.-]+)[\s=][^<>]{{0,400}}"
    r"|<\|(?:open|close)\|>[^<>]{0,400}(?:<\|?[sep]{0,3}\|?)?"
    r"|[<\[\]`~][^\s\"'{(]{0,80})\Z"
)
_HALF_DELIMITER = compile_late(
    r"\s*(?:<[^>\n]{0,400}|\[[/\w]{0,30}|[`~]{1,3}[\w+-]{0,20}|[\]<>\[\w✿: =]{0,24})\Z"
)

_NAME = compile_late(r"[\"'`]?([A-Za-z_][\w.:/-]*)[\"'`]?")
_NAME_END = compile_late(r"[.:/-]+\Z")
_ID = compile_late(r"[\w.-]{1,60}(?=<[|｜]|\Z)")
_CALL_ID = compile_late(r"\[CALL_ID\]([\w-]+)")  # Mistral
_KIMI_ID = compile_late(r"functions\.[\w.-]+:\d+")
# Meaningless letters that GPT writes around the arguments of a leaked call.
_LEAKED_BEFORE = compile_late(r"[^{}<>\[\]]{0,80}(?=\{|\Z)")
_LEAKED_AFTER = compile_late(
    r"(?<=\})[^\x00-\x7f\u2000-\u206f\u3000-\u303f]{1,20}\s*\Z"
)
_SPACE = compile_late(r"\s*")
# Llama 3 also writes `<function=view{"path": "a"}</function>`.
_OPEN_FUNCTION = compile_late(r"<function=(?=[\w.-]+\s*[=(]?\s*\{)")
# The end of a call after JSON whose last bracket is missing, and half of such an end.
_END_OF_CALL = compile_late(r"\s*(?:</|<[|｜]|\[/)")
_HALF_END = compile_late(r"\s*[<\[]\Z")
_KEYWORD = compile_late(r"([\w-]+)\s*[=:]\s*")
_LIST_OF_OBJECTS = compile_late(r"\[\s*[{\[]")
_OPENERS = compile_late(r"[\s\[{]{0,64}")
_KEY = compile_late(r"[\s,]*[\"']([^\"'\\]{0,60})[\"']\s*:\s*")
_HALF_KEY = compile_late(r"[\s,]*(?:[\"'][^\"'\\]{0,60}(?:[\"']\s*)?)?\Z")
_SCALAR = compile_late(
    r"\"((?:[^\"\\]++|\\.)*+)\"|'[^'\\]*'|[-+.\w]+(?=[\s,}\]])", re.DOTALL
)
_OBJECT_TOKEN = compile_late(  # of an object with bare keys
    r"<\|\"\|>(?P<gemma>.*?)<\|\"\|>|<escape>(?P<escape>.*?)<escape>"
    r"|\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'"
    r"|(?P<key>[A-Za-z_][\w-]*)\s*:|[{}\[\]:,]|[\w.+-]+(?=[\s,}\]])|\s+",
    re.DOTALL,
)
_HALF_STRING = compile_late(r"[\"']|<\|\"\|>|<escape>")


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(
    strict=False, parse_float=read_float, parse_constant=_refuse_constant
)


class NotCalls(Exception):
    """The text is no call, however it continues.

    `offset` is the index of the mismatch; `has_calls`: complete calls come before it.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset
        self.has_calls = False


class Unfinished(Exception):
    """The text may be the beginning of calls."""


class PrintedCall(Struct, frozen=True):
    """A complete call of an offered tool, by its original name."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


class OfferedTools(Struct, frozen=True):
    """The tools that may be called: their names, and their schemas by original name."""

    names: ToolNames
    schemas: Mapping[str, Json]

    def fit(
        self, name: str, arguments: Any, *, is_plain: bool
    ) -> dict[str, Any] | None:
        """Return arguments in the types of the schema, None if it forbids them.

        A plain form, without any mark of a call, must not have unknown arguments.
        """
        if not isinstance(arguments, dict):
            return None
        schema = self.schemas[name]
        value: dict[str, Any] = coerce(arguments, schema, [])
        if is_plain and "properties" in schema and value.keys() - self.properties(name):
            return None
        return value if is_valid(fill_missing(value, schema, []), schema) else None

    def properties(self, name: str) -> set[str]:
        """Return the names of a tool's arguments."""
        properties = self.schemas[name].get("properties")
        return set(properties) if isinstance(properties, Mapping) else set()


def read_calls(text: str, tools: OfferedTools) -> list[PrintedCall]:
    """Read a text that consists of calls.

    Raises:
        NotCalls: it contains something else.
        Unfinished: it ends before the calls do.
    """
    parser = _Parser(text, tools, is_nested=True)
    try:
        return parser.read_all()
    except (NotCalls, Unfinished) as error:
        failure = error
    if parser.has_values:  # a value between tags may mention a tag that is not closed
        try:
            return _Parser(text, tools, is_nested=False).read_all()
        except NotCalls:
            pass
    if isinstance(failure, NotCalls):
        failure.has_calls = bool(parser.calls)
    raise failure


def first_mark(text: str) -> str | None:
    """Return the mark that a text begins with, if only calls have it.

    It is "" for plain forms, and None if the text ends too early to tell.
    """
    if mark := _DELIMITER.match(text):
        return mark[0].strip()
    return None if _HALF_DELIMITER.match(text) else ""


class _Parser:
    """One walk over a text; `_pos` is the index of the next character.

    `is_nested`: a value between tags ends at its own closing tag, not at the first
    closing tag of that name. `has_values` tells whether there was such a value, and
    `calls` are the calls so far.
    """

    def __init__(self, text: str, tools: OfferedTools, *, is_nested: bool) -> None:
        self._text = text
        self._tools = tools
        self._is_nested = is_nested
        self._is_plain = not first_mark(text)
        self._is_leaked = "to=" in text[:40]  # by GPT
        self._pos = 0
        self._has_begun = False  # a mark or a name was read
        self._closers: list[str] = []  # of brackets around calls
        self._may_have_surplus = False  # closing brackets after JSON
        self.has_values = False
        self.calls: list[PrintedCall] = []

    def read_all(self) -> list[PrintedCall]:
        calls = self.calls
        while True:
            self._skip_marks()
            if self._is_at_end():
                if calls and not self._closers:
                    return calls
                raise Unfinished
            if not (calls and self._skip_after_call()):
                self._may_have_surplus = False
                calls += self._read_next()
            if len(calls) > MAX_CALLS:
                raise NotCalls(self._pos)

    def _read_next(self) -> list[PrintedCall]:
        """Read the next calls, or skip something that comes before a call."""
        char = self._text[self._pos]
        if char == "{" or _LIST_OF_OBJECTS.match(self._text, self._pos):
            return self._json_calls()
        if char == "[" and not self._is_half_tag():  # before calls as in code
            self._pos += 1
            self._has_begun = True
            self._closers.append("]")
            return []
        if char in "<[]`~":
            return self._tagged_call()
        if (call := self._named_call()) is not None:
            return call
        if not self._skip_word(_BEFORE_NAME):
            # The id, type or role of a call may stand between two special tokens.
            word = _ID.match(self._text, self._pos)
            if word is None or self._text[max(0, self._pos - 1)] != ">":
                raise self._mismatch()
            self._pos = word.end()
        self._has_begun = True
        if self._text[self._pos - 1] == "(":
            self._closers.append(")")
        return []

    def _mismatch(self) -> Exception:
        """Return the error for a text that does not fit from here on.

        It is Unfinished if the last characters may be half of a mark or a tag.
        """
        remaining = len(self._text) - self._pos
        if self._is_half_tag() or (self._has_begun and remaining <= _MAX_FRAGMENT):
            return Unfinished()
        return NotCalls(self._pos)

    def _is_half_tag(self) -> bool:
        """Tell whether the text ends within a mark, or a tag that may hold a call."""
        half = _HALF_TAG.match(self._text, self._pos)
        name = (half and half[1]) or ""
        return half is not None and (
            not name
            or _HOLDER_TAG.fullmatch(name) is not None
            or name in (*_ARGUMENT_TAGS, *_IGNORED_TAGS)
            or self._is_offered(name)
        )

    def _is_at_end(self) -> bool:
        return self._pos >= len(self._text)

    def _is_offered(self, name: str) -> bool:
        return self._tools.names.find(name) is not None

    def _skip_marks(self) -> None:
        if marks := _MARKS.match(self._text, self._pos):
            self._pos = marks.end()
            self._has_begun = self._has_begun or not marks[0].isspace()

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._pos)
        self._pos = space.end() if space else self._pos
        if self._is_at_end():
            raise Unfinished

    def _skip_word(self, words: tuple[str, ...]) -> bool:
        """Skip one of the words; a text that ends within one is unfinished."""
        text = self._text[self._pos : self._pos + 24].casefold()
        for word in words:
            char = text[len(word) : len(word) + 1]
            is_whole = not (word[-1].isalpha() and (char.isalnum() or char == "_"))
            if text.startswith(word) and is_whole:
                self._pos += len(word)
                return True
        is_end = self._pos + len(text) == len(self._text)
        if is_end and any(word.startswith(text) for word in words):
            raise Unfinished
        return False

    def _skip_after_call(self) -> bool:
        """Skip a separator or a closing bracket after a call."""
        char = self._text[self._pos]
        if self._closers and char == self._closers[-1]:
            self._closers.pop()
        elif not (self._may_have_surplus and char in "}]"):
            letters = _LEAKED_AFTER.match(self._text, self._pos)
            if letters and self._is_leaked:
                self._pos = letters.end()
                return True
            return self._skip_word(_AFTER_CALL)
        self._pos += 1
        return True

    def _call(self, name: str, arguments: Any, call_id: str = "") -> PrintedCall:
        """Return a call, if the schema of its tool allows the arguments."""
        if isinstance(arguments, str) and arguments.strip():
            arguments = self._parse(arguments)
        fitting = self._tools.fit(name, arguments or {}, is_plain=self._is_plain)
        if fitting is not None:
            return PrintedCall(name, fitting, call_id)
        if isinstance(arguments, dict):
            # An object with the name and the arguments once more is unwrapped.
            unknown = arguments.keys() - self._tools.properties(name)
            inner = [arguments[k] for k in _ARGUMENT_KEYS if k in unknown]
            inner_names = [arguments[k] for k in _NAME_KEYS if k in unknown]
            others = len(arguments) - len(inner) - len(inner_names)
            is_same = all(self._tools.names.find(str(n)) == name for n in inner_names)
            if len(inner) == 1 and is_same and not others:
                return self._call(name, inner[0], call_id)
        raise NotCalls(self._pos)

    def _parse(self, text: str) -> Any:
        try:
            return parse_lenient(text.strip())[0]
        except (ValueError, RecursionError):
            raise NotCalls(self._pos) from None

    # ---- JSON with the name and the arguments

    def _json_calls(self) -> list[PrintedCall]:
        if not self._can_hold_call():
            raise NotCalls(self._pos)
        start = self._pos
        try:
            value = self._json()
        except NotCalls as error:
            value = self._unclosed_call(start, error.offset)
        self._may_have_surplus = True
        return self._from_json(value)

    def _json(self) -> Any:
        """Read one JSON value, as leniently as the repair of arguments does."""
        try:
            value, self._pos = _DECODER.raw_decode(self._text, self._pos)
            return value
        except json.JSONDecodeError as error:
            if error.pos >= len(self._text) or error.msg.startswith("Unterminated"):
                raise Unfinished from None
        except (ValueError, RecursionError):
            raise NotCalls(self._pos) from None
        try:
            parser = LenientParser(self._text)
            value, self._pos = parser.read_value_at(self._pos)
        except BrokenJson as error:
            if error.cut:
                raise Unfinished from None
            raise NotCalls(error.at) from None
        return value

    def _unclosed_call(self, start: int, end: int) -> Any:
        """Read a call that lacks its last bracket before a mark that ends calls.

        The arguments within it must be closed, so that nothing of them can be missing
        if the model stopped too early.
        """
        text = self._text[start:end].rstrip()
        if text.endswith("}") and _HALF_END.match(self._text, end):
            raise Unfinished
        if not text.endswith("}") or not _END_OF_CALL.match(self._text, end):
            raise NotCalls(end)
        self._pos = end
        value = self._parse(text + "}")
        if not isinstance(value, dict) or value.keys().isdisjoint(_ARGUMENT_KEYS):
            raise NotCalls(end)
        return value

    def _can_hold_call(self) -> bool:
        """Tell by its first keys whether a JSON value may be calls."""
        text = self._text
        openers = _OPENERS.match(text, self._pos)
        pos = openers.end() if openers else self._pos
        while key := _KEY.match(text, pos):
            name, pos = key[1], key.end()
            if name in _ARGUMENT_KEYS:
                return True
            if name in _INNER_KEYS and text[pos : pos + 1] in ("{", "[", ""):
                openers = _OPENERS.match(text, pos)
                pos = openers.end() if openers else pos
                continue
            value = _SCALAR.match(text, pos)
            if name in _NAME_KEYS:
                return value is None or self._is_offered(value[1] or value[0])
            if name not in _OTHER_KEYS and (self._is_plain or not value):
                return not self._is_plain and self._is_offered(name)
            if value is None:
                return True
            pos = value.end()
        return _HALF_KEY.match(text, pos) is not None

    def _from_json(self, value: Any) -> list[PrintedCall]:
        """Return the calls that a JSON value describes."""
        if isinstance(value, list):
            return [call for item in value for call in self._from_json(item)]
        if (
            not isinstance(value, dict)
            or "description" in value
            or value.get("content")
        ):  # with a description it is the definition of a tool
            raise NotCalls(self._pos)
        for key in _INNER_KEYS:
            if isinstance(value.get(key), (list, dict)):
                self._check_other_keys(value, key)
                return self._from_json(value[key])
        return [self._from_object(value)]

    def _from_object(self, item: dict[str, Any]) -> PrintedCall:
        name_key = next((k for k in _NAME_KEYS if isinstance(item.get(k), str)), "")
        key = next((k for k in _ARGUMENT_KEYS if k in item), "")
        arguments = item.get(key)
        name = self._tools.names.find(item.get(name_key, ""))
        if key:
            self._check_other_keys(item, name_key, key)
        elif self._is_plain:
            raise NotCalls(self._pos)
        elif name_key:  # the arguments are beside the name
            arguments = {k: v for k, v in item.items() if k != name_key}
        elif len(item) == 1:  # Apertus: the name is the key
            ((only_key, arguments),) = item.items()
            name = self._tools.names.find(only_key)
        if name is None:
            raise NotCalls(self._pos)
        call_id = next((item[k] for k in _ID_KEYS if isinstance(item.get(k), str)), "")
        return self._call(name, arguments, call_id)

    def _check_other_keys(self, item: dict[str, Any], *keys: str) -> None:
        """Check that an object of a plain form has only the keys of a call."""
        if self._is_plain and item.keys() - _OTHER_KEYS - set(keys):
            raise NotCalls(self._pos)

    # ---- A name, and the arguments after it

    def _named_call(self) -> list[PrintedCall] | None:
        """Read a name and its arguments; None if no name comes next."""
        start = self._pos
        if (match := _NAME.match(self._text, start)) is None:
            return None
        raw = _NAME_END.sub("", match[1])
        name = self._tools.names.find(raw)
        if name is None:
            if match.end() == len(self._text) and self._tools.names.can_begin(raw):
                raise Unfinished
            return None
        self._has_begun = True
        self._pos = match.end() if raw == match[1] else match.start(1) + len(raw)
        call_id = raw if _KIMI_ID.fullmatch(raw) else self._skip_to_arguments()
        self._skip_to_arguments()
        if self._is_at_end():
            return [self._call(name, self._no_arguments(name, start), call_id)]
        match self._text[self._pos]:
            case "{":
                arguments = self._object()
            case "(":
                arguments = self._keywords()
            case "<" | "]" if self._argument_tag(name) is None:
                if self._is_half_tag():
                    raise Unfinished
                return []  # the call follows, and names the tool again
            case "<" | "]":
                arguments = self._tagged_arguments(name, "")
            case _:
                arguments = self._leaked_arguments(name, start)
        return [self._call(name, arguments, call_id)]

    def _skip_to_arguments(self) -> str:
        """Skip marks and words after a name; return the id of the call among them."""
        call_id = ""
        while True:
            if match := _CALL_ID.match(self._text, self._pos):
                call_id, self._pos = match[1], match.end()
            start = self._pos
            self._skip_marks()
            if self._is_at_end():
                return call_id
            if not self._skip_word(_BEFORE_ARGUMENTS) and self._pos == start:
                return call_id

    def _no_arguments(self, name: str, start: int) -> dict[str, Any]:
        """Return {} for a tool that needs no arguments, between marks on both sides.

        Without a mark after it, the name may be the prefix of another one.
        """
        is_tagged = self._text[max(0, start - 80) : start].rstrip().endswith(">")
        if self._text[start : self._pos].rstrip()[-1:] not in (">", "]"):
            raise self._mismatch()
        if is_tagged and self._tools.fit(name, {}, is_plain=False) is not None:
            return {}
        raise self._mismatch()

    def _leaked_arguments(self, name: str, start: int) -> dict[str, Any]:
        """Read the arguments of a call that GPT leaked, after meaningless letters."""
        letters = _LEAKED_BEFORE.match(self._text, self._pos)
        if letters is None or not self._is_leaked:
            return self._no_arguments(name, start)
        self._pos = letters.end()
        if self._is_at_end():
            raise Unfinished
        return self._object()

    def _object(self) -> dict[str, Any]:
        """Read the object of arguments; Gemma's and JavaScript's have bare keys."""
        start = self._pos
        try:
            value = self._json()
        except NotCalls:
            self._pos = start
            value = self._parse(self._bare_object())
        self._may_have_surplus = True
        return dict(value)

    def _bare_object(self) -> str:
        """Return an object with bare keys as JSON; Gemma has other quotation marks."""
        pieces: list[str] = []
        depth = 0
        while piece := _OBJECT_TOKEN.match(self._text, self._pos):
            self._pos = piece.end()
            raw = piece["gemma"] if piece["gemma"] is not None else piece["escape"]
            if raw is not None:
                pieces.append(json.dumps(raw))
            elif piece["key"]:
                pieces.append(f'"{piece["key"]}":')
            else:
                pieces.append(piece[0])
                depth += (piece[0] in "{[") - (piece[0] in "}]")
            if not depth:
                return "".join(pieces)
        if _HALF_STRING.match(self._text, self._pos):
            raise Unfinished
        raise self._mismatch()

    def _keywords(self) -> dict[str, Any]:
        """Read the arguments of a call as in code: `(path="a", line=3)`."""
        self._pos += 1
        self._skip_space()
        if self._text[self._pos] == "{":
            arguments = self._object()
            self._skip_space()
        else:
            arguments = {}
            while key := _KEYWORD.match(self._text, self._pos):
                if key[1] in arguments:
                    raise NotCalls(self._pos)
                self._pos = key.end()
                arguments[key[1]] = self._literal()
                self._skip_space()
                if self._text[self._pos] == ",":
                    self._pos += 1
                    self._skip_space()
        if self._text[self._pos] == ")":
            self._pos += 1
            return arguments
        raise self._mismatch()

    def _literal(self) -> Any:
        """Read a value as in code; a value in triple quotes must not have escapes."""
        quotes = self._text[self._pos : self._pos + 3]
        if quotes not in ('"""', "'''"):
            return self._json()
        end = self._text.find(quotes, self._pos + 3)
        if end < 0:
            raise Unfinished
        value, self._pos = self._text[self._pos + 3 : end], end + 3
        if "\\" in value:
            raise NotCalls(end)
        return value

    # ---- Keys and values in tags

    def _tagged_call(self) -> list[PrintedCall]:
        """Read a tag that names a tool, with everything up to its end."""
        if opening := _OPEN_FUNCTION.match(self._text, self._pos):
            self._pos = opening.end()
            self._has_begun = True
            return []  # the name follows
        tag = self._tag()
        if tag.is_closing:
            raise NotCalls(self._pos)
        self._pos = tag.end
        if tag.name in _IGNORED_TAGS:
            self._value(tag.name)
            return []
        if tag.key is None or _HOLDER_TAG.fullmatch(tag.name):
            name = self._tools.names.find(tag.key or tag.name)
            if name is not None:
                arguments = (
                    {} if tag.is_empty else self._tagged_arguments(name, tag.name)
                )
                return [self._call(name, arguments)]
        raise NotCalls(self._pos)

    def _tag(self) -> "_Tag":
        if match := _TAG.match(self._text, self._pos):
            return _Tag(match)
        raise self._mismatch()

    def _argument_tag(self, name: str) -> "_Tag | None":
        """Return the next tag, if an argument of a tool follows it."""
        match = _TAG.match(self._text, self._pos)
        tag = _Tag(match) if match else None
        if tag is None or tag.is_closing:
            return None
        is_known = tag.name in self._tools.properties(name)
        is_named = tag.name in _ARGUMENT_TAGS and tag.key is not None
        return tag if is_known or is_named or tag.name.endswith("arg_key") else None

    def _tagged_arguments(self, name: str, closer: str) -> dict[str, Any]:
        """Read keys and values up to the tag that closes `closer`.

        Without a closer, they end at any closing tag, and an object ends itself.
        """
        arguments: dict[str, Any] = {}
        is_object = False
        while True:
            self._skip_parts(name)
            if self._is_at_end():
                if not is_object:
                    raise Unfinished
                return arguments
            if tag := self._argument_tag(name):
                self._read_argument(tag, arguments)
            elif not closer and self._text.startswith("</", self._pos):
                return arguments
            elif self._text[self._pos] == "{" and not arguments:
                arguments, is_object = self._object(), True
            elif (end := self._tag()).is_closing and end.name == closer:
                self._pos = end.end
                return arguments
            elif is_object:
                return arguments
            else:
                raise self._mismatch()

    def _skip_parts(self, name: str) -> None:
        """Skip tags around all arguments, such as `<parameters>`."""
        properties = self._tools.properties(name)
        while (part := _PART.match(self._text, self._pos)) and part[
            1
        ] not in properties:
            self._pos = part.end()

    def _read_argument(self, tag: "_Tag", arguments: dict[str, Any]) -> None:
        """Read the value after a tag; it is text, unless the tag says JSON."""
        self._pos = tag.end
        key, holder = tag.key or tag.name, tag.name
        if tag.name.endswith("arg_key"):
            key = self._value(tag.name).strip()
            self._skip_space()
            value_tag = self._tag()
            if value_tag.is_closing or not value_tag.name.endswith("arg_value"):
                raise NotCalls(self._pos)
            self._pos, holder = value_tag.end, value_tag.name
        if key in arguments:
            raise NotCalls(self._pos)
        value: Any = "" if tag.is_empty else self._value(holder)
        arguments[key] = self._parse(value) if tag.is_json else value

    def _value(self, tag: str) -> str:
        """Read the text up to the closing tag of that name, and skip the tag."""
        self.has_values = True
        start, depth = self._pos, 1
        for match in _tags_of(tag).finditer(self._text, start):
            depth += -1 if match["close"] else self._is_nested
            if not depth:
                self._pos = match.end()
                value = self._text[start : match.start()]
                # It may be on lines of its own.
                on_lines = value.startswith("\n")
                return value[1:].removesuffix("\n") if on_lines else value
        raise Unfinished


class _Tag:
    """A tag: its name, the key or tool that it names, and where it ends."""

    def __init__(self, match: re.Match[str]) -> None:
        raw = match["attributes"] or match["k3_attributes"] or ""
        attributes = dict(_ATTRIBUTE.findall(raw))
        keys = (attributes[name] for name in _NAME_ATTRIBUTES if name in attributes)
        self.end = match.end()
        self.name = match["tag"] or match["k3_tag"]
        self.key = match["value"] or next(keys, None)
        self.is_closing = match["close"] == "/" or match["k3"] == "close"
        self.is_empty = match["empty"] == "/"
        self.is_json = attributes.get("string") == "false"  # DeepSeek


@lru_cache(maxsize=256)
def _tags_of(name: str) -> re.Pattern[str]:
    """Return the pattern of all tags of a name; in closing ones `close` is set."""
    tag = re.escape(name)
    return re.compile(
        rf"(?P<close>(?:{_M3})?</{_NAMESPACE}{tag}{_SUFFIX}\s*>"
        rf"|<\|close\|>{tag}<\|sep\|>)"
        rf"|<{_NAMESPACE}{tag}{_SUFFIX}(?:[\s=][^<>]*)?>|<\|open\|>{tag}\b"
    )
