"""Requests that are one identifier, such as `Foo`, `a::b()` or `$this->x`.

Such a request has hardly any words to rank by, and files that share its stems come
before the file that defines it. So definitions of exactly that name count extra.
"""

import re

from byok.index.files.languages import LANGUAGE_OF
from byok.index.parse.names import NameKind, exact_mark, folded_mark, plain_name

_LONGEST = 300
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

# What a definition counts, by what it defines; of another case it counts half.
_WORTH = {NameKind.TYPE: 1.0, NameKind.FUNCTION: 0.6, NameKind.OTHER: 0.6}
_OTHER_CASE = 0.5


def identifier_of(text: str) -> str:
    """Return the last part of the one identifier that a request is; "" for others.

    `a.py` is a file, not the name `py`.
    """
    said = text.strip()
    if len(said) > _LONGEST:
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
    marks = {}
    for kind, worth in _WORTH.items():
        marks[exact_mark(kind, name)] = worth
        marks[folded_mark(kind, name)] = worth * _OTHER_CASE
    return marks
