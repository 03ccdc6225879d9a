"""/next-edit-stream, /next_edit_loc: what the user may change next, and where."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import Json, NextEditRequest, RecentEdit
from byok.core.errors import ByokError
from byok.core.events import Finish, FinishReason, StreamEvent
from byok.core.stage import drain
from byok.dialects.next_edit_formats import end_like, named_format
from byok.protocols.augment.body import flag, integer, mapping, objects, text, value
from byok.protocols.augment.nodes import one_line, render_edits
from byok.protocols.augment.positions import (
    Trimmer,
    line_ending,
    lines,
    normal,
    original,
)
from byok.protocols.augment.prompts.edit import (
    MAX_PREFIX,
    MAX_SUFFIX,
    around,
    cleaning,
    selected_text,
)
from byok.protocols.augment.prompts.prompt_parts import NOTHING, as_json, code, question
from byok.protocols.augment.remarks import FenceRemover
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import UNCHANGED, WholeText

_NEAR_LINES = 10  # on either side of a cursor
_ANSWER_HEAD = re.compile(r"\s*EDIT:[ \t]*([^\r\n]*)(?:\r\n|\r|\n)")
_MAX_DESCRIPTION = 120
MAX_RESULTS = 6
_MAX_LOCATIONS = 40
_MAX_LINE_CHARS = 4000  # at the cursor; no model can repeat a region with more


class Spot(Struct, frozen=True):
    """The part of the file that may change; `begin` is its offset in code points."""

    begin: int
    before: str
    old: str
    after: str
    path: str
    blob_name: str


class CursorSpot(Struct, frozen=True):
    """The code around the cursor, as the client sent it and in the model's request.

    `begin` is the offset of `prefix` in the file, in code points.
    """

    begin: int
    prefix: str
    suffix: str
    request: NextEditRequest

    @property
    def has_long_line(self) -> bool:
        """Whether the cursor's line is too long for models for next edits."""
        head = self.request.prefix.rpartition("\n")[2]
        return len(head + self.request.suffix.partition("\n")[0]) > _MAX_LINE_CHARS


