"""Mask secrets in the lines that are shown to a model.

The key formats are those of `byok.core.redact`, which may hide too much in a log. Here
code must stay readable, because an agent writes back what it is shown. So a match must
look like a value and not like a name.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from byok.core.late import compile_late
from byok.core.redact import HINTS, MARK, PATTERNS

# Decide whether a value next to a name like `password` is a secret or ordinary code.
#
# `password: 'required|min:8'`, `token: 'color.primary.500'` and `pwd == '/home/u/p2'`
# are code. An agent that is shown `[redacted]` there would write that back.


# Placeholders are no secrets: {name}, ${NAME}, %s, <your key>.
_TEMPLATE = compile_late(
    r"[{}<>]|%[sd(]|%\w{1,64}%|\$\(|\$\w|\*{3}|x{6}|X{6}|\.\.\.|^[*&!]\w"
)
_RULES = compile_late(
    r"!?[a-z][A-Za-z_]*(?:[:=(].*)?"
)  # of a validator, separated by |
_PATH = compile_late(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]|[a-z]+://")
_SELECTOR = compile_late(r"(?:[#.]|--?)[A-Za-z_-]+=?")  # or an option
_SENTENCE = compile_late(r"[^\W\d_]+[.:?*…]+")
_METHOD = compile_late(
    r"(?:sha|md|argon|pbkdf|bcrypt|scrypt|scram|base|utf|aes|rsa|oauth|hs|rs|es)"
    r"[-_]?\d{0,3}[a-z]{0,2}(?:[-_][a-z0-9]{1,8}){0,3}",
    re.IGNORECASE,
)
_OWN_NAME = compile_late(
    r"[A-Za-z_.]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)s?_?\d?", re.IGNORECASE
)
_SIDES = compile_late(r"[._\-/\\:]+")
_PIECE = compile_late(r"[A-Za-z]*\d{0,4}")
_DIGIT = compile_late(r"[0-9]")
_LETTER = compile_late(r"[A-Za-z]")
_UNUSUAL = compile_late(r"[^\w.\-/:]")
_CHANGE = compile_late(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_FIRST_FAR = "\u0590"  # scripts from here on are not used in passwords
_SHORTEST_RANDOM = 16
_AWS_SECRET = compile_late(r"[A-Za-z0-9/+]{40}")
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


# name = "value", name: 'value', "name": "value", NAME => "value"; inside a string, such
# as a line of a notebook, each quotation mark has a backslash before it
_CHOSEN = r"pass(?:word|wd|phrase)|pwd"
_NAME = (
    rf"(?:{_CHOSEN}|secret|token|credentials?"
    r"|(?:api|access|secret|private|auth|account|client)[_-]?(?:key|secret|token))"
)
_QUOTED = compile_late(
    rf"(({_NAME})[\\\"'\]]{{0,4}}\s{{0,8}}(?:=>|:=|==?|:|,|\s)\s{{0,8}}[rbfu]?)"
    r"(\\?[\"'`])([^\s\"'`]{8,512})\3",
    re.IGNORECASE,
)
_LINE = r"^(\s*(?:(?:#|//|;|\*)\s*)?(?:export\s+|set\s+|ENV\s+|-\s+)?[\w.-]*"
_BARE = compile_late(
    rf"{_LINE}{_NAME}\s{{0,8}}[=:]\s{{0,8}})([\w.~+/=-]{{16,512}})(?:\s+#.*)?\s*$",
    re.IGNORECASE,
)
# Only in files whose values have no quotes: YAML, INI, shell, prose.
_BARE_PASSWORD = compile_late(
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
_ELEMENT = compile_late(
    rf"(<[\w.:-]{{0,64}}(?:{_CHOSEN})>)([^<>\s]{{6,512}})(?=</)", re.IGNORECASE
)
_BEARER = compile_late(r"(\bbearer\s+)([A-Za-z0-9_\-.~+/=]{16,})", re.IGNORECASE)
_WORDS = ("key", "token", "pass", "secret", "credential", "pwd", "bearer")
_KEY_HINT = "-----BEGIN "
_PLAIN = compile_late(r"[A-Za-z]?[a-z/]+|[A-Z]+")
_PATTERN = compile_late(r"[()\[\]\\*]")

_BEGIN = compile_late(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_END = "-----END "
# A line of a private key may be in a comment or a string.
_LEAD = r"\s*(?:(?:[#*>|;]|//)\s*)?[\"'`]?"
_BODY = compile_late(
    rf"{_LEAD}([A-Za-z0-9+/=]+)(?:\\[nr]){{0,2}}[\"'`]?[\s,;\\)]*(?:\+\s*)?"
)
_HEADER = compile_late(rf"{_LEAD}(?:Proc-Type|DEK-Info|Comment|Version): ")
_PASSWORDS = ("pass", "pwd", "secret")
_FIRST_BODY = 32
_LONGEST_KEY = 400
MAX_MASKED_CHARS = 4096


def mask(line: str, *, path: str = "", longest: int = MAX_MASKED_CHARS) -> str:
    """Return one line of a file with secrets masked; see `mask_lines`."""
    return mask_lines([line], path=path, longest=longest)[0]


def mask_lines(
    lines: Sequence[str],
    first: int = 0,
    last: int | None = None,
    *,
    path: str = "",
    longest: int = MAX_MASKED_CHARS,
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
            body = _BODY.fullmatch(line, 0, MAX_MASKED_CHARS)
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
