"""Find the names of code in a question, and what it wants to know of them.

A name is `Foo`, `a::b()` or `$this->x`. A question that consists of one name has hardly
any words to rank by, and files that share its stems would come before the file that
defines it. So definitions of exactly that name count extra. A question about the
callers or the implementations of a name is answered with these.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from byok.search.index.files.languages import LANGUAGE_OF
from byok.search.index.parse.prepare import (
    NameKind,
    exact_mark,
    folded_mark,
    plain_name,
)
from byok.search.index.store.chunk_index import ChunkScore

_MAX_IDENTIFIER_CHARS = 300
_QUOTES = "`'\"\u2018\u2019\u201c\u201d"
_IDENTIFIER_PART = r"[^\W\d][\w$]*(?:-[\w$]+)*"
_GENERIC = r"(?:<[^<>\n]{0,100}>|\[[^\[\]\n]{0,100}\])?"
_CALL = r"(?:\([^()\n]{0,200}\))?"
_IDENTIFIER = re.compile(
    rf"(?:::|->|[@#$&*.\\])?[$@]?{_IDENTIFIER_PART}{_GENERIC}{_CALL}[?!]?{_CALL}"
    rf"(?:(?:::|->|\?\.|[.#\\])[$@]?{_IDENTIFIER_PART}{_GENERIC}{_CALL}[?!]?{_CALL}){{0,15}}"
)
# File names whose suffix names no language; `mutex.lock` and `this.mod` are code.
_OTHER_FILE_NAME = re.compile(
    r".+\.(?:cfg|csv|ini|ipynb|rst|svg|txt)|go\.(?:mod|sum|work)"
    r"|(?:bun|cargo|composer|deno|flake|gemfile|pdm|pipfile|poetry|uv|yarn)\.lock",
    re.I,
)
_BRACKETS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)")
# The weight of a definition, by what it defines.
_WEIGHT_OF_KIND = {NameKind.TYPE: 1.0, NameKind.FUNCTION: 0.6, NameKind.OTHER: 0.6}
_MAX_METHODS = 8
_MAX_NAMES = 3
_MAX_QUESTION_CHARS = 2_000
_NAME = (
    r"[`'\"]?(?<![\w$])(?P<name>[$@]?[A-Za-z_][\w$]*(?:(?:::|->|[.#\\])[$@]?[A-Za-z_][\w$]*){0,9})"
    r"(?P<call>\(\))?[`'\"]?"
)
_KIND = (
    r"(?:function|method|class|interface|trait|struct|type|protocol|macro|hook|enum"
    r"|component|decorator|constant|helper|module)"
)
_SUBJECT = (
    r"(?:(?:the|our|this|its|an?|any|each|all)\s+)?(?:abstract\s+|base\s+)?"
    rf"(?:{_KIND}\s+)?{_NAME}"
)
_INTERROGATIVE = (
    r"\b(?:who|what|which|where|everything|anything|code|files?|places?|class(?:es)?"
    r"|types?|structs?|all|that|list|find|show)\b(?:\s+\S+){0,3}?\s+"
)
_AFTER_NAME = (
    r"(?=\s*(?:$|[?.,;:!)\n]"
    rf"|\b(?:{_KIND}|in|from|and|or|within|across|here|anywhere)\b))"
)
_USED = r"(?:used|called|invoked|referenced|instantiated|constructed|created|imported)"
_USING = (
    r"(?:calls?|calling|uses?|using|invokes?|invoking|references?|referencing"
    r"|instantiates?|instantiating|constructs?|imports?|importing|depends? on)"
)
_IMPLEMENTING = (
    r"(?:implements?|implementing|extends?|extending|inherits?(?:\s+from)?"
    r"|inheriting(?:\s+from)?|subclass(?:es)?|subclassing|deriv(?:es?|ing)\s+from"
    r"|conform(?:s|ing)?\s+to|satisf(?:y|ies))"
)
_IMPLEMENTATIONS_OF = (
    r"\b(?:implementations?|implementers?|implementors?|sub-?classes|subtypes"
    r"|derived\s+classes|child\s+classes|children)\s+(?:of|for)\s+"
)
_USAGES_OF = (
    r"\b(?:callers?|call-?\s?sites?|usages?|uses|users|references|invocations)"
    r"\s+(?:of|to|for)\s+"
)
_WHERE_IS = (
    r"\b(?:where|how|when|by\s+whom)\s+(?:(?:else|all)\s+)?(?:is|are|does|do|gets?)\s+"
)
_CHINESE_WHERE = r"(?:哪里|哪儿|哪些\S{0,6}?|谁|什么地方|何处)"
_CHINESE_USE = r"(?:调用|使用|引用|用到|依赖)"
_IMPLEMENTATION_PATTERNS = (
    rf"{_INTERROGATIVE}{_IMPLEMENTING}\s+{_SUBJECT}{_AFTER_NAME}",
    f"{_IMPLEMENTATIONS_OF}{_SUBJECT}{_AFTER_NAME}",
    rf"(?:实现|继承)(?:了|自|于|过)?\s*{_NAME}",
    rf"{_NAME}\s*的?(?:有哪些|所有)?(?:子类|实现类?|派生类)",
)
_USE_PATTERNS = (
    rf"{_INTERROGATIVE}{_USING}\s+{_SUBJECT}{_AFTER_NAME}",
    rf"{_WHERE_IS}{_SUBJECT}\s+(?:{_KIND}\s+)?(?:being\s+|get\s+)?{_USED}\b",
    f"{_USAGES_OF}{_SUBJECT}{_AFTER_NAME}",
    rf"(?:{_CHINESE_WHERE}|所有|查找)(?:会|有|在)?{_CHINESE_USE}(?:了|过|到)?\s*{_NAME}",
    rf"{_NAME}\s*(?:函数|方法|类|接口)?(?:都|被|是|在)*{_CHINESE_WHERE}被?{_CHINESE_USE}",
    rf"{_NAME}\s*的\s*(?:所有)?(?:{_CHINESE_USE}|用法)",
)
# Words in backticks, and those that may be code: `parse_header`, `RetryPolicy`, `f()`.
_CODE_WORD = re.compile(
    r"`(?P<quoted>[^`\s]{2,100})`|(?<![\w/.$@-])(?P<bare>[$@]?[A-Za-z_][\w$]*"
    r"(?:(?:::|->|[.#])[A-Za-z_][\w$]*){0,9}(?:\(\))?)(?![\w/-])",
    re.ASCII,
)
_LOOKS_LIKE_CODE = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]|::|->|\(\)$")
_EVERYDAY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and any are be code each every everything files function functions here "
        "in is it its method methods my of on or our that the them there these this "
        "those to what where which who",
    )
)


class NameIntent(StrEnum):
    """What a question wants to know of a name."""

    NOTHING = "nothing"  # the question only mentions the name
    USES = "uses"
    IMPLEMENTATIONS = "implementations"


class NameQuestion(NamedTuple):
    """A name in a question; `is_plain` if it could also be an ordinary word."""

    name: str
    intent: NameIntent = NameIntent.NOTHING
    is_plain: bool = False


_INTENT_PATTERNS = tuple(
    (intent, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for intent, patterns in (
        (NameIntent.IMPLEMENTATIONS, _IMPLEMENTATION_PATTERNS),
        (NameIntent.USES, _USE_PATTERNS),
    )
    for pattern in patterns
)


class NameMatch(NamedTuple):
    """A name in a question, and the chunks that define it and that use it.

    Names are not resolved: equal spellings count as one name. `paths` are the files
    that use it, by blob id; of very many, only some are listed. `file_count` is their
    number, `is_cut` whether counting stopped there. Where the code does not say what
    implements an interface, the users are the files with all of its `methods`.
    """

    question: NameQuestion
    defining: Sequence[ChunkScore]
    using: Sequence[ChunkScore]
    file_count: int
    is_cut: bool
    methods: Sequence[str] = ()
    defined_in: Mapping[int, str] = MappingProxyType({})
    paths: Mapping[int, str] = MappingProxyType({})

    @property
    def sentence(self) -> str:
        """One sentence on where the name is defined and used."""
        name, defined = self.question.name, [*dict.fromkeys(self.defined_in.values())]
        if not defined and not self.file_count:
            return f"{name} is neither defined nor used here."
        where = f"is defined in {defined[0]}" if defined else "is not defined here"
        if len(defined) > 1:
            more = len(defined) - 1
            where += f" and {more} more file{'s' if more > 1 else ''}"
        verb = "extended or implemented" if self.is_implementation_search else "used"
        if not self.file_count:
            return f"{name} {where}; no place was found where it is {verb}."
        files = f"{'more than ' if self.is_cut else ''}{self.file_count:,} file"
        files += "s" if self.file_count > 1 else ""
        join = "and" if defined else "but"
        return f"{name} {where} {join} {verb} in {files}{self._describe_main_folder()}."

    @property
    def is_reference_search(self) -> bool:
        """Whether the question asks for uses or implementations of the name."""
        return self.question.intent is not NameIntent.NOTHING

    @property
    def is_implementation_search(self) -> bool:
        """Whether the question asks for what extends or implements the name."""
        return self.question.intent is NameIntent.IMPLEMENTATIONS

    @property
    def folder(self) -> tuple[str, int]:
        """The folder with most of the files that use the name, and their number."""
        folders = Counter(path.rpartition("/")[0] for path in self.paths.values())
        return folders.most_common(1)[0] if folders else ("", 0)

    def describe(self) -> dict[str, Any]:
        """Return the match as a JSON object for `byok search --json`."""
        folder, files = self.folder
        chunks = Counter(chunk.blob_id for chunk in self.using)
        return {
            "name": self.question.name,
            "asked": self.question.intent,
            "defined_in": [*dict.fromkeys(self.defined_in.values())],
            "used_in": self.file_count,
            "counted_all": not self.is_cut,
            "most_in": {"folder": folder, "files": files} if files else None,
            "files": [
                {"path": path, "chunks": chunks[blob_id]}
                for blob_id, path in self.paths.items()
            ],
        }

    def _describe_main_folder(self) -> str:
        folder, files = self.folder
        if files < 2 or len(self.paths) < self.file_count:
            return ""
        if files == self.file_count:
            return f", all in {folder or 'the top folder'}"
        return f", most in {folder or 'the top folder'} ({files})"


def find_names(text: str) -> tuple[NameQuestion, ...]:
    """Return the names in a question, at most three; first the one it asks about.

    A name that could be an ordinary word is one of them only if the question asks for
    its uses or implementations.
    """
    text = text[:_MAX_QUESTION_CHARS]
    first = _find_name_with_intent(text)
    questions = {first.name: first} if first else {}
    for match in _CODE_WORD.finditer(text):
        written = match["quoted"] or match["bare"]
        name = identifier_of(written)
        if name and (match["quoted"] or _LOOKS_LIKE_CODE.search(written)):
            questions.setdefault(name, NameQuestion(name))
    return tuple(questions.values())[:_MAX_NAMES]


def identifier_of(text: str) -> str:
    """Return the last part of a text that is one identifier; "" for any other text.

    `a.py` is a file, not the name `py`.
    """
    identifier = text.strip()
    if len(identifier) > _MAX_IDENTIFIER_CHARS:
        return ""
    identifier = identifier.strip(_QUOTES).strip()
    if not _IDENTIFIER.fullmatch(identifier):
        return ""
    _, dot, suffix = identifier.rpartition(".")
    if (dot and suffix.lower() in LANGUAGE_OF) or _OTHER_FILE_NAME.fullmatch(
        identifier
    ):
        return ""
    return plain_name(_BRACKETS.sub("", identifier))


def definition_marks(name: str) -> dict[str, float]:
    """Return the index marks of chunks that define a name, with weights up to 1."""
    return {
        mark(kind, name): weight
        for kind, weight in _WEIGHT_OF_KIND.items()
        for mark in (exact_mark, folded_mark)
    }


def methods_of_interface(name: str, text: str) -> tuple[str, ...]:
    """Return the methods of an interface in Go source, at most eight."""
    start = re.search(rf"\b{re.escape(name)}(?:\[[^\]]*\])?\s+interface\s*\{{", text)
    if start is None:
        return ()
    body = text[start.end() :].partition("\n}")[0]
    names = re.findall(r"^[ \t]+([A-Za-z_]\w*)\(", body, re.MULTILINE)
    return tuple(names[:_MAX_METHODS])


def _find_name_with_intent(text: str) -> NameQuestion | None:
    for intent, pattern in _INTENT_PATTERNS:
        for match in pattern.finditer(text):
            name = identifier_of(match["name"])
            if name and name.lower() not in _EVERYDAY_WORDS:
                written = match["name"] + (match["call"] or "")
                is_plain = name.islower() and _LOOKS_LIKE_CODE.search(written) is None
                return NameQuestion(name, intent, is_plain)
    return None
