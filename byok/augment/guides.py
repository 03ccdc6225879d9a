"""What the user and the workspace want of every answer: guidelines, rules, skills.

Each stands in a frame of its own. Together they may take a part of the model's context
window, so that a question and an answer always fit beside them.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from byok.augment.body import first_text, items, text
from byok.augment.frames import LONGEST, LONGEST_NAME, frame
from byok.chat import Json
from byok.truncate import fair_share

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
