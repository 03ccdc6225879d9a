"""/next-edit-stream, /next_edit_loc: what the user may change next, and where."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct

from byok.core.chat import Json
from byok.core.errors import ByokError
from byok.core.stage import drain
from byok.protocols.augment.body import flag, integer, mapping, objects, text, value
from byok.protocols.augment.nodes import edit_events, one_line
from byok.protocols.augment.positions import Trimmed, lines
from byok.protocols.augment.prompts.edit import around, cleaning, selected_text
from byok.protocols.augment.prompts.prompt_parts import NOTHING, as_json, code, question
from byok.protocols.augment.remarks import Unfenced
from byok.protocols.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import WholeText

_NEAR = 10  # lines on either side of a cursor
_HEAD = re.compile(r"\s*EDIT:[ \t]*([^\r\n]*)(?:\r\n|\r|\n)")
_MAX_DESCRIPTION = 120


class Spot(Struct, frozen=True):
    """The part of the file that may change; `begin` is its offset in code points."""

    begin: int
    before: str
    old: str
    after: str
    path: str
    blob_name: str


class NextEditLines(WholeText):
    """LineReply with one suggestion, or none."""

    keeps_part = False
    heartbeat: ClassVar[Json | None] = None  # every line is read as a suggestion
    first: ClassVar[Json | None] = None

    def __init__(self, body: Json, spot: Spot, facts: ReplyFacts) -> None:
        super().__init__(_Plain())
        self._body = {"path": spot.path, "lang": text(body, "lang")}
        self._spot = spot
        self._facts = facts

    def flush(self) -> list[Json]:
        """Return the suggestion.

        Raises:
            UpstreamGarbled: the answer is cut.
        """
        said = self.so_far()
        if not said.strip():
            return []
        said = self.whole()
        bare = "".join(drain(Unfenced(), [said]))
        head = _HEAD.match(said) or _HEAD.match(bare)
        if head is None:
            return []
        spot = self._spot
        clean = cleaning(self._body, spot.old, spot.before, spot.after)
        body = head.string[head.end() :]
        new = "".join(drain(clean, [body]))
        changed = difference(spot.old, new) if new.strip() else None
        return [self._suggestion(*changed, head[1].strip())] if changed else []

    def fail(self, error: ByokError, /) -> list[Json]:
        """Return no suggestion."""
        del error
        return []

    def _suggestion(self, start: int, old: str, new: str, description: str) -> Json:
        begin = self._spot.begin + start
        suggestion = {
            "suggestion_id": f"{self._facts.request_id}-1",
            "path": self._spot.path,
            "blob_name": self._spot.blob_name,
            "char_start": begin,
            "char_end": begin + len(old),
            "existing_code": old,
            "suggested_code": new,
            "change_description": description[:_MAX_DESCRIPTION],
            "editing_score": 1,
            "localization_score": 1,
            "editing_score_threshold": 1,
        }
        return {**self._facts.fields, "next_edit": suggestion}


class _Plain:
    """Stage[str, str] that changes nothing."""

    def feed(self, text: str, /) -> tuple[str]:
        return (text,)

    def flush(self) -> tuple[()]:
        return ()


def decode_next_edit(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob[NextEditLines]:
    """Read the code around the cursor and the recent edits."""
    del state
    spot = spot_of(body)
    reply = partial(NextEditLines, body, spot)
    if not (spot.before + spot.old + spot.after).strip():
        return ReplyJob(NOTHING, reply)
    shown = {**body, "prefix": spot.before, "suffix": spot.after, "path": spot.path}
    name, before, after = around(shown)
    wish = text(body, "instruction").strip()
    blocks = (
        name,
        before,
        code("the marked part", spot.old, text(body, "lang")),
        after,
        edit_events(body),
        as_json("recent changes", value(body, "recent_changes")),
        as_json("diagnostics", value(body, "diagnostics")),
        as_json("not to be changed", value(body, "blocked_locations")),
        f"[what the user wants]\n{wish}" if wish else "",
    )
    return ReplyJob(question(body, defaults, "next_edit", blocks, whole=True), reply)


def spot_of(body: Json) -> Spot:
    """Return the selection, or the lines around the cursor if it is empty."""
    prefix, old, suffix = (
        text(body, "prefix"),
        selected_text(body),
        text(body, "suffix"),
    )
    begin = integer(body, "selection_begin_char", -1)
    if begin < 0:
        begin = max(0, integer(body, "prefix_begin")) + len(prefix)
    if not old:
        above, below = lines(prefix)[-_NEAR:], lines(suffix)[:_NEAR]
        lead, tail = "".join(above), "".join(below)
        old, begin = lead + tail, max(0, begin - len(lead))
        prefix, suffix = prefix[: len(prefix) - len(lead)], suffix[len(tail) :]
    return Spot(begin, prefix, old, suffix, text(body, "path"), text(body, "blob_name"))


def difference(old: str, new: str) -> tuple[int, str, str] | None:
    """Return the offset, old and new lines where two texts differ.

    A pure insertion includes the line before it, so that the old code is not empty.
    """
    if old == new:
        return None
    one, other = lines(old), lines(new)
    short = min(len(one), len(other))
    head = next((n for n in range(short) if one[n] != other[n]), short)
    rest = short - head
    tail = next((n for n in range(rest) if one[-1 - n] != other[-1 - n]), rest)
    if head + tail == len(one):
        head, tail = (head - 1, tail) if head else (head, max(0, tail - 1))
    start = sum(map(len, one[:head]))
    return (
        start,
        "".join(one[head : len(one) - tail]),
        "".join(other[head : len(other) - tail]),
    )


# /next_edit_loc: suggest where the next edit belongs.
#
# The model only orders the places that the client names, so that no place is invented
# and lines are counted as the client counts them.


MAX_RESULTS = 6
_MAX_PLACES = 40


class Location(Struct, frozen=True):
    """A range of lines as the client counts them; `stop` is exclusive."""

    path: str
    start: int
    stop: int
    why: str


class Candidates(WholeText):
    """ObjectReply with the places in the model's order; none after a failure."""

    def __init__(self, places: list[Location], most: int, facts: ReplyFacts) -> None:
        super().__init__(Trimmed())
        self._places = places
        self._most = most
        self._facts = facts

    def flush(self) -> Iterator[Json]:
        """Return the places that the model named."""
        yield self._write(selected_places(self.so_far(), self._places)[: self._most])

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return no places: nobody waits for them."""
        del error
        return self._write([])

    def _write(self, found: list[Location]) -> dict[str, Any]:
        candidates = [
            {
                "item": {
                    "path": place.path,
                    "range": {"start": place.start, "stop": place.stop},
                },
                "score": 1,
                "debug_info": place.why,
            }
            for place in found
        ]
        return {
            "candidate_locations": candidates,
            **self._facts.fields,
            "critical_errors": [],
        }


def decode_next_edit_place(
    body: Json, defaults: Defaults, state: DecodeState
) -> ReplyJob[Candidates]:
    """Read the places and the recent edits."""
    del state
    places = places_of(body)
    most = integer(body, "num_results", MAX_RESULTS)
    most = min(most, MAX_RESULTS) if most > 0 else MAX_RESULTS
    reply = partial(Candidates, places, most)
    if not places:
        return ReplyJob(NOTHING, reply)
    numbered = "\n".join(
        f"{number}. {one_line(f'{place.path}:{place.start} {place.why}')}".rstrip()
        for number, place in enumerate(places, 1)
    )
    wish = text(body, "instruction").strip()
    blocks = (
        f"[places]\n{numbered}",
        edit_events(body),
        as_json("recent changes", value(body, "recent_changes")),
        as_json("uncommitted changes", value(body, "vcs_change")),
        f"[what the user wants]\n{wish}" if wish else "",
    )
    return ReplyJob(
        question(body, defaults, "next_edit_place", blocks, whole=True), reply
    )


def places_of(body: Json) -> list[Location]:
    """Return the places of diagnostics and recent edits, without duplicates."""
    found: dict[tuple[str, int], Location] = {}
    own = text(body, "path")
    for place in _diagnostic_locations(body, own):
        wanted = not flag(body, "is_single_file") or not own or place.path == own
        if place.path and place.start >= 0 and wanted:
            found.setdefault((place.path, place.start), place)
    return list(found.values())[:_MAX_PLACES]


def selected_places(answer: str, places: list[Location]) -> list[Location]:
    """Return the places whose numbers the answer contains, in its order."""
    numbers = [int(n) for n in re.findall(r"\b\d{1,4}\b", answer, re.ASCII)]
    return [places[n - 1] for n in dict.fromkeys(numbers) if 0 < n <= len(places)]


def _diagnostic_locations(body: Json, own: str) -> Iterator[Location]:
    for diagnostic in objects(body, "diagnostics"):
        where = mapping(diagnostic, "location")
        start = integer(where, "line_start", -1)
        stop = max(start, integer(where, "line_end", start)) + 1
        why = " ".join(text(diagnostic, "message").split())[:200]
        yield Location(text(where, "path") or own, start, stop, why)
    for event in objects(body, "edit_events"):
        for edit in objects(event, "edits"):
            start = integer(edit, "after_line_start", -1)
            stop = max(start, integer(edit, "after_line_end", start)) + 1
            path = text(event, "path") or own
            yield Location(path, start, stop, "was just edited")
