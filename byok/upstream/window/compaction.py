"""Plan how a conversation that is too long is made to fit.

Why in two steps: most of a long agent conversation is tool output that the model has
used already. So the middles of old results go first, then all of them but a line that
tells how the call ended; the user's words and the calls stay. Only if that is not
enough, the oldest steps are replaced by a summary. The user's last request, and all
that the user wrote while the agent worked on it, follow word for word, because a
summary loses just the detail that the task depends on.

Why down to a low-water mark (60 % of the room): a change at the beginning of a prompt
invalidates the upstream's prompt cache, and the whole prompt is paid in full again.
Cutting just as much as needed would do so in every turn. With the mark cuts are rare,
and between two cuts the beginning is the same byte for byte (`memory.py`).

Never touched: the last step, the user's last words if not too much followed them
(`newest_from`), and the pairing of calls and results: a cut lies only before an
assistant message. The exception is a newest result that alone exceeds the room: it is
capped, or nothing could be sent at all.

What breaks if this changes: every strict upstream refuses a call without its result. A
plan that depends on anything but the messages and the room (a clock, a count of turns)
gives the next turn another prefix. Weights are bytes, not tokens (`estimate.py`); the
ratio is learned per model (`estimate.py`).
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import (
    ContextPart,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    calls_of,
)
from byok.core.escapes import fair_share, truncate_middle
from byok.core.wire.json_body import write_json
from byok.core.wire.json_fields import parse_object
from byok.upstream.window.estimate import IMAGE_WEIGHT, Weigh, weigh_images
from byok.upstream.window.transcript import summary_message, without_summary

NO_IMAGE = TextPart("[a picture stood here; it was left out to save room]")
_ENDS = (1500, 500)  # characters of an old result that are kept first
_WORTH_SHOWING = 1000  # bytes of code

_LINES = "\n[… {} lines were left out here to save room …]\n"
_LINES_LEFT_OUT = re.compile(r"\[… (\d{1,9}) lines were left out here to save room …\]")
_OUTLINE = re.compile(r"\[.*; the rest was left out to save room\]")
_SHORT = 200  # characters: such a result says as much as a line about it
_LONGEST_ARGUMENT, _LONGEST_ERROR = 100, 200  # characters
_ARGUMENTS = (
    *("path", "file_path", "filePath", "target_file", "filename"),
    *("command", "cmd", "query", "information_request", "pattern", "url"),
)
_COMMANDS = ("command", "cmd")
_EXIT_CODE = re.compile(
    r"(?:return-code>|exit(?:ed with)?[ -](?:code|status):?)\s*(-?\d{1,9})", re.I
)
_REFERENCE = re.compile(r"reference[-_ ]?id:?\s*\S{1,100}", re.I)
_AT_AN_END = 300  # characters: there stand exit codes, and the id of the whole result

# Shortens a message with the help of the calls before it.
Shorten: TypeAlias = Callable[[Message, Mapping[str, ToolCall]], Message]


def keep_ends_of_results(message: Message, _: Mapping[str, ToolCall]) -> Message:
    """Leave out the middles of a message's tool results, and its images.

    A message with nothing to shorten is returned as the same object.
    """
    return _replace_parts(message, _keep_ends)


def outline_results(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    """Replace tool results by one line each: tool, main argument and outcome.

    `calls` has the calls by their ids. Short results stay, and so does what already is
    such a line: a second compaction leaves it byte for byte.
    """
    return _replace_parts(message, lambda r: _outline(r, calls.get(r.call_id)))


LEVELS: tuple[Shorten, ...] = (keep_ends_of_results, outline_results)
"""In the order in which room is sought."""


def _replace_parts(
    message: Message, shorter: Callable[[ToolResult], ToolResult]
) -> Message:
    if message.role not in (Role.TOOL, Role.USER):
        return message
    parts = tuple(_shorter(part, shorter) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _shorter(part: Part, shorter: Callable[[ToolResult], ToolResult]) -> Part:
    if isinstance(part, ImagePart):
        return NO_IMAGE
    return shorter(without_images(part)) if isinstance(part, ToolResult) else part


def _keep_ends(result: ToolResult) -> ToolResult:
    text, (head, tail) = result.content, _ENDS
    if len(text) <= head + tail + _SHORT:
        return result
    note = _LINES.format(text.count("\n", head, len(text) - tail))
    return replace(result, content=text[:head] + note + text[-tail:])


def _outline(result: ToolResult, call: ToolCall | None) -> ToolResult:
    text = result.content
    if len(text) <= _SHORT or _OUTLINE.fullmatch(text):
        return result
    key, argument = _main_argument(call)
    shown = f"{result.name} {argument}".strip()
    outcome = _outcome(result, is_command=key in _COMMANDS)
    if found := _REFERENCE.findall(text[-_AT_AN_END:]):
        outcome += f"; {' '.join(found[-1].split())}"
    line = f"[{shown}: {outcome}; the rest was left out to save room]"
    return replace(result, content=line)


def _main_argument(call: ToolCall | None) -> tuple[str, str]:
    """Return the name and the value, as one line, of what a call is about."""
    given = parse_object(call.arguments) if call else None
    texts = {
        key: " ".join(value.split())
        for key, value in (given or {}).items()
        if isinstance(value, str)
    }
    key = next((key for key in (*_ARGUMENTS, *texts) if texts.get(key)), "")
    return key, _cut_line(texts.get(key, ""), _LONGEST_ARGUMENT)


def _outcome(result: ToolResult, *, is_command: bool) -> str:
    """Return how a call ended: its error, or its exit code and number of lines."""
    text = result.content
    if result.is_error:
        first = next((line for line in text.splitlines() if line.strip()), "")
        return f"error: {_cut_line(' '.join(first.split()), _LONGEST_ERROR)}"
    lines = text.count("\n") + (not text.endswith("\n"))
    for number in _LINES_LEFT_OUT.findall(text):
        lines += int(number) - 2  # the note stands on a line of its own
    ends = f"{text[:_AT_AN_END]}\n{text[-_AT_AN_END:]}"
    code = _EXIT_CODE.search(ends) if is_command else None
    ended = f"exit code {code[1]}" if code and int(code[1]) else "ok"
    return f"{ended}, {lines} line{'s' if lines > 1 else ''}"


def _cut_line(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[:longest]}…"


def without_images(result: ToolResult) -> ToolResult:
    """Return a result with a line of text instead of its images."""
    if not result.images:
        return result
    content = f"{result.content}\n{NO_IMAGE.text}"
    return replace(result, content=content, images=())


def shorter_system(messages: Sequence[Message], room: int) -> tuple[Message, ...]:
    """Cut the middles of system messages that have more than `room` bytes together.

    The size that is left is a power of two, so that it stays the same while what is
    known of a window changes a little: a prompt cache would miss.
    """
    most = 1 << max(0, room.bit_length() - 1)
    sizes = [len(p.text.encode("utf-8", "replace")) for p in _texts(messages)]
    cap = fair_share(sizes, most)
    return tuple(
        replace(m, parts=tuple(_cut_text(part, cap) for part in m.parts))
        for m in messages
    )


def _texts(messages: Sequence[Message]) -> list[TextPart]:
    return [p for m in messages for p in m.parts if isinstance(p, TextPart)]


def _cut_text(part: Part, most: int) -> Part:
    if not isinstance(part, TextPart):
        return part
    size = len(part.text.encode("utf-8", "replace"))
    if size <= most:
        return part
    return replace(part, text=truncate_middle(part.text, most * len(part.text) // size))


def less_context(messages: Sequence[Message], excess: int) -> tuple[Message, ...]:
    """Remove about `excess` bytes of retrieved code from the last message.

    The end goes first, because the best matches stand first. A small rest goes as well.
    """
    if not messages:
        return ()
    *before, last = messages
    parts: list[Part] = []
    for part in last.parts:
        if isinstance(part, ContextPart):
            raw = part.text.encode("utf-8", "replace")
            kept = raw[: max(0, len(raw) - excess)].rpartition(b"\n")[0]
            excess -= len(raw) - len(kept)
            if len(kept) >= _WORTH_SHOWING:
                parts.append(ContextPart(kept.decode("utf-8", "replace")))
        else:
            parts.append(part)
    return (*before, replace(last, parts=tuple(parts)))


# Where a conversation may be cut, and what must survive a cut.
#
# A cut lies before an assistant message. So results stay with their calls, and the
# message that is put in front can be a user message, which every upstream accepts.


_NEWEST = 0.25  # share of the room for the newest messages
_LEAST_TEXT = 200  # characters of each text of the user that is kept
_LAST_WORDS = 0.5  # a larger share if that includes the user's last words


def cut_points(body: Sequence[Message]) -> list[int]:
    """Return the indexes before which everything may be left out."""
    return [n for n, m in enumerate(body) if n and m.role is Role.ASSISTANT]


def newest_from(
    body: Sequence[Message], points: Sequence[int], weights: Sequence[int], room: int
) -> int:
    """Return the cut point after which nothing is changed.

    The last step always lies after it, and the user's last words too unless too much
    followed them.
    """
    behind = list(accumulate(reversed(weights), initial=0))[::-1]
    start = next((p for p in points if behind[p] <= room * _NEWEST), points[-1])
    question = question_before(body, len(body))
    last = max((p for p in points if p < question), default=points[-1])
    return min(start, last) if behind[last] <= room * _LAST_WORDS else start


def question_before(body: Sequence[Message], stop: int) -> int:
    """Return the index of the last question before `stop`, or -1."""
    return next((n for n in reversed(range(stop)) if is_question(body, n)), -1)


def is_question(body: Sequence[Message], place: int) -> bool:
    """Tell whether a user message is a question, not just text beside tool results."""
    if body[place].role is not Role.USER:
        return False
    return place == 0 or body[place - 1].role is not Role.TOOL


def task_of(
    dropped: Sequence[Message], user_texts: Collection[str], longest: int
) -> tuple[Part, ...]:
    """Return the user's last request among the dropped messages, word for word.

    What the user wrote while the agent worked on it follows: words beside tool results,
    which `user_texts` tells from the context that an editor sends there. Only very long
    texts are cut, in the middle; images are kept if there is room, and of very many
    parts the newest.
    """
    start = max(question_before(dropped, len(dropped)), 0)
    parts = list(without_summary(dropped[start])) if dropped else []
    whole = {text.strip() for text in user_texts}
    lines = {line.strip() for text in user_texts for line in text.split("\n")}
    for before, message in pairwise(dropped[start:]):
        if message.role is Role.USER and before.role is Role.TOOL:
            parts += (
                p
                for p in message.parts
                if isinstance(p, TextPart) and (said := p.text.strip())
                if said in whole
                or (
                    said.partition("\n")[0].strip() in lines  # cheap, so first
                    and any(said in text for text in user_texts)
                )
            )
    most = max(longest // _LEAST_TEXT, 2)
    parts = parts[:1] + parts[1:][-(most - 1) :]
    texts = [len(p.text) for p in parts if isinstance(p, TextPart)]
    cap = max(fair_share(texts, longest), _LEAST_TEXT)
    images = sum(isinstance(p, ImagePart) for p in parts)
    return tuple(
        TextPart(truncate_middle(p.text, cap))
        if isinstance(p, TextPart)
        else (p if images * IMAGE_WEIGHT <= longest else NO_IMAGE)
        for p in parts
    )


LOW_WATER = 0.6  # of the room
_SHARE = 8  # the summary may take 1/8 of the room, the task as much
_LONGEST_SUMMARY = 8_000
_SHORTEST_RESULT = 200


class CompactionPlan(Struct, frozen=True):
    """The planned outcome for a conversation without its system message.

    Attributes:
        messages: all messages, with the shortened ones in their place.
        cut: the messages before this index are replaced by a summary and `task`.
        length: the index behind the last changed message.
        task: the user's last request among the messages that are left out.
        longest: how long the summary may be, in characters.
        weight: the weight of the outcome, in bytes.
    """

    messages: tuple[Message, ...]
    cut: int
    length: int
    task: tuple[Part, ...]
    longest: int
    weight: int

    def front(self, summary: str, length: int) -> tuple[Message, ...]:
        """Return the messages that replace the first `length` ones from now on."""
        kept = self.messages[self.cut : length]
        return (summary_message(summary, self.task), *kept) if self.cut else kept


def plan(
    body: Sequence[Message], room: int, weigh: Weigh, user_texts: Collection[str] = ()
) -> CompactionPlan | None:
    """Plan how to reduce a conversation to its low-water mark; `room` is in bytes.

    `user_texts` is what the user wrote in each turn.

    Returns None if nothing can be done: nobody has answered yet, or nothing is old.
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
        front = _leave_out(draft, old, room, user_texts)
    if draft.weight(front.cut) + front.weight > room:
        between = draft.weight(front.cut, newest)
        draft.cap_results(newest, low - front.weight - between)
    if not front.cut and not draft.changed:
        return None
    last = max(draft.changed, front.cut)
    return CompactionPlan(
        tuple(draft.messages),
        front.cut,
        next((point for point in points if point >= last), len(body)),
        front.task,
        _longest_summary(room),
        draft.weight(front.cut) + front.weight,
    )


