"""Secrets in shown lines are masked; ordinary code that speaks of them is not.

The shapes of known keys are those of `byok.redact`, which may hide too much in a log.
Here code must stay readable, so a match has to look like a value, not like a name.
"""

import re
from collections.abc import Sequence

from byok.redact import HINTS, MARK, PATTERNS

# name = "value", name: 'value', "name": "value", NAME => "value"
_NAME = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credentials?"
    r"|(?:api|access|secret|private|auth|account|client)[_-]?(?:key|secret|token))"
)
_QUOTED = re.compile(
    rf"(({_NAME})[\"'\]]{{0,3}}\s{{0,8}}(?:=>|:=|==?|:|,|\s)\s{{0,8}}[rbfu]?)"
    r"([\"'`])([^\s\"'`]{8,512})\3",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"^(\s*(?:export\s+|set\s+|-\s+)?[\w.-]*{_NAME}\s{{0,8}}[=:]\s{{0,8}})"
    r"([\w.~+/=-]{16,512})\s*$",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s+)([A-Za-z0-9_\-.~+/=]{16,})", re.IGNORECASE)
_WORDS = ("key", "token", "pass", "secret", "credential", "pwd", "bearer")
_KEY_HINT = "-----BEGIN "
# What is put in later is no secret: {name}, ${NAME}, %s, <your key>.
_TEMPLATE = re.compile(r"[{}<>]|%[sd(]|\$\(|\$\w|\*{3}|x{6}|X{6}|\.\.\.")
_DIGIT = re.compile(r"[0-9]")
_PLAIN = re.compile(r"[A-Za-z]?[a-z/]+|[A-Z]+")
_LETTER = re.compile(r"[A-Za-z]")
_UNUSUAL = re.compile(r"[^\w.\-/:]")

_BEGIN = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_END = "-----END "
# A line of such a key may stand in a comment or a string.
_LEAD = r"\s*(?:(?:[#*>|;]|//)\s*)?[\"'`]?"
_BODY = re.compile(
    rf"{_LEAD}([A-Za-z0-9+/=]+)(?:\\[nr]){{0,2}}[\"'`]?[\s,;\\)]*(?:\+\s*)?"
)
_HEADER = re.compile(rf"{_LEAD}(?:Proc-Type|DEK-Info|Comment|Version): ")
_PASSWORDS = ("pass", "pwd", "secret")
_SHORTEST_KEY = 16
_FIRST_BODY = 32
_LONGEST_KEY = 400
_LONGEST = 4096


def mask(line: str) -> str:
    """Return the line with what looks like a secret replaced, cut at 4,096 characters.

    Nobody is shown more of a line.
    """
    return _masked(line, HINTS)


def mask_lines(
    lines: Sequence[str], first: int = 0, last: int | None = None
) -> list[str]:
    """Return the lines from `first` to `last`, both inclusive, with secrets masked.

    A private key spans lines, so those before `first` are looked at too.
    """
    end = len(lines) if last is None else min(last + 1, len(lines))
    before = max(0, first - _LONGEST_KEY)
    shown = "\n".join(lines[first:end])
    hints = [hint for hint in HINTS if hint in shown]
    may_be_inside = _KEY_HINT in hints or _KEY_HINT in "\n".join(lines[before:first])
    inside = _key_lines(lines, before, end) if may_be_inside else ()
    return [
        MARK if n in inside else _masked(lines[n], hints) for n in range(first, end)
    ]


def _masked(line: str, hints: Sequence[str]) -> str:
    """Mask a line that may hold those of the shapes which the hints announce."""
    line = line[:_LONGEST]
    for hint in hints:
        if hint in line:
            line = PATTERNS.sub(_known, line)
            break
    low = line.lower()
    for word in _WORDS:
        if word in low:
            line = _QUOTED.sub(_quoted, line)
            line = _BARE.sub(_bare, line)
            return _BEARER.sub(_bare, line)
    return line


def _key_lines(lines: Sequence[str], start: int, end: int) -> set[int]:
    """Return which lines are the body of a private key."""
    found: set[int] = set()
    number = start
    while number < end:
        line = lines[number]
        number += 1
        if "-----BEGIN " not in line or not _BEGIN.search(line) or _END in line:
            continue
        began = False
        for number in range(number, min(number + _LONGEST_KEY, end)):  # noqa: B020
            line = lines[number]
            body = _BODY.fullmatch(line, 0, _LONGEST)
            if body and (began or len(body[1]) >= _FIRST_BODY):
                began = True
                found.add(number)
            elif line.strip() and not _HEADER.match(line):
                break
    return found


def _known(match: re.Match[str]) -> str:
    text = match[0]
    before = match.string[: match.start()]
    if text.startswith("-----"):
        # Without a body it is code that speaks of keys.
        body = _BEGIN.sub("", text).partition(_END)[0]
        return MARK if re.search(r"[A-Za-z0-9+/=]{16}", body) else text
    if before.endswith("://"):
        return text if _TEMPLATE.search(text) else MARK
    if before.endswith("asic "):
        return text if _PLAIN.fullmatch(text) else MARK
    return text if text.startswith("sk-") and not _DIGIT.search(text) else MARK


def _quoted(match: re.Match[str]) -> str:
    before, name, quote, value = match.groups()
    secret = _is_password if name.lower().startswith(_PASSWORDS) else _is_random
    if _TEMPLATE.search(value) or not secret(value):
        return match[0]
    return f"{before}{quote}{MARK}{quote}"


def _bare(match: re.Match[str]) -> str:
    name, value = match.groups()
    return f"{name}{MARK}" if _is_random(value) else match[0]


def _is_password(value: str) -> bool:
    """Whether people might have chosen it, rather than named something so."""
    return bool(_DIGIT.search(value) or _UNUSUAL.search(value))


def _is_random(value: str) -> bool:
    """Whether a machine might have made it."""
    digits = len(_DIGIT.findall(value))
    return len(value) >= _SHORTEST_KEY and digits >= 2 and bool(_LETTER.search(value))
