"""Frames around texts of users and strangers, and the guidelines in them.

    <workspace_guidelines>
    ...
    </workspace_guidelines>

A text inside cannot close its frame, open another one, or contain invisible characters.
A tag is recognised in every spelling that a model may mistake for it: with spaces, in
capitals, in full-width letters, as an entity, with invisible characters in between.

Guidelines, rules and skills each have a frame. Together they may use a part of the
model's context window, so that a question and an answer always fit beside them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import escape as escape_attribute
from itertools import accumulate
from typing import NamedTuple

from byok.core.chat import Json
from byok.core.escapes import escape, fair_share, truncate_middle
from byok.protocols.augment.body import first_text, items, text

LONGEST = 100_000  # characters of one text; no window has space for more
LONGEST_NAME = 200
_MAX_SHORT_CHARS = 8000  # of a text in the larger cache
TAGS = ("user_guidelines", "workspace_guidelines", "rule", "persona", "memories")
# Characters written by `escape`, except `\x3c`, which may begin a tag. So a run of them
# is read only once.
_ESCAPED = r"(?:\\(?!x3c|u003c)(?:x[0-9a-f]{2}|u[0-9a-f]{8}|u[0-9a-f]{4}))"
_INVISIBLE = f"{_ESCAPED}*"
_BEGIN = r"(?:[<‹〈⟨]|&lt;?|&#0*60;?|&#x0*3c;?|\\u003c|\\x3c)"
_SLASH = r"(?:[/⁄∕⧸]|&sol;|&#0*47;?|&#x0*2f;?)"
_NAMES = "|".join(
    _INVISIBLE.join("[_-]?" if letter == "_" else letter for letter in tag)
    for tag in TAGS
)
_GAP = rf"(?:\s|{_ESCAPED})*"
_TAG = re.compile(
    rf"({_BEGIN})(?:{_GAP}{_SLASH}{_GAP}|{_INVISIBLE})(?:{_NAMES})(?![0-9a-z_])"
)

# Characters that `_plain` turns into the first one of `_BEGIN`. To search for them is
# faster than to fold a text.
_MAY_BEGIN_TAG = re.compile(r"[<‹\u2329\u3008\ufe3f⟨＜﹤&＆﹠\\＼﹨]")
_WINDOW_PART = 4  # guides get a quarter of the window
_CHARS_PER_TOKEN = 3  # a low estimate
_FRAME_CHARS = 20  # of a frame without its name
_MIN_CUT_CHARS = 200  # of a text that is cut; less would be useless


def frame(tag: str, text: str, *, longest: int = LONGEST, name: str = "") -> str:
    """Return a text between tags of `TAGS`, cut in the middle to about `longest`.

    The result is "" for a blank text. A `name` is an attribute of the opening tag.
    """
    text = truncate_middle(text.strip(), LONGEST)  # a body may have many megabytes
    if not text:
        return ""
    write = _write_short if len(text) <= _MAX_SHORT_CHARS else _write_long
    return write(tag, text, longest, name[:LONGEST_NAME])


def fit(tag: str, text: str, longest: int, subject: str) -> tuple[str, str]:
    """Return a text in its frame, and a line for the log if it was cut, else "".

    `subject` begins the line, as "memories have".
    """
    size, framed = len(text.strip()), frame(tag, text, longest=longest)
    note = f"{subject} {size:,} characters, of which {longest:,} fit"
    return framed, note if size > longest else ""


def _write(tag: str, text: str, longest: int, name: str) -> str:
    quoted = without_tags("\n".join(map(escape, text.splitlines())))
    inner = truncate_middle(quoted, longest)
    value = escape_attribute(escape(name))
    attribute = f' name="{value}"' if value else ""
    return f"<{tag}{attribute}>\n{inner}\n</{tag}>"


# The same guidelines and rules come with every request, and may be long or many.
_write_short = lru_cache(256)(_write)
_write_long = lru_cache(16)(_write)


def without_tags(text: str) -> str:
    r"""Put a backslash into every tag of a frame: `<\/rule>`."""
    if not _MAY_BEGIN_TAG.search(text):
        return text
    pieces, done = [], 0
    for match in _TAG.finditer(_fold(text)):
        pieces += [text[done : match.end(1)], "\\"]
        done = match.end(1)
    return "".join((*pieces, text[done:]))


def _fold(text: str) -> str:
    """Return a text of the same length, with letters in plain lower case."""
    return text.lower() if text.isascii() else "".join(map(_plain, text))


@lru_cache(8192)
def _plain(char: str) -> str:
    folded = unicodedata.normalize("NFKC", char).casefold()
    return folded if len(folded) == 1 else char


class Guides(NamedTuple):
    """The frames, and a line for the log if something was left out, else ""."""

    frames: tuple[str, ...] = ()
    note: str = ""


class _Guide(NamedTuple):
    tag: str
    text: str
    name: str = ""

    @property
    def frame_chars(self) -> int:
        """The approximate characters of its frame without the text."""
        return 2 * len(self.tag) + min(len(self.name), LONGEST_NAME) + _FRAME_CHARS

    def write(self, longest: int) -> str:
        """Return the frame, with a text of at most about `longest` characters."""
        return frame(self.tag, self.text, longest=longest, name=self.name)


def guide_space(window: int) -> int:
    """Return how many characters of a window, in tokens, the guides may use."""
    return min(window * _CHARS_PER_TOKEN // _WINDOW_PART or LONGEST, LONGEST)


def read_guides(body: Json, window: int = 0) -> Guides:
    """Return the guidelines, rules and skills of a body, for a window in tokens.

    A window of 0 is unknown. If they are too long, texts are cut in their middles, the
    longest ones first; if there are too many, the last ones are left out.
    """
    space = guide_space(window)
    guides = [guide for guide in _read(body) if guide.text.strip()]
    if not guides:
        return Guides()
    costs = [
        min(len(guide.text), _MIN_CUT_CHARS) + guide.frame_chars for guide in guides
    ]
    count = sum(total <= space for total in accumulate(costs))
    frames, cut = _fit(guides[:count], space)
    changes = [
        *([f"{cut} are cut in the middle"] if cut else []),
        *([f"{len(guides) - count} are left out"] if count < len(guides) else []),
    ]
    total = sum(len(guide.text) for guide in guides)
    note = (
        f"guidelines, rules and skills have {total:,} characters, of which about "
        f"{space:,} fit: {' and '.join(changes)}"
    )
    return Guides((*frames,), note if changes else "")


def _fit(guides: list[_Guide], space: int) -> tuple[list[str], int]:
    """Return the frames in about `space` characters, and how many texts were cut."""
    space -= sum(guide.frame_chars for guide in guides)
    cap = fair_share([len(guide.text) for guide in guides], space)
    cut = [len(guide.text) > cap for guide in guides]
    frames = [
        guide.write(cap if c else LONGEST) for guide, c in zip(guides, cut, strict=True)
    ]
    sizes = [len(text) for text in frames]
    if sum(sizes) > 2 * space:  # escaped invisible characters are longer
        cap = fair_share(sizes, space)
        cut = [c or size > cap for c, size in zip(cut, sizes, strict=True)]
        frames = [guide.write(cap) for guide in guides]
    return frames, sum(cut)


def _read(body: Json) -> Iterator[_Guide]:
    for name in ("user_guidelines", "workspace_guidelines"):
        yield _Guide(name, text(body, name))
    for rule in (*items(body, "rules"), *items(body, "skills")):
        match rule:
            case str():
                yield _Guide("rule", rule)
            case dict():
                name = first_text(rule, "path", "name")
                yield _Guide("rule", first_text(rule, "content", "text"), name)
            case _:
                pass