class NextEditLines(WholeText):
    """A LineReply with one suggestion, or none."""

    heartbeat: ClassVar[Json | None] = None  # clients read every line as a suggestion
    first: ClassVar[Json | None] = None

    def __init__(
        self, body: Json, spot: Spot, cursor: CursorSpot, facts: ReplyFacts
    ) -> None:
        super().__init__(UNCHANGED, facts)
        self._body = {"path": spot.path, "lang": text(body, "lang")}
        self._spot = spot
        self._cursor = cursor
        self._format = ""

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the text, and its format from the Finish."""
        if isinstance(event, Finish):
            self._format = event.format
        return super().feed(event)

    def flush(self) -> list[Json]:
        """Return the suggestion, if any.

        Raises:
            UpstreamGarbled: the answer of a chat is cut. (A cut answer in a format of
                next edits is no suggestion.)
        """
        answer = self.so_far()
        if self._format:
            changed = self._read_format(answer)
            return [self._suggestion(*changed, "")] if changed else []
        if not answer.strip():
            return []
        answer = self.whole()
        bare = "".join(drain(FenceRemover(), [answer]))
        head = _ANSWER_HEAD.match(answer) or _ANSWER_HEAD.match(bare)
        if head is None:
            return []
        spot = self._spot
        clean = cleaning(self._body, spot.old, spot.before, spot.after)
        body = head.string[head.end() :]
        region, new = normal(spot.old), normal("".join(drain(clean, [body])))
        if not new.strip():
            return []
        new = end_like(region, new)
        changed = change_of(spot.old, region, 0, new, spot.before + spot.after)
        if changed is None:
            return []
        start, old, new = changed
        return [self._suggestion(spot.begin + start, old, new, head[1].strip())]

    def fail(self, error: ByokError, /) -> list[Json]:
        """Return no suggestion."""
        del error
        return []

    def _read_format(self, answer: str) -> tuple[int, str, str] | None:
        """Return the change in an answer in a format of next edits."""
        request, form = self._cursor.request, named_format(self._format)
        new = form.suggest(request, answer)
        if new is None or self._finish is not FinishReason.STOP:
            return None
        excerpt = form.excerpt(request)
        offset = len(request.prefix) - excerpt.cursor
        file = self._cursor.prefix + self._cursor.suffix
        changed = change_of(file, excerpt.region, offset, new)
        if changed is None:
            return None
        start, old, new = changed
        return self._cursor.begin + start, old, new

    def _suggestion(self, begin: int, old: str, new: str, description: str) -> Json:
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


def decode_next_edit(body: Json, defaults: Defaults) -> ReplyJob[NextEditLines]:
    """Decode /next-edit-stream: the code around the cursor, the recent edits."""
    spot = spot_of(body)
    cursor = cursor_of(body)
    reply = partial(NextEditLines, body, spot, cursor)
    if not (spot.before + spot.old + spot.after).strip():
        return ReplyJob(NOTHING, reply)
    near = {**body, "prefix": spot.before, "suffix": spot.after, "path": spot.path}
    name, before, after = around(near)
    wish = text(body, "instruction").strip()
    blocks = (
        name,
        before,
        code("the marked part", spot.old, text(body, "lang")),
        after,
        render_edits(body),
        as_json("recent changes", value(body, "recent_changes")),
        as_json("diagnostics", value(body, "diagnostics")),
        as_json("not to be changed", value(body, "blocked_locations")),
        f"[what the user wants]\n{wish}" if wish else "",
    )
    chat = question(body, defaults, "next_edit", blocks, whole=True)
    if not cursor.has_long_line:
        chat = replace(chat, next_edit=cursor.request)
    return ReplyJob(chat, reply)


def spot_of(body: Json) -> Spot:
    """Return the selection, or the lines around the cursor if it is empty."""
    prefix, old, suffix = (
        text(body, "prefix"),
        selected_text(body),
        text(body, "suffix"),
    )
    begin = _selection_begin(body)
    if not old:
        above, below = lines(prefix)[-_NEAR_LINES:], lines(suffix)[:_NEAR_LINES]
        lead, tail = "".join(above), "".join(below)
        old, begin = lead + tail, max(0, begin - len(lead))
        prefix, suffix = prefix[: len(prefix) - len(lead)], suffix[len(tail) :]
    return Spot(begin, prefix, old, suffix, text(body, "path"), text(body, "blob_name"))


def _selection_begin(body: Json) -> int:
    """Return the offset in the file of the selection or the cursor."""
    begin = integer(body, "selection_begin_char", -1)
    if begin >= 0:
        return begin
    return max(0, integer(body, "prefix_begin")) + len(text(body, "prefix"))


def cursor_of(body: Json) -> CursorSpot:
    """Return the code around the cursor, or around the start of a selection."""
    before, after = text(body, "prefix"), selected_text(body) + text(body, "suffix")
    if before.endswith("\r") and after.startswith("\n"):
        before, after = before[:-1], f"\r{after}"
    begin = _selection_begin(body) - len(text(body, "prefix"))
    line = len(lines(before)) + (not before or before.endswith(("\n", "\r")))
    prefix, suffix = before[-MAX_PREFIX:], after[:MAX_SUFFIX]
    begin += len(before) - len(prefix)
    path = text(body, "path")
    edits = tuple(_recent_edits(body, path))
    request = NextEditRequest(
        normal(prefix), normal(suffix), path=path, line=line, edits=edits
    )
    return CursorSpot(max(0, begin), prefix, suffix, request)


def _recent_edits(body: Json, own: str) -> Iterator[RecentEdit]:
    for event in objects(body, "edit_events"):
        for edit in objects(event, "edits"):
            before, after = text(edit, "before_text"), text(edit, "after_text")
            if before != after:
                yield RecentEdit(
                    text(event, "path") or own,
                    normal(before),
                    normal(after),
                    max(0, integer(edit, "after_line_start")),
                )


def change_of(
    text: str, region: str, offset: int, new: str, around: str = ""
) -> tuple[int, str, str] | None:
    """Return the offset, the old and the new code of a change, or None.

    `new` replaces a region, which is at an offset of the text with LF. The new code
    gets the line endings of the old one, or else those of the file.
    """
    changed = difference(region, new)
    if changed is None:
        return None
    start, old, changed_code = changed
    first = original(text, offset + start)
    last = original(text, offset + start + len(old))
    ending = line_ending(text[first:last]) or line_ending(text, around) or "\n"
    return first, text[first:last], changed_code.replace("\n", ending)


def difference(old: str, new: str) -> tuple[int, str, str] | None:
    """Return the offset, old and new lines where two texts differ.

    A pure insertion includes the line before it, so that the old code is not empty.
    """
    if old == new:
        return None
    olds, news = lines(old), lines(new)
    shorter = min(len(olds), len(news))
    head = next((n for n in range(shorter) if olds[n] != news[n]), shorter)
    limit = shorter - head
    tail = next((n for n in range(limit) if olds[-1 - n] != news[-1 - n]), limit)
    if head + tail == len(olds):
        head, tail = (head - 1, tail) if head else (head, max(0, tail - 1))
    start = sum(map(len, olds[:head]))
    return (
        start,
        "".join(olds[head : len(olds) - tail]),
        "".join(news[head : len(news) - tail]),
    )


class Location(Struct, frozen=True):
    """A range of lines, in the client's count; `stop` is exclusive."""

    path: str
    start: int
    stop: int
    reason: str


