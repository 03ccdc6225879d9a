"""Frames around what users and strangers wrote, and the guidelines in them.

    <workspace_guidelines>
    ...
    </workspace_guidelines>

Nothing inside closes a frame, opens another one or hides a character from the reader.
A tag counts in every spelling that a model may take for it: with spaces, in capitals,
in letters of full width, as an entity, with characters in between that nobody sees.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import escape as escape_attribute
from itertools import accumulate
from typing import Any, NamedTuple

from byok.core.chat import Json
from byok.core.escapes import escape, fair_share, truncate_middle
from byok.protocols.augment.body import first_text, items, text

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


def fit(tag: str, text: str, longest: int, what: str) -> tuple[str, str]:
    """Return a text in its frame, and for the log what of it does not fit, else ""."""
    size, framed = len(text.strip()), frame(tag, text, longest=longest)
    cut = f"{what} {size:,} characters, of which {longest:,} fit"
    return framed, cut if size > longest else ""


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


# What the user and the workspace want of every answer: guidelines, rules, skills.
#
# Each stands in a frame of its own. Together they may take a part of the model's
# context window, so that a question and an answer always fit beside them.


_SHARE = 4  # a quarter of the window
_CHARACTERS = 3  # of a token, rather too few than too many
_MARKS = 20
_LEAST = 200  # characters of a text that is cut; less would say nothing


class Guides(NamedTuple):
    """The frames, and what was left out for the log, "" if nothing was."""

    frames: tuple[str, ...] = ()
    note: str = ""


class _Guide(NamedTuple):
    tag: str
    text: str
    name: str = ""

    @property
    def around(self) -> int:
        """About how many characters its frame takes beside the text."""
        return 2 * len(self.tag) + min(len(self.name), LONGEST_NAME) + _MARKS

    def write(self, longest: int) -> str:
        """Return it in its frame, with a text of about `longest` characters."""
        return frame(self.tag, self.text, longest=longest, name=self.name)


def room_of(window: int) -> int:
    """Return how many characters of a window of so many tokens they may take."""
    return min(window * _CHARACTERS // _SHARE or LONGEST, LONGEST)


def read_guides(body: Json, window: int = 0) -> Guides:
    """Return what a body says of every answer, for a window of so many tokens.

    A window of 0 is unknown. Where all of it is too long, texts are cut in their
    middles, the long ones first, and of very many the last ones are left out.
    """
    room = room_of(window)
    guides = [guide for guide in _read(body) if guide.text.strip()]
    if not guides:
        return Guides()
    costs = [min(len(guide.text), _LEAST) + guide.around for guide in guides]
    kept = sum(total <= room for total in accumulate(costs))
    frames, cut = _fit(guides[:kept], room)
    said = [
        *([f"{cut} are cut in the middle"] if cut else []),
        *([f"{len(guides) - kept} are left out"] if kept < len(guides) else []),
    ]
    total = sum(len(guide.text) for guide in guides)
    note = (
        f"guidelines, rules and skills have {total:,} characters, of which about "
        f"{room:,} fit: {' and '.join(said)}"
    )
    return Guides((*frames,), note if said else "")


def _fit(guides: list[_Guide], room: int) -> tuple[list[str], int]:
    """Return the frames in about `room` characters, and how many texts were cut."""
    room -= sum(guide.around for guide in guides)
    cap = fair_share([len(guide.text) for guide in guides], room)
    cut = [len(guide.text) > cap for guide in guides]
    frames = [
        guide.write(cap if c else LONGEST) for guide, c in zip(guides, cut, strict=True)
    ]
    sizes = [len(text) for text in frames]
    if sum(sizes) > 2 * room:  # characters that nobody sees take more when shown
        cap = fair_share(sizes, room)
        cut = [c or size > cap for c, size in zip(cut, sizes, strict=True)]
        frames = [guide.write(cap) for guide in guides]
    return frames, sum(cut)


def _read(body: Json) -> Iterator[_Guide]:
    for name in ("user_guidelines", "workspace_guidelines"):
        yield _Guide(name, text(body, name))
    for rule in (*items(body, "rules"), *items(body, "skills")):
        yield _read_rule(rule)


def _read_rule(rule: Any) -> _Guide:
    if isinstance(rule, str):
        return _Guide("rule", rule)
    if not isinstance(rule, dict):
        return _Guide("rule", "")
    name = first_text(rule, "path", "name")
    return _Guide("rule", first_text(rule, "content", "text"), name)
