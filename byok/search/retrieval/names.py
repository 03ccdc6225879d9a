"""Names of code in a question, and what it wants to know of them.

Such as `Foo`, `a::b()` or `$this->x`. A question that is one name has hardly any words
to rank by, and files that share its stems come before the file that defines it. So
definitions of exactly that name count extra. And who asks for what calls a name, or
implements it, is shown that.
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
    base_mark,
    exact_mark,
    folded_mark,
    plain_name,
    use_mark,
)
from byok.search.index.store.chunk_index import ChunkScore

_LONGEST_IDENTIFIER = 300
_QUOTES = "`'\"\u2018\u2019\u201c\u201d"
_PART = r"[^\W\d][\w$]*(?:-[\w$]+)*"
_GENERIC = r"(?:<[^<>\n]{0,100}>|\[[^\[\]\n]{0,100}\])?"
_CALL = r"(?:\([^()\n]{0,200}\))?"
_IDENTIFIER = re.compile(
    rf"(?:::|->|[@#$&*.\\])?[$@]?{_PART}{_GENERIC}{_CALL}[?!]?{_CALL}"
    rf"(?:(?:::|->|\?\.|[.#\\])[$@]?{_PART}{_GENERIC}{_CALL}[?!]?{_CALL}){{0,15}}"
)
# Files whose ends name no language; `mutex.lock` and `this.mod` are none.
_OTHER_FILE = re.compile(
    r".+\.(?:cfg|csv|ini|ipynb|rst|svg|txt)|go\.(?:mod|sum|work)"
    r"|(?:bun|cargo|composer|deno|flake|gemfile|pdm|pipfile|poetry|uv|yarn)\.lock",
    re.I,
)
_BRACKETS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)")

# What a definition counts, by what it defines.
_WORTH = {NameKind.TYPE: 1.0, NameKind.FUNCTION: 0.6, NameKind.OTHER: 0.6}


def identifier_of(text: str) -> str:
    """Return the last part of the one identifier that a request is; "" for others.

    `a.py` is a file, not the name `py`.
    """
    said = text.strip()
    if len(said) > _LONGEST_IDENTIFIER:
        return ""
    said = said.strip(_QUOTES).strip()
    if not _IDENTIFIER.fullmatch(said):
        return ""
    return "" if _is_file(said) else plain_name(_BRACKETS.sub("", said))


def _is_file(said: str) -> bool:
    known = "." in said and said.rpartition(".")[2].lower() in LANGUAGE_OF
    return known or bool(_OTHER_FILE.fullmatch(said))


def definition_marks(name: str) -> dict[str, float]:
    """Return the marks of chunks that define a name, and what each counts, up to 1."""
    return {
        mark(kind, name): worth
        for kind, worth in _WORTH.items()
        for mark in (exact_mark, folded_mark)
    }


class Wanted(StrEnum):
    """What a question wants to know of a name."""

    NOTHING = "nothing"  # it only says the name
    USES = "uses"
    BASES = "implementations"


class NameQuestion(NamedTuple):
    """A name in a question; `is_plain` if it may as well be a word."""

    name: str
    wanted: Wanted = Wanted.NOTHING
    is_plain: bool = False


class NameFound(NamedTuple):
    """A name that a question says, and the chunks that define and that use it.

    Names are not resolved: all that are written alike are one. `paths` are the files
    that use it, by blob; of very many only some are known. `file_count` is how many
    do; `is_cut` if there are more than were counted. Where nothing says what implements
    it, these are files with all of its `methods`.
    """

    asked: NameQuestion
    defining: Sequence[ChunkScore]
    using: Sequence[ChunkScore]
    file_count: int
    is_cut: bool
    methods: Sequence[str] = ()
    defined_in: Mapping[int, str] = MappingProxyType({})
    paths: Mapping[int, str] = MappingProxyType({})

    @property
    def sentence(self) -> str:
        """What is known of the name, in one sentence."""
        name, defined = self.asked.name, [*dict.fromkeys(self.defined_in.values())]
        if not defined and not self.file_count:
            return f"{name} is neither defined nor used here."
        where = f"is defined in {defined[0]}" if defined else "is not defined here"
        if len(defined) > 1:
            more = len(defined) - 1
            where += f" and {more} more file{'s' if more > 1 else ''}"
        verb = "extended or implemented" if self.is_base else "used"
        if not self.file_count:
            return f"{name} {where}; no place was found where it is {verb}."
        files = f"{'more than ' if self.is_cut else ''}{self.file_count:,} file"
        files += "s" if self.file_count > 1 else ""
        join = "and" if defined else "but"
        return f"{name} {where} {join} {verb} in {files}{self._mostly()}."

    @property
    def is_asked(self) -> bool:
        """Whether the question is who uses it."""
        return self.asked.wanted is not Wanted.NOTHING

    @property
    def is_base(self) -> bool:
        """Whether it is asked for what extends or implements it."""
        return self.asked.wanted is Wanted.BASES

    @property
    def folder(self) -> tuple[str, int]:
        """The folder with most of the files that use it, and how many it has."""
        folders = Counter(path.rpartition("/")[0] for path in self.paths.values())
        return folders.most_common(1)[0] if folders else ("", 0)

    def _mostly(self) -> str:
        folder, files = self.folder
        if files < 2 or len(self.paths) < self.file_count:
            return ""
        if files == self.file_count:
            return f", all in {folder or 'the top folder'}"
        return f", most in {folder or 'the top folder'} ({files})"

    def describe(self) -> dict[str, Any]:
        """Return it for `byok search --json`."""
        folder, files = self.folder
        chunks = Counter(chunk.blob_id for chunk in self.using)
        return {
            "name": self.asked.name,
            "asked": self.asked.wanted,
            "defined_in": [*dict.fromkeys(self.defined_in.values())],
            "used_in": self.file_count,
            "counted_all": not self.is_cut,
            "most_in": {"folder": folder, "files": files} if files else None,
            "files": [
                {"path": path, "chunks": chunks[blob_id]}
                for blob_id, path in self.paths.items()
            ],
        }


_MOST_METHODS = 8


def methods_of_interface(name: str, text: str) -> tuple[str, ...]:
    """Return the methods of an interface in a text in Go, at most eight."""
    start = re.search(rf"\b{re.escape(name)}(?:\[[^\]]*\])?\s+interface\s*\{{", text)
    if start is None:
        return ()
    body = text[start.end() :].partition("\n}")[0]
    found = re.findall(r"^[ \t]+([A-Za-z_]\w*)\(", body, re.MULTILINE)
    return tuple(found[:_MOST_METHODS])


def reference_marks(name: str, wanted: Wanted) -> dict[str, float]:
    """Return the marks of chunks that use a name; of those that implement it."""
    marks = {base_mark(name): 1.0}
    return marks if wanted is Wanted.BASES else marks | {use_mark(name): 1.0}


_MOST_NAMES = 3
_LONGEST_SEARCHED = 2_000  # characters
_NAME = (
    r"[`'\"]?(?<![\w$])(?P<name>[$@]?[A-Za-z_][\w$]*(?:(?:::|->|[.#\\])[$@]?[A-Za-z_][\w$]*){0,9})"
    r"(?P<call>\(\))?[`'\"]?"
)
_KIND = (
    r"(?:function|method|class|interface|trait|struct|type|protocol|macro|hook|enum"
    r"|component|decorator|constant|helper|module)"
)
_THE = (
    r"(?:(?:the|our|this|its|an?|any|each|all)\s+)?(?:abstract\s+|base\s+)?"
    rf"(?:{_KIND}\s+)?"
)
_WHO = (
    r"\b(?:who|what|which|where|everything|anything|code|files?|places?|class(?:es)?"
    r"|types?|structs?|all|that|list|find|show)\b(?:\s+\S+){0,3}?\s+"
)
_END = (
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
_IMPLEMENTATIONS = (
    r"\b(?:implementations?|implementers?|implementors?|sub-?classes|subtypes"
    r"|derived\s+classes|child\s+classes|children)\s+(?:of|for)\s+"
)
_USAGES = (
    r"\b(?:callers?|call-?\s?sites?|usages?|uses|users|references|invocations)"
    r"\s+(?:of|to|for)\s+"
)
_WHERE_IS = (
    r"\b(?:where|how|when|by\s+whom)\s+(?:(?:else|all)\s+)?(?:is|are|does|do|gets?)\s+"
)
_CHINESE_WHERE = r"(?:哪里|哪儿|哪些\S{0,6}?|谁|什么地方|何处)"
_CHINESE_USE = r"(?:调用|使用|引用|用到|依赖)"
_ASKED = tuple(
    (wanted, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for wanted, pattern in (
        (Wanted.BASES, f"{_WHO}{_IMPLEMENTING}\\s+{_THE}{_NAME}{_END}"),
        (Wanted.BASES, f"{_IMPLEMENTATIONS}{_THE}{_NAME}{_END}"),
        (Wanted.BASES, rf"(?:实现|继承)(?:了|自|于|过)?\s*{_NAME}"),
        (Wanted.BASES, rf"{_NAME}\s*的?(?:有哪些|所有)?(?:子类|实现类?|派生类)"),
        (Wanted.USES, f"{_WHO}{_USING}\\s+{_THE}{_NAME}{_END}"),
        (
            Wanted.USES,
            rf"{_WHERE_IS}{_THE}{_NAME}\s+(?:{_KIND}\s+)?(?:being\s+|get\s+)?{_USED}\b",
        ),
        (Wanted.USES, f"{_USAGES}{_THE}{_NAME}{_END}"),
        (
            Wanted.USES,
            rf"(?:{_CHINESE_WHERE}|所有|查找)(?:会|有|在)?{_CHINESE_USE}(?:了|过|到)?\s*{_NAME}",
        ),
        (
            Wanted.USES,
            rf"{_NAME}\s*(?:函数|方法|类|接口)?(?:都|被|是|在)*{_CHINESE_WHERE}被?{_CHINESE_USE}",
        ),
        (Wanted.USES, rf"{_NAME}\s*的\s*(?:所有)?(?:{_CHINESE_USE}|用法)"),
    )
)
# Words that no text has but code: `parse_header`, `RetryPolicy`, `a::b`, `f()`.
_CODE = re.compile(
    r"`(?P<quoted>[^`\s]{2,100})`|(?<![\w/.$@-])(?P<said>[$@]?[A-Za-z_][\w$]*"
    r"(?:(?:::|->|[.#])[A-Za-z_][\w$]*){0,9}(?:\(\))?)(?![\w/-])",
    re.ASCII,
)
_LOOKS_LIKE_CODE = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]|::|->|\(\)$")
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "a an and any are be code each every everything files function functions here "
        "in is it its method methods my of on or our that the them there these this "
        "those to what where which who",
    )
)


def names_in(text: str) -> tuple[NameQuestion, ...]:
    """Return the names that a question says, at most three; first what it asks of one.

    A name that may be a word is among them only if the question asks what uses it.
    """
    text = text[:_LONGEST_SEARCHED]
    asked = _asked_name(text)
    found = {asked.name: asked} if asked else {}
    for match in _CODE.finditer(text):
        said = match["quoted"] or match["said"]
        name = identifier_of(said)
        if name and (match["quoted"] or _LOOKS_LIKE_CODE.search(said)):
            found.setdefault(name, NameQuestion(name))
    return tuple(found.values())[:_MOST_NAMES]


def _asked_name(text: str) -> NameQuestion | None:
    for wanted, pattern in _ASKED:
        for match in pattern.finditer(text):
            name = identifier_of(match["name"])
            if name and name.lower() not in _NO_NAMES:
                said = match["name"] + (match["call"] or "")
                plain = name.islower() and _LOOKS_LIKE_CODE.search(said) is None
                return NameQuestion(name, wanted, is_plain=plain)
    return None
