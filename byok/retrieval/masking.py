"""Mask secrets in the lines that are shown to a model.

The key formats are those of `byok.redact`, which may hide too much in a log. Here code
must stay readable, because an agent writes back what it is shown. So a match must look
like a value and not like a name.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from byok.redact import HINTS, MARK, PATTERNS
from byok.retrieval.secret_values import (
    is_bare_password,
    is_generated,
    is_password,
    is_template,
    looks_generated,
)

# name = "value", name: 'value', "name": "value", NAME => "value"; inside a string, such
# as a line of a notebook, each quotation mark has a backslash before it
_CHOSEN = r"pass(?:word|wd|phrase)|pwd"
_NAME = (
    rf"(?:{_CHOSEN}|secret|token|credentials?"
    r"|(?:api|access|secret|private|auth|account|client)[_-]?(?:key|secret|token))"
)
_QUOTED = re.compile(
    rf"(({_NAME})[\\\"'\]]{{0,4}}\s{{0,8}}(?:=>|:=|==?|:|,|\s)\s{{0,8}}[rbfu]?)"
    r"(\\?[\"'`])([^\s\"'`]{8,512})\3",
    re.IGNORECASE,
)
_LINE = r"^(\s*(?:(?:#|//|;|\*)\s*)?(?:export\s+|set\s+|ENV\s+|-\s+)?[\w.-]*"
_BARE = re.compile(
    rf"{_LINE}{_NAME}\s{{0,8}}[=:]\s{{0,8}})([\w.~+/=-]{{16,512}})(?:\s+#.*)?\s*$",
    re.IGNORECASE,
)
# Only in files whose values have no quotes: YAML, INI, shell, prose.
_BARE_PASSWORD = re.compile(
    rf"{_LINE}(?:{_CHOSEN})\s{{0,8}}[=:]\s{{0,8}})([^\s\"'`]{{6,512}})(?:\s+#.*)?\s*$",
    re.IGNORECASE,
)
_UNQUOTED = frozenset(
    {
        *("", "yaml", "yml", "ini", "cfg", "conf", "cnf", "config", "properties"),
        *("env", "service", "list", "sh", "bash", "zsh", "ksh", "bats"),
        *("txt", "text", "md", "mdx", "markdown", "rst", "adoc", "log"),
        *("example", "sample", "dist", "template", "tpl", "tmpl", "j2"),
    }
)
_ELEMENT = re.compile(
    rf"(<[\w.:-]{{0,64}}(?:{_CHOSEN})>)([^<>\s]{{6,512}})(?=</)", re.IGNORECASE
)
_BEARER = re.compile(r"(\bbearer\s+)([A-Za-z0-9_\-.~+/=]{16,})", re.IGNORECASE)
_WORDS = ("key", "token", "pass", "secret", "credential", "pwd", "bearer")
_KEY_HINT = "-----BEGIN "
_PLAIN = re.compile(r"[A-Za-z]?[a-z/]+|[A-Z]+")
_PATTERN = re.compile(r"[()\[\]\\*]")
_DIGIT = re.compile(r"[0-9]")

_BEGIN = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_END = "-----END "
# A line of a private key may be in a comment or a string.
_LEAD = r"\s*(?:(?:[#*>|;]|//)\s*)?[\"'`]?"
_BODY = re.compile(
    rf"{_LEAD}([A-Za-z0-9+/=]+)(?:\\[nr]){{0,2}}[\"'`]?[\s,;\\)]*(?:\+\s*)?"
)
_HEADER = re.compile(rf"{_LEAD}(?:Proc-Type|DEK-Info|Comment|Version): ")
_PASSWORDS = ("pass", "pwd", "secret")
_FIRST_BODY = 32
_LONGEST_KEY = 400
LONGEST_MASKED = 4096


def mask(line: str, *, path: str = "", longest: int = LONGEST_MASKED) -> str:
    """Return one line of a file with secrets masked; see `mask_lines`."""
    return mask_lines([line], path=path, longest=longest)[0]


def mask_lines(
    lines: Sequence[str],
    first: int = 0,
    last: int | None = None,
    *,
    path: str = "",
    longest: int = LONGEST_MASKED,
) -> list[str]:
    """Return the lines `first` to `last` (inclusive, from 0) with secrets masked.

    A private key spans lines, so up to 400 lines before `first` are examined, too. Each
    returned line is cut at `longest` characters, by default more than an answer shows.
    """
    end = len(lines) if last is None else min(last + 1, len(lines))
    before = max(0, first - _LONGEST_KEY)
    cut = [line[:longest] for line in lines[first:end]]
    shown = "\n".join(cut)
    hints = [hint for hint in HINTS if hint in shown]
    shown = shown.lower()
    words = [word for word in _WORDS if word in shown]
    may_be_inside = _KEY_HINT in hints or _KEY_HINT in "\n".join(lines[before:first])
    inside = _key_lines(lines, before, end) if may_be_inside else ()
    if not (hints or words or inside):
        return cut
    unquoted = _has_unquoted(path)
    return [
        MARK if n in inside else _mask_line(line, hints, words, unquoted)
        for n, line in enumerate(cut, first)
    ]


@lru_cache(maxsize=4096)
def _has_unquoted(path: str) -> bool:
    """Tell whether files of this type write values without quotes."""
    name = path.rpartition("/")[2].lower()
    return (name.rpartition(".")[2] if "." in name else "") in _UNQUOTED


def _mask_line(
    line: str, hints: Sequence[str], words: Sequence[str], unquoted: bool
) -> str:
    """Mask a line where it contains one of the hints or words."""
    for hint in hints:
        if hint in line:
            line = PATTERNS.sub(_mask_known_format, line)
            break
    low = line.lower() if words else ""
    for word in words:
        if word in low:
            line = _QUOTED.sub(_mask_quoted, line)
            line = _BARE.sub(_bare, line)
            line = _ELEMENT.sub(_bare_password, line)
            if unquoted:
                line = _BARE_PASSWORD.sub(_bare_password, line)
            return _BEARER.sub(_bare, line)
    return line


def _key_lines(lines: Sequence[str], start: int, end: int) -> set[int]:
    """Return the numbers of the lines that are the body of a private key."""
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
            body = _BODY.fullmatch(line, 0, LONGEST_MASKED)
            if body and (began or len(body[1]) >= _FIRST_BODY):
                began = True
                found.add(number)
            elif line.strip() and not _HEADER.match(line):
                break
    return found


def _mask_known_format(match: re.Match[str]) -> str:
    text = match[0]
    before = match.string[: match.start()]
    if text.startswith("eyJ"):
        return MARK
    if text.startswith("-----"):
        # Without a body it is code that handles keys.
        body = _BEGIN.sub("", text).partition(_END)[0]
        return MARK if re.search(r"[A-Za-z0-9+/=]{16}", body) else text
    if before.endswith("://"):
        return text if is_template(text) or _PATTERN.search(text) else MARK
    if before.endswith("asic "):
        return text if _PLAIN.fullmatch(text) else MARK
    # Not a key: sk-folding-cube, npm_config_registry, glpat-your-token-here
    return MARK if _DIGIT.search(text) or looks_generated(text) else text


def _mask_quoted(match: re.Match[str]) -> str:
    before, name, quote, value = match.groups()
    is_secret = is_password if name.lower().startswith(_PASSWORDS) else is_generated
    if is_template(value) or not is_secret(value):
        return match[0]
    return f"{before}{quote}{MARK}{quote}"


def _bare(match: re.Match[str]) -> str:
    before, value = match.groups()
    return f"{before}{MARK}" if is_generated(value) else match[0]


def _bare_password(match: re.Match[str]) -> str:
    before, value = match.groups()
    return f"{before}{MARK}" if is_bare_password(value) else match[0]
