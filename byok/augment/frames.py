"""Frames around what users and strangers wrote, in texts that a model reads.

    <workspace_guidelines>
    ...
    </workspace_guidelines>

Nothing inside closes a frame, opens another one or hides a character from the reader.
A tag counts in every spelling that a model may take for it: with spaces, in capitals,
in letters of full width, as an entity, with characters in between that nobody sees.
"""

import re
import unicodedata
from functools import lru_cache
from html import escape as escape_attribute

from byok.escapes import escape
from byok.truncate import truncate_middle

LONGEST = 100_000  # characters of one text
"""More is no guideline any more, and no window holds it."""
LONGEST_NAME = 200
_SHORT = 8000  # characters
TAGS = ("user_guidelines", "workspace_guidelines", "rule", "persona", "memories")
# By `escape`; not `\x3c`, which may begin a tag: a run of them is read only once.
_ESCAPED = r"(?:\\(?!x3c|u003c)(?:x[0-9a-f]{2}|u[0-9a-f]{8}|u[0-9a-f]{4}))"
_UNSEEN = f"{_ESCAPED}*"
_BEGIN = r"(?:[<‹〈⟨]|&lt;?|&#0*60;?|&#x0*3c;?|\\u003c|\\x3c)"
_SLASH = r"(?:[/⁄∕⧸]|&sol;|&#0*47;?|&#x0*2f;?)"
_NAMES = "|".join(
    _UNSEEN.join("[_-]?" if letter == "_" else letter for letter in tag) for tag in TAGS
)
_GAP = rf"(?:\s|{_ESCAPED})*"
_TAG = re.compile(
    rf"({_BEGIN})(?:{_GAP}{_SLASH}{_GAP}|{_UNSEEN})(?:{_NAMES})(?![0-9a-z_])"
)


# What `_plain` turns into the first character of `_BEGIN`: to fold a text takes longer.
_PERHAPS = re.compile(r"[<‹\u2329\u3008\ufe3f⟨＜﹤&＆﹠\\＼﹨]")


def frame(tag: str, text: str, *, longest: int = LONGEST, name: str = "") -> str:
    """Return a text between tags of `TAGS`, cut in the middle to about `longest`.

    It is "" for no text. A `name` stands in the opening tag, on its line.
    """
    kept = truncate_middle(text.strip(), LONGEST)  # a body may have many megabytes
    if not kept:
        return ""
    write = _write_short if len(kept) <= _SHORT else _write_long
    return write(tag, kept, longest, name[:LONGEST_NAME])


def _write(tag: str, text: str, longest: int, name: str) -> str:
    quoted = without_tags("\n".join(map(escape, text.splitlines())))
    inner = truncate_middle(quoted, longest)
    shown = escape_attribute(escape(name))
    named = f' name="{shown}"' if shown else ""
    return f"<{tag}{named}>\n{inner}\n</{tag}>"


# The same guidelines and rules come with every request, and may be long or many.
_write_short = lru_cache(256)(_write)
_write_long = lru_cache(16)(_write)


def without_tags(text: str) -> str:
    r"""Put a backslash into every tag of a frame: `<\/rule>`."""
    if not _PERHAPS.search(text):
        return text
    pieces, done = [], 0
    for found in _TAG.finditer(_fold(text)):
        pieces += [text[done : found.end(1)], "\\"]
        done = found.end(1)
    return "".join((*pieces, text[done:]))


def _fold(text: str) -> str:
    """Return a text of the same length in plain small letters, as far as it has any."""
    return text.lower() if text.isascii() else "".join(map(_plain, text))


@lru_cache(8192)
def _plain(char: str) -> str:
    folded = unicodedata.normalize("NFKC", char).casefold()
    return folded if len(folded) == 1 else char