class Candidates(WholeText):
    """An ObjectReply with the client's locations in the model's order.

    The model only orders the locations that the client names, so it cannot invent one.
    After a failure there are none.
    """

    def __init__(
        self, locations: list[Location], limit: int, facts: ReplyFacts
    ) -> None:
        super().__init__(Trimmer(), facts)
        self._locations = locations
        self._limit = limit

    def flush(self) -> Iterator[Json]:
        """Return the locations that the model named."""
        named = selected_places(self.so_far(), self._locations)
        yield self._write(named[: self._limit])

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return no locations."""
        del error
        return self._write([])

    def _write(self, locations: list[Location]) -> dict[str, Any]:
        candidates = [
            {
                "item": {
                    "path": location.path,
                    "range": {"start": location.start, "stop": location.stop},
                },
                "score": 1,
                "debug_info": location.reason,
            }
            for location in locations
        ]
        return {
            "candidate_locations": candidates,
            **self._facts.fields,
            "critical_errors": [],
        }


def decode_next_edit_place(body: Json, defaults: Defaults) -> ReplyJob[Candidates]:
    """Decode /next_edit_loc: the candidate locations and the recent edits."""
    locations = places_of(body)
    limit = integer(body, "num_results", MAX_RESULTS)
    limit = min(limit, MAX_RESULTS) if limit > 0 else MAX_RESULTS
    reply = partial(Candidates, locations, limit)
    if not locations:
        return ReplyJob(NOTHING, reply)
    numbered = "\n".join(
        f"{number}. {one_line(f'{row.path}:{row.start} {row.reason}')}".rstrip()
        for number, row in enumerate(locations, 1)
    )
    wish = text(body, "instruction").strip()
    blocks = (
        f"[places]\n{numbered}",
        render_edits(body),
        as_json("recent changes", value(body, "recent_changes")),
        as_json("uncommitted changes", value(body, "vcs_change")),
        f"[what the user wants]\n{wish}" if wish else "",
    )
    return ReplyJob(
        question(body, defaults, "next_edit_place", blocks, whole=True), reply
    )


def places_of(body: Json) -> list[Location]:
    """Return the locations of diagnostics and recent edits, without duplicates."""
    locations: dict[tuple[str, int], Location] = {}
    own = text(body, "path")
    only_own = flag(body, "is_single_file") and bool(own)
    for location in _diagnostic_locations(body, own):
        is_allowed = not only_own or location.path == own
        if location.path and location.start >= 0 and is_allowed:
            locations.setdefault((location.path, location.start), location)
    return list(locations.values())[:_MAX_LOCATIONS]


def selected_places(answer: str, locations: list[Location]) -> list[Location]:
    """Return the locations whose numbers the answer contains, in its order."""
    numbers = [int(n) for n in re.findall(r"\b\d{1,4}\b", answer, re.ASCII)]
    return [locations[n - 1] for n in dict.fromkeys(numbers) if 0 < n <= len(locations)]


def _diagnostic_locations(body: Json, own: str) -> Iterator[Location]:
    for diagnostic in objects(body, "diagnostics"):
        span = mapping(diagnostic, "location")
        start = integer(span, "line_start", -1)
        stop = max(start, integer(span, "line_end", start)) + 1
        message = " ".join(text(diagnostic, "message").split())[:200]
        yield Location(text(span, "path") or own, start, stop, message)
    for event in objects(body, "edit_events"):
        for edit in objects(event, "edits"):
            start = integer(edit, "after_line_start", -1)
            stop = max(start, integer(edit, "after_line_end", start)) + 1
            path = text(event, "path") or own
            yield Location(path, start, stop, "was just edited")
