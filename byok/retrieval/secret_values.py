"""Decide whether a value next to a name like `password` is a secret or ordinary code.

`password: 'required|min:8'`, `token: 'color.primary.500'` and `pwd == '/home/u/p2'` are
code. An agent that is shown `[redacted]` there would write that back.
"""

import re

# Placeholders are no secrets: {name}, ${NAME}, %s, <your key>.
_TEMPLATE = re.compile(
    r"[{}<>]|%[sd(]|%\w{1,64}%|\$\(|\$\w|\*{3}|x{6}|X{6}|\.\.\.|^[*&!]\w"
)
_RULES = re.compile(r"!?[a-z][A-Za-z_]*(?:[:=(].*)?")  # of a validator, separated by |
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]|[a-z]+://")
_SELECTOR = re.compile(r"(?:[#.]|--?)[A-Za-z_-]+=?")  # or an option
_SENTENCE = re.compile(r"[^\W\d_]+[.:?*…]+")
_METHOD = re.compile(
    r"(?:sha|md|argon|pbkdf|bcrypt|scrypt|scram|base|utf|aes|rsa|oauth|hs|rs|es)"
    r"[-_]?\d{0,3}[a-z]{0,2}(?:[-_][a-z0-9]{1,8}){0,3}",
    re.IGNORECASE,
)
_OWN_NAME = re.compile(
    r"[A-Za-z_.]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)s?_?\d?", re.IGNORECASE
)
_SIDES = re.compile(r"[._\-/\\:]+")
_PIECE = re.compile(r"[A-Za-z]*\d{0,4}")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_UNUSUAL = re.compile(r"[^\w.\-/:]")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_FIRST_FAR = "\u0590"  # scripts from here on are not used in passwords
_SHORTEST_RANDOM = 16
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40}")
_WORDLIKE = 0.3  # at most so many changes of case per character in joinedWords


def is_template(value: str) -> bool:
    """Tell whether the value is a placeholder, such as `${NAME}` or `<your key>`."""
    return _TEMPLATE.search(value) is not None


def is_password(value: str) -> bool:
    """Tell whether a value looks like a chosen password, and not like a name."""
    if not (_DIGIT.search(value) or _UNUSUAL.search(value)) or _is_code(value):
        return False
    # Not a password: a name with dots or slashes (errors.password.min8, kv/data/app1)
    parts = re.split(r"[./:]+", value)
    return not ((len(parts) > 2 or "/" in value) and _is_words(value))


def is_bare_password(value: str) -> bool:
    """Tell whether a value without quotes looks like a chosen password."""
    value = value.rstrip(",;")
    named = _OWN_NAME.fullmatch(value) or _METHOD.fullmatch(value)
    return not (named or is_template(value)) and is_password(value)


def is_generated(value: str) -> bool:
    """Tell whether a value is long enough and irregular enough for a generated key.

    Paths, rules and other code do not count, nor do names with a number.
    """
    if len(value) < _SHORTEST_RANDOM or not _LETTER.search(value) or _is_code(value):
        return False
    if looks_generated(value):
        return True
    return len(_DIGIT.findall(value)) >= 2 and not _is_words(value)


def looks_generated(value: str) -> bool:
    """Tell whether a value changes case or digits more often than words do.

    So does a value with the form of an AWS secret. This is one test of `is_generated`.
    """
    if _AWS_SECRET.fullmatch(value) and value.upper() != value != value.lower():
        return True
    return len(_CHANGE.findall(value)) > _WORDLIKE * len(value)


def _is_code(value: str) -> bool:
    """Tell whether a value is a path, a rule, a selector, an expression or a text."""
    if "|" in value and all(map(_RULES.fullmatch, value.split("|"))):
        return True
    if _PATH.match(value) and not any(map(looks_generated, _SIDES.split(value))):
        return True
    if any(
        value.find(closing, value.find(opening)) > value.find(opening) >= 0
        for opening, closing in ("[]", "()")
    ):
        return True
    if _SELECTOR.fullmatch(value) or _SENTENCE.fullmatch(value):
        return True
    return max(value) >= _FIRST_FAR


def _is_words(value: str) -> bool:
    """Tell whether a value consists of words and numbers between separators."""
    return all(
        _PIECE.fullmatch(piece) and not looks_generated(piece.rstrip("0123456789"))
        for piece in _SIDES.split(value)
    )
