"""/next_edit_loc: suggest where the next edit belongs.

The model only orders the places that the client names, so that no place is invented and
lines are counted as the client counts them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from byok.augment.blocks import edit_events, one_line
from byok.augment.body import flag, integer, mapping, objects, text, value
from byok.augment.endings import Trimmed
from byok.augment.prompts.prompt_parts import NOTHING, as_json, question
from byok.augment.reply_job import DecodeState, Defaults, ReplyFacts, ReplyJob
from byok.augment.text_reply import WholeText
from byok.chat import Json
from byok.errors import ByokError

MAX_RESULTS = 6
_MAX_PLACES = 40


@dataclass(frozen=True, slots=True)
class Location:
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


def decode(body: Json, defaults: Defaults, state: DecodeState) -> ReplyJob[Candidates]:
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