class _Front(Struct, frozen=True):
    """What replaces the messages before `cut`; `weight` allows for the summary."""

    cut: int
    task: tuple[Part, ...]
    weight: int


_NO_FRONT = _Front(0, (), 0)


def _leave_out(
    draft: "_Draft",
    points: Sequence[int],
    room: int,
    user_texts: Collection[str],
) -> _Front:
    """Find the first cut point after which the rest fits, and the new beginning."""
    front, low = _NO_FRONT, int(room * LOW_WATER)
    added = _longest_summary(room)
    for _ in range(2):  # the weight of the task depends on the cut
        later = [point for point in points if point >= front.cut]
        cut = draft.cut(later, low - added)
        task = task_of(draft.messages[:cut], user_texts, room // _SHARE)
        weight = draft.weigh(summary_message("", task))
        added = _longest_summary(room) + weight
        front = _Front(cut, task, added)
    return front if draft.weight(0, front.cut) > front.weight else _NO_FRONT


def _longest_summary(room: int) -> int:
    return min(room // _SHARE, _LONGEST_SUMMARY)


class _Draft:
    """A conversation that is being reduced, with the weight of each message."""

    def __init__(self, body: Sequence[Message], weigh: Weigh) -> None:
        self.weigh = weigh
        self.messages = list(body)
        self.weights = [weigh(message) for message in body]
        self.total = sum(self.weights)
        self.changed = 0  # index behind the last changed message

    def shorten(self, stop: int, low: int) -> None:
        """Shorten old messages, the oldest first, until the total is at most `low`.

        The last question is kept: everything after it refers to it.
        """
        question = question_before(self.messages, stop)
        for shorten in LEVELS:
            calls: dict[str, ToolCall] = {}
            for place, message in enumerate(self.messages[:stop]):
                if self.total <= low:
                    return
                calls |= {call.id: call for call in calls_of(message)}
                if place != question:
                    self.put(place, shorten(message, calls))

    def put(self, place: int, message: Message) -> None:
        """Replace a message if the new one is lighter: a mark may outweigh a cut."""
        if message is self.messages[place]:
            return
        weight = self.weigh(message)
        if weight >= self.weights[place]:
            return
        self.total += weight - self.weights[place]
        self.messages[place], self.weights[place] = message, weight
        self.changed = max(self.changed, place + 1)

    def weight(self, start: int, stop: int | None = None) -> int:
        return sum(self.weights[start:stop])

    def cut(self, points: Sequence[int], room: int) -> int:
        """Return the first point after which everything fits, else the last point."""
        behind = self.weight(points[0])
        for point, following in zip(points, [*points[1:], points[-1]], strict=True):
            if behind <= room:
                return point
            behind -= self.weight(point, following)
        return points[-1]

    def cap_results(self, start: int, room: int) -> None:
        """Cap the newest results; without that the conversation could not fit."""
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

        Its images are kept if they take at most half of that.
        """
        message, weight = self.messages[place], self.weights[place]
        images = weigh_images(message)
        if images > cap // 2:
            message = replace(message, parts=tuple(map(_without, message.parts)))
            weight, images = self.weigh(message), 0
        share = max(cap - images, 0) / max(weight - images, 1)
        cut = (_cut(part, share) for part in message.parts)
        return replace(message, parts=tuple(cut)) if share < 1 else message


def _without(part: Part) -> Part:
    return without_images(part) if isinstance(part, ToolResult) else part


def _cut(part: Part, share: float) -> Part:
    """Keep a share (0 to 1) of a result's text."""
    if not isinstance(part, ToolResult):
        return part
    content = truncate_middle(part.content, int(len(part.content) * share))
    return replace(part, content=content)


# Remember compactions, so that the next turn sends the same prefix.
#
# A compaction is found by the digest of the messages that it replaced. After an edit of
# an old message, or in another conversation, the digest differs and none is found.


_ROOM = 16 * 2**20  # bytes of everything that is kept
_ENTRY = 200  # bytes of a part without its text


class Compaction(Struct, frozen=True):
    """The replacement of the first `length` messages (without the system message)."""

    length: int
    messages: tuple[Message, ...]

    def apply(self, body: Sequence[Message]) -> tuple[Message, ...]:
        """Return a conversation with its beginning replaced."""
        return (*self.messages, *body[self.length :])

    def further(self, made: CompactionPlan, summary: str) -> "Compaction":
        """Return the compaction that results from a further plan on top of this one."""
        length = max(made.length, len(self.messages))
        return Compaction(
            length - len(self.messages) + self.length, made.front(summary, length)
        )


class Compactions:
    """The most recently used compactions, up to a number of bytes.

    The caller makes the digests (`digests`), because those of a long conversation take
    time.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._kept = BoundedMap[tuple[str, bytes], Compaction](
            room, lambda _, made: _size(made.messages)
        )

    def knows(self, model: str) -> bool:
        """Tell whether there is any compaction for a model."""
        return any(name == model for name, _ in self._kept)

    def lengths(self, model: str) -> set[int]:
        """Return the lengths of the beginnings that have a compaction."""
        return {c.length for (name, _), c in self._kept.items() if name == model}

    def find(self, model: str, digests: Sequence[bytes]) -> Compaction | None:
        """Return the compaction of the longest of these beginnings that has one."""
        keys = ((model, digest) for digest in reversed(digests))
        found = next((key for key in keys if key in self._kept), None)
        return None if found is None else self._kept.get(found)

    def keep(self, model: str, digest: bytes, compaction: Compaction) -> None:
        """Store the compaction of the beginning with this digest."""
        self._kept[model, digest] = compaction


def _size(messages: Iterable[Message]) -> int:
    """Return about how many bytes messages take; an image may take millions."""
    parts = [part for message in messages for part in message.parts]
    return _ENTRY + sum(_ENTRY + sum(map(len, _texts_of(part))) for part in parts)


def digests(body: Sequence[Message], lengths: Iterable[int]) -> list[bytes]:
    """Return the digests of the beginnings with these lengths, the shortest first."""
    state, done, found = hashlib.blake2b(digest_size=16), 0, list[bytes]()
    for length in sorted(lengths):
        if length > len(body):
            break
        for message in body[done:length]:
            state.update(b"%d %s" % (len(message.parts), message.role.encode()))
            for part in message.parts:
                for text in _texts_of(part):
                    raw = text.encode("utf-8", "surrogatepass")
                    state.update(b"|%d|" % len(raw))
                    state.update(raw)
        done = length
        found.append(state.copy().digest())
    return found


def _texts_of(part: Part) -> tuple[str, ...]:
    """Return the kind of a part and all its text, for digests."""
    match part:
        case TextPart(text=text):
            return ("text", text)
        case ThinkingPart(text=text):
            kept = part.provider_data
            data = (write_json(kept.data).decode(),) if kept else ()
            return ("thinking", text, *data)
        case ImagePart(media_type=media_type, data=data):
            return ("image", media_type, data)
        case ToolCall(id=id_, name=name, arguments=arguments):
            return ("call", id_, name, arguments)
        case ToolResult(call_id=call_id, name=name, content=content):
            kind = "error" if part.is_error else "result"
            images = (text for image in part.images for text in _texts_of(image))
            return (kind, call_id, name, content, *images)
