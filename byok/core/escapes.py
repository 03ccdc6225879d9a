r"""Characters that nobody sees are shown as escapes: `\x1b`, `\u200b`, `\U000e0041`.

Names of files, code and messages are a stranger's. What a terminal obeys, what changes
the order of letters, and what has no width could say something else to a model or a
terminal than to the reader.
"""

import re
from collections.abc import Sequence

# Unicode's Default_Ignorable_Code_Point, controls but the tab, line separators, marks
# of annotations, and bytes that are no UTF-8.
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
# What has two looks, as a symbol and in colours: U+FE0E and U+FE0F choose one, and hide
# bits behind anything else. A digit has two in a keycap alone, before U+20E3.
_TWO_LOOKS = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff"
)
_PERHAPS_ODD = re.compile(rf"[{_UNSEEN}\u200c\u200d\ufe0e\ufe0f]")  # ten times faster
_ODD = re.compile(
    rf"[{_UNSEEN}]"
    rf"|(?<![{_JOINED}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"
    rf"|(?<![{_TWO_LOOKS}])[\ufe0e\ufe0f](?!\u20e3)"
)


def escape(text: str) -> str:
    """Return a text on one line in which everything can be seen."""
    return _ODD.sub(_escape, text) if _PERHAPS_ODD.search(text) else text


def escape_json(text: str) -> str:
    """Do the same in JSON, whose value stays and whose line ends are its layout."""
    return _ODD.sub(_escape_json, text)


def shell_word(text: object) -> str:
    """Return a text in quotes, as one word of a command that people copy."""
    inner = str(text).replace("'", "'\\''")
    return f"'{inner}'"


def is_text(name: str) -> bool:
    """Tell whether a name is one that texts can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte that is no UTF-8
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


# Truncate texts: keep both ends of one, share a limit fairly among many.


LEFT_OUT = "\n[… the middle was left out to save room …]\n"
_TAIL = 500  # characters; the last lines of a result hold the id of the whole of it


def keep_ends(text: str, head: int, tail: int) -> str:
    """Keep both ends of a text; one that would not become shorter stays."""
    if len(text) <= head + len(LEFT_OUT) + tail:
        return text
    return text[:head] + LEFT_OUT + text[len(text) - tail :]


def truncate_middle(text: str, limit: int) -> str:
    """Cut a text in the middle to about `limit` characters."""
    tail = min(_TAIL, limit // 3)
    return keep_ends(text, max(limit - tail - len(LEFT_OUT), 0), tail)


def fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the cap with which all sizes fit into the room; small ones stay whole."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(room, 0) // left
        room -= size
        left -= 1
    return max(sizes, default=0)
