"""Mask secrets in the lines that are shown to a model.

The key formats are those of `byok.core.redact`, which may hide too much in a log. Here
code must stay readable, because an agent writes back what it is shown: also a
`[redacted]` in place of code such as `password: 'required|min:8'`,
`token: 'color.primary.500'` or `pwd == '/home/u/p2'`. So a match must look like a value
and not like a name.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from byok.core.late import compile_late
from byok.core.redact import HINTS, MARK, PATTERNS

# Placeholders are not secrets: {name}, ${NAME}, %s, <your key>.
_PLACEHOLDER = compile_late(
    r"[{}<>]|%[sd(]|%\w{1,64}%|\$\(|\$\w|\*{3}|x{6}|X{6}|\.\.\.|^[*&!]\w"
)
# A rule of a validator; several are separated by |.
_VALIDATOR_RULE = compile_late(r"!?[a-z][A-Za-z_]*(?:[:=(].*)?")
_PATH = compile_late(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]|[a-z]+://")
_SELECTOR = compile_late(r"(?:[#.]|--?)[A-Za-z_-]+=?")  # of CSS, or an option
_SENTENCE = compile_late(r"[^\W\d_]+[.:?*…]+")
_METHOD = compile_late(
    r"(?:sha|md|argon|pbkdf|bcrypt|scrypt|scram|base|utf|aes|rsa|oauth|hs|rs|es)"
    r"[-_]?\d{0,3}[a-z]{0,2}(?:[-_][a-z0-9]{1,8}){0,3}",
    re.IGNORECASE,
)
_SECRET_NAME = compile_late(
    r"[A-Za-z_.]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)s?_?\d?", re.IGNORECASE
)
_SEPARATORS = compile_late(r"[._\-/\\:]+")
_WORD = compile_late(r"[A-Za-z]*\d{0,4}")
_DIGIT = compile_late(r"[0-9]")
_LETTER = compile_late(r"[A-Za-z]")
_SYMBOL = compile_late(r"[^\w.\-/:]")
_CHANGE = compile_late(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_FIRST_UNUSUAL_SCRIPT = "\u0590"  # passwords do not use scripts from here on
_MIN_LENGTH = 16  # of a generated key
_AWS_SECRET = compile_late(r"[A-Za-z0-9/+]{40}")
_MAX_CHANGES = 0.3  # per character of joinedWords
# name = "value", name: 'value', "name": "value", NAME => "value". Inside a string, such
# as a line of a notebook, each quotation mark has a backslash before it.
_CHOSEN_NAME = r"pass(?:word|wd|phrase)|pwd"
_SECRET_SETTING = (
    rf"(?:{_CHOSEN_NAME}|secret|token|credentials?"
    r"|(?:api|access|secret|private|auth|account|client)[_-]?(?:key|secret|token))"
)
_QUOTED = compile_late(
    rf"(({_SECRET_SETTING})[\\\"'\]]{{0,4}}\s{{0,8}}(?:=>|:=|==?|:|,|\s)\s{{0,8}}[rbfu]?)"
    r"(\\?[\"'`])([^\s\"'`]{8,512})\3",
    re.IGNORECASE,
)
_LINE_START = r"^(\s*(?:(?:#|//|;|\*)\s*)?(?:export\s+|set\s+|ENV\s+|-\s+)?[\w.-]*"
_BARE = compile_late(
    rf"{_LINE_START}{_SECRET_SETTING}\s{{0,8}}[=:]\s{{0,8}})([\w.~+/=-]{{16,512}})(?:\s+#.*)?\s*$",
    re.IGNORECASE,
)
# Only in files whose values have no quotes: YAML, INI, shell, prose.
_BARE_PASSWORD = compile_late(
    rf"{_LINE_START}(?:{_CHOSEN_NAME})\s{{0,8}}[=:]\s{{0,8}})([^\s\"'`]{{6,512}})(?:\s+#.*)?\s*$",
    re.IGNORECASE,
)
_UNQUOTED_SUFFIXES = frozenset(
    {
        *("", "yaml", "yml", "ini", "cfg", "conf", "cnf", "config", "properties"),
        *("env", "service", "list", "sh", "bash", "zsh", "ksh", "bats"),
        *("txt", "text", "md", "mdx", "markdown", "rst", "adoc", "log"),
        *("example", "sample", "dist", "template", "tpl", "tmpl", "j2"),
    }
)
_ELEMENT = compile_late(
    rf"(<[\w.:-]{{0,64}}(?:{_CHOSEN_NAME})>)([^<>\s]{{6,512}})(?=</)", re.IGNORECASE
)
_BEARER = compile_late(r"(\bbearer\s+)([A-Za-z0-9_\-.~+/=]{16,})", re.IGNORECASE)
_SECRET_WORDS = ("key", "token", "pass", "secret", "credential", "pwd", "bearer")
_KEY_HINT = "-----BEGIN "
_PLAIN_WORD = compile_late(r"[A-Za-z]?[a-z/]+|[A-Z]+")
_REGEX_CHARACTER = compile_late(r"[()\[\]\\*]")
_KEY_BEGIN = compile_late(r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = "-----END "
# A line of a private key may be in a comment or a string.
_KEY_LINE_LEAD = r"\s*(?:(?:[#*>|;]|//)\s*)?[\"'`]?"
_KEY_BODY = compile_late(
    rf"{_KEY_LINE_LEAD}([A-Za-z0-9+/=]+)(?:\\[nr]){{0,2}}[\"'`]?[\s,;\\)]*(?:\+\s*)?"
)
_KEY_HEADER = compile_late(rf"{_KEY_LINE_LEAD}(?:Proc-Type|DEK-Info|Comment|Version): ")
_PASSWORD_PREFIXES = ("pass", "pwd", "secret")
_MIN_FIRST_BODY_CHARS = 32
_MAX_KEY_LINES = 400
MAX_MASKED_CHARS = 4096


def mask_lines(
    lines: Sequence[str],
    first: int = 0,
    last: int | None = None,
    *,
    path: str = "",
    longest: int = MAX_MASKED_CHARS,
) -> list[str]:
    """Return the lines `first` to `last` (inclusive, from 0) with secrets masked.

    A private key spans lines, so up to 400 lines before `first` are examined too. Each
    returned line is cut at `longest` characters, by default more than an answer shows.
    `path` tells whether files of its type write values without quotes.
    """
    end = len(lines) if last is None else min(last + 1, len(lines))
    scan_start = max(0, first - _MAX_KEY_LINES)
    cut = [line[:longest] for line in lines[first:end]]
    text = "\n".join(cut)
    hints = [hint for hint in HINTS if hint in text]
    text = text.lower()
    words = [word for word in _SECRET_WORDS if word in text]
    may_have_key = _KEY_HINT in hints or _KEY_HINT in "\n".join(lines[scan_start:first])
    key_lines = _key_lines(lines, scan_start, end) if may_have_key else ()
    if not (hints or words or key_lines):
        return cut
    unquoted = _has_unquoted_values(path)
    return [
        MARK if n in key_lines else _mask_line(line, hints, words, unquoted)
        for n, line in enumerate(cut, first)
    ]


def mask(line: str, *, path: str = "", longest: int = MAX_MASKED_CHARS) -> str:
    """Return one line of a file with secrets masked; see `mask_lines`."""
    return mask_lines([line], path=path, longest=longest)[0]


def is_generated(value: str) -> bool:
    """Tell whether a value is long and irregular enough for a generated key.

    Paths, rules, other code, and names with a number are not.
    """
    if len(value) < _MIN_LENGTH or not _LETTER.search(value) or _is_code(value):
        return False
    if looks_generated(value):
        return True
    return len(_DIGIT.findall(value)) >= 2 and not _is_words(value)


def looks_generated(value: str) -> bool:
    """Tell whether a value changes between cases and digits more often than words do.

    A value with the form of an AWS secret counts too. This is one test of
    `is_generated`.
    """
    if _AWS_SECRET.fullmatch(value) and value.upper() != value != value.lower():
        return True
    return len(_CHANGE.findall(value)) > _MAX_CHANGES * len(value)


def is_password(value: str) -> bool:
    """Tell whether a value looks like a chosen password, and not like a name."""
    if not (_DIGIT.search(value) or _SYMBOL.search(value)) or _is_code(value):
        return False
    # Not a password: a name with dots or slashes (errors.password.min8, kv/data/app1)
    parts = re.split(r"[./:]+", value)
    return not ((len(parts) > 2 or "/" in value) and _is_words(value))


def is_template(value: str) -> bool:
    """Tell whether the value is a placeholder, such as `${NAME}` or `<your key>`."""
    return _PLACEHOLDER.search(value) is not None


def _is_code(value: str) -> bool:
    """Tell whether a value is a path, rule, selector, expression or text."""
    if "|" in value and all(map(_VALIDATOR_RULE.fullmatch, value.split("|"))):
        return True
    if _PATH.match(value) and not any(map(looks_generated, _SEPARATORS.split(value))):
        return True
    if any(
        value.find(closing, value.find(opening)) > value.find(opening) >= 0
        for opening, closing in ("[]", "()")
    ):
        return True
    if _SELECTOR.fullmatch(value) or _SENTENCE.fullmatch(value):
        return True
    return max(value) >= _FIRST_UNUSUAL_SCRIPT


def _is_words(value: str) -> bool:
    """Tell whether a value consists of words and numbers between separators."""
    return all(
        _WORD.fullmatch(piece) and not looks_generated(piece.rstrip("0123456789"))
        for piece in _SEPARATORS.split(value)
    )


@lru_cache(maxsize=4096)
def _has_unquoted_values(path: str) -> bool:
    """Tell whether files of this type write values without quotes."""
    name = path.rpartition("/")[2].lower()
    return (name.rpartition(".")[2] if "." in name else "") in _UNQUOTED_SUFFIXES


def _mask_line(
    line: str, hints: Sequence[str], words: Sequence[str], unquoted: bool
) -> str:
    """Mask a line that contains one of the hints or words."""
    for hint in hints:
        if hint in line:
            line = PATTERNS.sub(_mask_known_format, line)
            break
    low = line.lower() if words else ""
    for word in words:
        if word in low:
            line = _QUOTED.sub(_mask_quoted, line)
            line = _BARE.sub(_mask_bare, line)
            line = _ELEMENT.sub(_mask_bare_password, line)
            if unquoted:
                line = _BARE_PASSWORD.sub(_mask_bare_password, line)
            return _BEARER.sub(_mask_bare, line)
    return line


def _key_lines(lines: Sequence[str], start: int, end: int) -> set[int]:
    """Return the numbers of the lines that belong to the body of a private key."""
    body_lines: set[int] = set()
    number = start
    while number < end:
        line = lines[number]
        number += 1
        if "-----BEGIN " not in line or not _KEY_BEGIN.search(line) or _KEY_END in line:
            continue
        has_started = False
        for number in range(number, min(number + _MAX_KEY_LINES, end)):  # noqa: B020
            line = lines[number]
            body = _KEY_BODY.fullmatch(line, 0, MAX_MASKED_CHARS)
            if body and (has_started or len(body[1]) >= _MIN_FIRST_BODY_CHARS):
                has_started = True
                body_lines.add(number)
            elif line.strip() and not _KEY_HEADER.match(line):
                break
    return body_lines


def _mask_known_format(match: re.Match[str]) -> str:
    text = match[0]
    prefix = match.string[: match.start()]
    if text.startswith("eyJ"):
        return MARK
    if text.startswith("-----"):
        # Without a body, this is code that handles keys.
        body = _KEY_BEGIN.sub("", text).partition(_KEY_END)[0]
        return MARK if re.search(r"[A-Za-z0-9+/=]{16}", body) else text
    if prefix.endswith("://"):
        return text if is_template(text) or _REGEX_CHARACTER.search(text) else MARK
    if prefix.endswith("asic "):
        return text if _PLAIN_WORD.fullmatch(text) else MARK
    # Not a key: sk-folding-cube, npm_config_registry, glpat-your-token-here
    return MARK if _DIGIT.search(text) or looks_generated(text) else text


def _mask_quoted(match: re.Match[str]) -> str:
    prefix, name, quote, value = match.groups()
    is_chosen = name.lower().startswith(_PASSWORD_PREFIXES)
    is_secret = is_password if is_chosen else is_generated
    if is_template(value) or not is_secret(value):
        return match[0]
    return f"{prefix}{quote}{MARK}{quote}"


def _mask_bare(match: re.Match[str]) -> str:
    prefix, value = match.groups()
    return f"{prefix}{MARK}" if is_generated(value) else match[0]


def _mask_bare_password(match: re.Match[str]) -> str:
    prefix, value = match[1], match[2].rstrip(",;")
    is_name_or_method = _SECRET_NAME.fullmatch(value) or _METHOD.fullmatch(value)
    if is_name_or_method or is_template(value) or not is_password(value):
        return match[0]
    return f"{prefix}{MARK}"
