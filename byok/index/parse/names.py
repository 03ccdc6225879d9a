"""Exact names of definitions, and the marks that stand for them in the index.

Terms are stems, so `Context` and `contexts` are one. A mark says that a chunk defines
exactly this name:

    :t:RouterGroup   a type of this name is defined here
    :T:routergroup   the same in lower case, for whoever writes it otherwise
"""

import re
from enum import StrEnum

_LONGEST = 64
_LETTER = r"A-Za-z_\u00c0-\u167f\u1681-\u1fff"
# Lisp and PowerShell have hyphens in names; Ruby and Lisp end some with `?` or `!`.
_NAME = re.compile(rf"[{_LETTER}][{_LETTER}0-9$]*(?:-[{_LETTER}0-9$]+)*")
_SEPARATOR = re.compile(r"::|->|[.:#\\/]")
_SIGILS, _ENDINGS = "$@&*", "?!'"


class NameKind(StrEnum):
    """What a name stands for; the value is the letter of its marks."""

    TYPE = "t"
    FUNCTION = "f"
    OTHER = "o"


# Kinds of nodes, the first row that matches: `method_declaration`, `class_specifier`.
_KINDS = (
    (None, re.compile(r"impl_item|foreign_mod_item|rule_set")),  # they define no name
    (
        NameKind.FUNCTION,
        re.compile(
            r"func|FnProto|method|constructor|subroutine|fun_decl|signature|defun|macro"
            r"|getter|setter|init_|deinit|rpc|bind|modifier|operator"
        ),
    ),
    (
        NameKind.TYPE,
        re.compile(
            r"class|struct|interface|enum|union|trait|type|record|object|protocol"
            r"|message|service|contract|library|mixin|extension|exception|delegate"
            r"|concept|table|view"
        ),
    ),
)


def name_kind(node: str) -> NameKind | None:
    """Return what a kind of node defines, None if it only repeats a name."""
    for kind, pattern in _KINDS:
        if pattern.search(node):
            return kind
    return NameKind.OTHER


def plain_name(name: str) -> str:
    """Return the last part of a name, without sigils; "" if that is no name."""
    last = _SEPARATOR.split(name[-4 * _LONGEST :])[-1]
    last = last.strip().lstrip(_SIGILS).rstrip(_ENDINGS)
    return last if len(last) <= _LONGEST and _NAME.fullmatch(last) else ""


def exact_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name as it is written."""
    return f":{kind}:{name}"


def folded_mark(kind: NameKind, name: str) -> str:
    """Return the mark of a name of which only the lower-case form is known."""
    return f":{kind.upper()}:{name.lower()}"


def name_marks(node: str, name: str) -> list[str]:
    """Return the marks of a definition: its kind of node and its name."""
    kind, plain = name_kind(node), plain_name(name)
    if kind is None or not plain:
        return []
    marks = [exact_mark(kind, plain)]
    if plain != plain.lower():
        marks.append(folded_mark(kind, plain))
    return marks
