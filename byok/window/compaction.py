"""The plan by which a conversation that is too long becomes one that fits.

The oldest results are shortened first, then the oldest steps are left out behind a
summary. It goes down to a low-water mark, so that cuts are rare: each one costs the
upstream's prompt cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from byok.chat import Message, Part, Role, ToolResult
from byok.truncate import fair_share, truncate_middle
from byok.window.cutting import cut_points, newest_from, question_before, task_of
from byok.window.estimate import Weigh, weigh_pictures
from byok.window.shorten import LEVELS, shorten, without_pictures
from byok.window.summary_message import summary_message

LOW_WATER = 0.6  # of the room
_SHARE = 8  # the summary may take an eighth of the room, the task as much
_LONGEST_SUMMARY = 8_000
_SHORTEST_RESULT = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a conversation without its system message.

    Of `messages` those before `cut` are to be replaced by a summary that is at most
    `longest` characters long, followed by `task`; `length` is where what changed
    ends. `weight` is that of the outcome.
    """

    messages: tuple[Message, ...]
    cut: int
    length: int
    task: tuple[Part, ...]
    longest: int
    weight: int

    def front(self, summary: str, length: int) -> tuple[Message, ...]:
        """Return what stands for the first `length` messages from now on."""
        kept = self.messages[self.cut : length]
        return (summary_message(summary, self.task), *kept) if self.cut else kept


def plan(
    body: Sequence[Message], room: int, weigh: Weigh, own_words: str = ""
) -> Plan | None:
    """Plan how a conversation comes down to its low-water mark.

    None where nothing can be done: nobody has answered yet, or nothing is old.
    """
    if not (points := cut_points(body)):
        return None
    draft = _Draft(body, weigh)
    low = int(room * LOW_WATER)
    newest = newest_from(body, points, draft.weights, room)
    draft.shorten(newest, low)
    front = _NO_FRONT
    if draft.total > low:
        old = [point for point in points if point <= newest]
        front = _leave_out(draft, old, room, own_words)
    if draft.weight(front.cut) + front.weight > room:
        between = draft.weight(front.cut, newest)
        draft.cap_results(newest, low - front.weight - between)
    if not front.cut and not draft.changed:
        return None
    last = max(draft.changed, front.cut)
    return Plan(
        tuple(draft.messages),
        front.cut,
        next((point for point in points if point >= last), len(body)),
        front.task,
        _longest_summary(room),
        draft.weight(front.cut) + front.weight,
    )


@dataclass(frozen=True, slots=True)
class _Front:
    """What comes in place of the messages before `cut`; its weight with a summary."""

    cut: int
    task: tuple[Part, ...]
    weight: int


_NO_FRONT = _Front(0, (), 0)


def _leave_out(
    draft: "_Draft",
    points: Sequence[int],
    room: int,
    own_words: str,
) -> _Front:
    """Find the first of these points behind which the rest fits, with its front."""
    front, low = _NO_FRONT, int(room * LOW_WATER)
    added = _longest_summary(room)
    for _ in range(2):  # how heavy the task is depends on where the cut lies
        later = [point for point in points if point >= front.cut]
        cut = draft.cut(later, low - added)
        task = task_of(draft.messages[:cut], own_words, room // _SHARE)
        weight = draft.weigh(summary_message("", task))
        added = _longest_summary(room) + weight
        front = _Front(cut, task, added)
    return front if draft.weight(0, front.cut) > front.weight else _NO_FRONT


def _longest_summary(room: int) -> int:
    return min(room // _SHARE, _LONGEST_SUMMARY)


class _Draft:
    """Messages that are being made lighter."""

    def __init__(self, body: Sequence[Message], weigh: Weigh) -> None:
        self.weigh = weigh
        self.messages = list(body)
        self.weights = [weigh(message) for message in body]
        self.total = sum(self.weights)
        self.changed = 0  # behind the last message that was

    def shorten(self, stop: int, low: int) -> None:
        """Shorten what is old, the oldest first, until the rest is light enough.

        The last question is not old: it is what all that follows is about.
        """
        question = question_before(self.messages, stop)
        for head, tail in LEVELS:
            for place in range(stop):
                if self.total <= low:
                    return
                if place == question:
                    continue
                self.put(place, shorten(self.messages[place], head, tail))

    def put(self, place: int, message: Message) -> None:
        """Put a lighter message into its place."""
        if message is self.messages[place]:
            return
        weight = self.weigh(message)
        self.total += weight - self.weights[place]
        self.messages[place], self.weights[place] = message, weight
        self.changed = max(self.changed, place + 1)

    def weight(self, start: int, stop: int | None = None) -> int:
        return sum(self.weights[start:stop])

    def cut(self, points: Sequence[int], room: int) -> int:
        """Return the first point behind which everything fits, else the last one."""
        behind = self.weight(points[0])
        for point, following in zip(points, [*points[1:], points[-1]], strict=True):
            if behind <= room:
                return point
            behind -= self.weight(point, following)
        return points[-1]

    def cap_results(self, start: int, room: int) -> None:
        """Cut the newest results so that they fit: without that nothing would."""
        places = [
            n
            for n in range(start, len(self.messages))
            if self.messages[n].role is Role.TOOL
        ]
        results = [self.weights[n] for n in places]
        rest = self.weight(start) - sum(results)
        cap = max(fair_share(results, room - rest), _SHORTEST_RESULT)
        for place in places:
            if self.weights[place] > cap:
                self.put(place, self._cut_result(place, cap))

    def _cut_result(self, place: int, cap: int) -> Message:
        """Cut the result at a place to about `cap` bytes.

        Its pictures stay as long as they alone are not too much.
        """
        message, weight = self.messages[place], self.weights[place]
        pictures = weigh_pictures(message)
        if pictures > cap // 2:
            message = replace(message, parts=tuple(map(_without, message.parts)))
            weight, pictures = self.weigh(message), 0
        share = max(cap - pictures, 0) / max(weight - pictures, 1)
        cut = (_cut(part, share) for part in message.parts)
        return replace(message, parts=tuple(cut)) if share < 1 else message


def _without(part: Part) -> Part:
    return without_pictures(part) if isinstance(part, ToolResult) else part


def _cut(part: Part, share: float) -> Part:
    """Keep a share of a result's text."""
    if not isinstance(part, ToolResult):
        return part
    content = truncate_middle(part.content, int(len(part.content) * share))
    return replace(part, content=content)
