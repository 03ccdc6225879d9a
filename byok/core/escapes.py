r"""Escape invisible characters as `\x1b`, `\u200b`, `\U000e0041`; truncate texts.

Names of files, code and messages may come from a stranger. Control characters of
terminals, marks that change the order of letters, and characters without width could
make a model or a terminal read another text than the user sees.
"""

import re
from collections.abc import Sequence

# Unicode's Default_Ignorable_Code_Point, controls except the tab, line separators,
# annotation marks, and bytes that are not UTF-8.
_UNSEEN = (
    r"\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Scripts that cannot be written without the joiners U+200C and U+200D, and emoji.
_JOINED = (
    r"\u0600-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    r"\u2190-\u2bff\U0001f000-\U0001faff"
)
# Characters with two forms, as a symbol and in colours: U+FE0E and U+FE0F choose one.
# Behind any other character these could hide bits. A digit has two forms in a keycap
# only, before U+20E3.
_TWO_LOOKS = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff"
)
_MAYBE_ODD = re.compile(
    rf"[{_UNSEEN}\u200c\u200d\ufe0e\ufe0f]"
)  # ten times faster than _ODD
_ODD = re.compile(
    rf"[{_UNSEEN}]"
    rf"|(?<![{_JOINED}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"
    rf"|(?<![{_TWO_LOOKS}])[\ufe0e\ufe0f](?!\u20e3)"
)
LEFT_OUT = "\n[… the middle was left out to save room …]\n"
_TAIL_CHARS = 500  # the last lines of a tool's result hold the id of its full text


def escape(text: str) -> str:
    """Return a text on one line, with invisible characters as escapes."""
    return _ODD.sub(_escape, text) if _MAYBE_ODD.search(text) else text


def escape_json(text: str) -> str:
    """Escape a text of JSON so that its value stays; its line ends are layout."""
    return _ODD.sub(_escape_json, text)


def shell_word(text: object) -> str:
    """Return a text in quotes, as one word of a shell command that people copy."""
    inner = str(text).replace("'", "'\\''")
    return f"'{inner}'"


def is_text(name: str) -> bool:
    """Tell whether a name can be encoded in UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # Python's surrogate for a byte that is not UTF-8
        code -= 0xDC00
    if code in (0x0A, 0x0D):
        return "\\n" if code == 0x0A else "\\r"
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _escape_json(match: re.Match[str]) -> str:
    if match[0] == "\n":
        return "\n"
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("(.{4})", r"\\u\1", units)


def keep_ends(text: str, head: int, tail: int) -> str:
    """Replace the middle of a text by a mark, unless the text would not get shorter."""
    if len(text) <= head + len(LEFT_OUT) + tail:
        return text
    return text[:head] + LEFT_OUT + text[len(text) - tail :]


def truncate_middle(text: str, limit: int) -> str:
    """Cut a text in the middle to about `limit` characters."""
    tail = min(_TAIL_CHARS, limit // 3)
    return keep_ends(text, max(limit - tail - len(LEFT_OUT), 0), tail)


def fair_share(sizes: Sequence[int], budget: int) -> int:
    """Return the cap with which all sizes fit into a budget; small ones stay whole."""
    remaining = len(sizes)
    for size in sorted(sizes):
        if size * remaining > budget:
            return max(budget, 0) // remaining
        budget -= size
        remaining -= 1
    return max(sizes, default=0)
