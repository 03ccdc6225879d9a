"""Plan how a conversation that is too long is shortened, and remember the outcome.

Why in two steps: most of a long agent conversation is tool output that the model has
used already. So the middles of old results are removed first, then all of each result
but a line that says how the call ended; the user's texts and the calls stay. Only if
that is not enough, the oldest steps are replaced by a summary. The user's last request,
and all that the user wrote while the agent worked on it, follow word for word, because
a summary loses just the detail that the task depends on.

Why down to a low-water mark (60 % of the budget): a change at the beginning of a prompt
invalidates the upstream's prompt cache, and the whole prompt is paid in full again.
Cutting just as much as needed would do so in every turn. With the mark cuts are rare,
and between two cuts the beginning is the same byte for byte (`Compactions`).

Never changed: the last step, the user's last message if not too much followed it
(`newest_from`), and the pairing of calls and results: a cut lies only before an
assistant message. The exception is a newest result that alone exceeds the budget: it is
cut, or nothing could be sent at all.

What breaks if this changes: every strict upstream refuses a call without its result. A
plan that depends on anything but the messages and the budget (a clock, a count of
turns) gives the next turn another prefix. Weights are bytes, not tokens; the ratio is
learned per model (`estimate.py`).
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
_END_CHARS = (1500, 500)  # stay of an old result in the first step
_MIN_CONTEXT_BYTES = 1000  # less retrieved code is of no use

_LINES_NOTE = "\n[… {} lines were left out here to save room …]\n"
_LINES_NOTE_PATTERN = re.compile(
    r"\[… (\d{1,9}) lines were left out here to save room …\]"
)
_OUTLINE_PATTERN = re.compile(r"\[.*; the rest was left out to save room\]")
_SHORT_RESULT_CHARS = 200  # such a result says as much as a line about it
_MAX_ARGUMENT_CHARS, _MAX_ERROR_CHARS = 100, 200
_MAIN_ARGUMENTS = (
    *("path", "file_path", "filePath", "target_file", "filename"),
    *("command", "cmd", "query", "information_request", "pattern", "url"),
)
_COMMAND_ARGUMENTS = ("command", "cmd")
_EXIT_CODE = re.compile(
    r"(?:return-code>|exit(?:ed with)?[ -](?:code|status):?)\s*(-?\d{1,9})", re.I
)
_REFERENCE = re.compile(r"reference[-_ ]?id:?\s*\S{1,100}", re.I)
_SEARCHED_END_CHARS = 300  # contain exit codes, and the id of the whole result

LOW_WATER = 0.6  # of the budget
_NEWEST_SHARE = 0.25  # of the budget, for the newest messages
_QUESTION_SHARE = 0.5  # instead, if that includes the user's last message
_SUMMARY_DIVISOR = 8  # the summary may take 1/8 of the budget, the task as much
_MAX_SUMMARY_CHARS = 8_000
_MIN_TEXT_CHARS = 200  # of each text of the user that stays
_MIN_RESULT_BYTES = 200
_CACHE_BYTES = 16 * 2**20
_PART_BYTES = 200  # of a cached part, without its text

# Shortens a message with the help of the calls before it.
Shorten: TypeAlias = Callable[[Message, Mapping[str, ToolCall]], Message]


def keep_ends_of_results(message: Message, _: Mapping[str, ToolCall]) -> Message:
    """Remove the middles of a message's tool results, and its images.

    A message with nothing to shorten is returned as the same object.
    """
    return _replace_parts(message, _keep_ends)


def outline_results(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    """Replace tool results by one line each: tool, main argument and outcome.

    `calls` has the calls by their ids. Short results stay, and so do results that are
    such a line: a second compaction must not change a byte of them.
    """
    return _replace_parts(message, lambda r: _outline(r, calls.get(r.call_id)))


# In the order in which they are applied.
LEVELS: tuple[Shorten, ...] = (keep_ends_of_results, outline_results)


def _replace_parts(
    message: Message, shorten: Callable[[ToolResult], ToolResult]
) -> Message:
    if message.role not in (Role.TOOL, Role.USER):
        return message
    parts = tuple(_shorten_part(part, shorten) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _shorten_part(part: Part, shorten: Callable[[ToolResult], ToolResult]) -> Part:
    if isinstance(part, ImagePart):
        return NO_IMAGE
    return shorten(without_images(part)) if isinstance(part, ToolResult) else part


def _keep_ends(result: ToolResult) -> ToolResult:
    text, (head, tail) = result.content, _END_CHARS
    if len(text) <= head + tail + _SHORT_RESULT_CHARS:
        return result
    note = _LINES_NOTE.format(text.count("\n", head, len(text) - tail))
    return replace(result, content=text[:head] + note + text[-tail:])


def _outline(result: ToolResult, call: ToolCall | None) -> ToolResult:
    text = result.content
    if len(text) <= _SHORT_RESULT_CHARS or _OUTLINE_PATTERN.fullmatch(text):
        return result
    key, argument = _main_argument(call)
    label = f"{result.name} {argument}".strip()
    outcome = _outcome(result, is_command=key in _COMMAND_ARGUMENTS)
    if references := _REFERENCE.findall(text[-_SEARCHED_END_CHARS:]):
        outcome += f"; {' '.join(references[-1].split())}"
    line = f"[{label}: {outcome}; the rest was left out to save room]"
    return replace(result, content=line)


def _main_argument(call: ToolCall | None) -> tuple[str, str]:
    """Return the name and the value, as one line, of a call's most telling argument."""
    arguments = parse_object(call.arguments) if call else None
    texts = {
        key: " ".join(value.split())
        for key, value in (arguments or {}).items()
        if isinstance(value, str)
    }
    key = next((key for key in (*_MAIN_ARGUMENTS, *texts) if texts.get(key)), "")
    return key, _cut_line(texts.get(key, ""), _MAX_ARGUMENT_CHARS)


def _outcome(result: ToolResult, *, is_command: bool) -> str:
    """Return how a call ended: its error, or its exit code and number of lines."""
    text = result.content
    if result.is_error:
        first = next((line for line in text.splitlines() if line.strip()), "")
        return f"error: {_cut_line(' '.join(first.split()), _MAX_ERROR_CHARS)}"
    lines = text.count("\n") + (not text.endswith("\n"))
    for number in _LINES_NOTE_PATTERN.findall(text):
        lines += int(number) - 2  # the note is on a line of its own
    ends = f"{text[:_SEARCHED_END_CHARS]}\n{text[-_SEARCHED_END_CHARS:]}"
    code = _EXIT_CODE.search(ends) if is_command else None
    status = f"exit code {code[1]}" if code and int(code[1]) else "ok"
    return f"{status}, {lines} line{'s' if lines > 1 else ''}"


def _cut_line(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[:longest]}…"


def without_images(result: ToolResult) -> ToolResult:
    """Return a result with a line of text instead of its images."""
    if not result.images:
        return result
    content = f"{result.content}\n{NO_IMAGE.text}"
    return replace(result, content=content, images=())


def shorter_system(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """Cut the middles of system messages that have more than `budget` bytes together.

    The new size is a power of two, so that it stays the same while the estimate of the
    window changes a little: otherwise the prompt cache would miss.
    """
    max_size = 1 << max(0, budget.bit_length() - 1)
    sizes = [
        len(part.text.encode("utf-8", "replace"))
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart)
    ]
    cap = fair_share(sizes, max_size)
    return tuple(
        replace(m, parts=tuple(_cut_text(part, cap) for part in m.parts))
        for m in messages
    )


def _cut_text(part: Part, cap: int) -> Part:
    if not isinstance(part, TextPart):
        return part
    size = len(part.text.encode("utf-8", "replace"))
    if size <= cap:
        return part
    return replace(part, text=truncate_middle(part.text, cap * len(part.text) // size))


def less_context(messages: Sequence[Message], excess: int) -> tuple[Message, ...]:
    """Remove about `excess` bytes of retrieved code from the last message.

    Code is removed from the end, because the best matches come first. If only little
    would remain, all of it is removed.
    """
    if not messages:
        return ()
    *earlier, last = messages
    parts: list[Part] = []
    for part in last.parts:
        if isinstance(part, ContextPart):
            raw = part.text.encode("utf-8", "replace")
            shortened = raw[: max(0, len(raw) - excess)].rpartition(b"\n")[0]
            excess -= len(raw) - len(shortened)
            if len(shortened) >= _MIN_CONTEXT_BYTES:
                parts.append(ContextPart(shortened.decode("utf-8", "replace")))
        else:
            parts.append(part)
    return (*earlier, replace(last, parts=tuple(parts)))


def cut_points(body: Sequence[Message]) -> list[int]:
    """Return the indexes before which everything may be left out.

    A cut lies before an assistant message. So results stay with their calls, and the
    message that is put in front can be a user message, which every upstream accepts.
    """
    return [n for n, m in enumerate(body) if n and m.role is Role.ASSISTANT]


def newest_from(
    body: Sequence[Message], points: Sequence[int], weights: Sequence[int], budget: int
) -> int:
    """Return the cut point after which nothing is changed.

    The last step always lies after it, and so does the user's last message unless too
    much followed it.
    """
    weight_from = list(accumulate(reversed(weights), initial=0))[::-1]
    max_newest = budget * _NEWEST_SHARE
    start = next((p for p in points if weight_from[p] <= max_newest), points[-1])
    question = question_before(body, len(body))
    last = max((p for p in points if p < question), default=points[-1])
    return min(start, last) if weight_from[last] <= budget * _QUESTION_SHARE else start


def question_before(body: Sequence[Message], stop: int) -> int:
    """Return the index of the last question before `stop`, or -1."""
    return next((n for n in reversed(range(stop)) if is_question(body, n)), -1)


def is_question(body: Sequence[Message], index: int) -> bool:
    """Tell whether a user message is a question, not just text beside tool results."""
    if body[index].role is not Role.USER:
        return False
    return index == 0 or body[index - 1].role is not Role.TOOL


def task_of(
    dropped: Sequence[Message], user_texts: Collection[str], longest: int
) -> tuple[Part, ...]:
    """Return the user's last request among the dropped messages, word for word.

    The texts follow that the user wrote while the agent worked on it: they stand beside
    tool results, and only `user_texts` distinguishes them from the context that an
    editor sends there. Only very long texts are cut, in the middle. Images stay if
    there is space, and of very many parts only the newest ones.
    """
    start = max(question_before(dropped, len(dropped)), 0)
    parts = list(without_summary(dropped[start])) if dropped else []
    whole_texts = {text.strip() for text in user_texts}
    lines = {line.strip() for text in user_texts for line in text.split("\n")}
    for previous, message in pairwise(dropped[start:]):
        if message.role is Role.USER and previous.role is Role.TOOL:
            parts += (
                p
                for p in message.parts
                if isinstance(p, TextPart) and (part_text := p.text.strip())
                if part_text in whole_texts
                or (
                    part_text.partition("\n")[0].strip() in lines  # cheap, so first
                    and any(part_text in text for text in user_texts)
                )
            )
    max_parts = max(longest // _MIN_TEXT_CHARS, 2)
    parts = parts[:1] + parts[1:][-(max_parts - 1) :]
    lengths = [len(p.text) for p in parts if isinstance(p, TextPart)]
    cap = max(fair_share(lengths, longest), _MIN_TEXT_CHARS)
    images = sum(isinstance(p, ImagePart) for p in parts)
    return tuple(
        TextPart(truncate_middle(p.text, cap))
        if isinstance(p, TextPart)
        else (p if images * IMAGE_WEIGHT <= longest else NO_IMAGE)
        for p in parts
    )


class CompactionPlan(Struct, frozen=True):
    """The planned outcome for a conversation without its system message.

    Attributes:
        messages: all messages, some of them shortened.
        cut: the messages before this index are replaced by a summary and `task`.
        length: the index after the last changed message.
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

    def replacement(self, summary: str, length: int) -> tuple[Message, ...]:
        """Return the messages that replace the first `length` ones from now on."""
        remaining = self.messages[self.cut : length]
        if not self.cut:
            return remaining
        return (summary_message(summary, self.task), *remaining)


def plan(
    body: Sequence[Message], budget: int, weigh: Weigh, user_texts: Collection[str] = ()
) -> CompactionPlan | None:
    """Plan how to reduce a conversation to its low-water mark; `budget` is in bytes.

    `user_texts` are the texts that the user wrote, by turn.

    Returns None if nothing can be removed: there is no answer yet, or nothing is old.
    """
    if not (points := cut_points(body)):
        return None
    draft = _Draft(body, weigh)
    low_water = int(budget * LOW_WATER)
    newest = newest_from(body, points, draft.weights, budget)
    draft.shorten(newest, low_water)
    replacement = _NO_REPLACEMENT
    if draft.total > low_water:
        old = [point for point in points if point <= newest]
        replacement = _find_replacement(draft, old, budget, user_texts)
    if draft.weight(replacement.cut) + replacement.weight > budget:
        between = draft.weight(replacement.cut, newest)
        draft.cap_results(newest, low_water - replacement.weight - between)
    if not replacement.cut and not draft.changed:
        return None
    last = max(draft.changed, replacement.cut)
    return CompactionPlan(
        tuple(draft.messages),
        replacement.cut,
        next((point for point in points if point >= last), len(body)),
        replacement.task,
        _max_summary_chars(budget),
        draft.weight(replacement.cut) + replacement.weight,
    )


class _Replacement(Struct, frozen=True):
    """A summary and the `task` in place of the messages before `cut`.

    `weight` is that of both, with the longest summary that is allowed.
    """

    cut: int
    task: tuple[Part, ...]
    weight: int


_NO_REPLACEMENT = _Replacement(0, (), 0)


def _find_replacement(
    draft: "_Draft",
    points: Sequence[int],
    budget: int,
    user_texts: Collection[str],
) -> _Replacement:
    """Return the replacement at the first cut point after which everything fits."""
    replacement, low_water = _NO_REPLACEMENT, int(budget * LOW_WATER)
    added = _max_summary_chars(budget)
    for _ in range(2):  # the weight of the task depends on the cut
        later = [point for point in points if point >= replacement.cut]
        cut = draft.find_cut(later, low_water - added)
        task = task_of(draft.messages[:cut], user_texts, budget // _SUMMARY_DIVISOR)
        weight = draft.weigh(summary_message("", task))
        added = _max_summary_chars(budget) + weight
        replacement = _Replacement(cut, task, added)
    if draft.weight(0, replacement.cut) <= replacement.weight:
        return _NO_REPLACEMENT
    return replacement


def _max_summary_chars(budget: int) -> int:
    return min(budget // _SUMMARY_DIVISOR, _MAX_SUMMARY_CHARS)


class _Draft:
    """A conversation that is being reduced, with the weight of each message."""

    def __init__(self, body: Sequence[Message], weigh: Weigh) -> None:
        self.weigh = weigh
        self.messages = list(body)
        self.weights = [weigh(message) for message in body]
        self.total = sum(self.weights)
        self.changed = 0  # the index after the last changed message

    def shorten(self, stop: int, low: int) -> None:
        """Shorten messages before `stop`, the oldest first, to a total of `low`.

        The last question stays: everything after it refers to it.
        """
        question = question_before(self.messages, stop)
        for shorten in LEVELS:
            calls: dict[str, ToolCall] = {}
            for index, message in enumerate(self.messages[:stop]):
                if self.total <= low:
                    return
                calls |= {call.id: call for call in calls_of(message)}
                if index != question:
                    self.put(index, shorten(message, calls))

    def put(self, index: int, message: Message) -> None:
        """Replace a message if the new one is lighter.

        The note in the place of removed text may be longer than that text.
        """
        if message is self.messages[index]:
            return
        weight = self.weigh(message)
        if weight >= self.weights[index]:
            return
        self.total += weight - self.weights[index]
        self.messages[index], self.weights[index] = message, weight
        self.changed = max(self.changed, index + 1)

    def weight(self, start: int, stop: int | None = None) -> int:
        return sum(self.weights[start:stop])

    def find_cut(self, points: Sequence[int], budget: int) -> int:
        """Return the first point after which everything fits, else the last point."""
        remaining = self.weight(points[0])
        for point, next_point in zip(points, [*points[1:], points[-1]], strict=True):
            if remaining <= budget:
                return point
            remaining -= self.weight(point, next_point)
        return points[-1]

    def cap_results(self, start: int, budget: int) -> None:
        """Cut the newest results, without which the conversation could not fit."""
        indexes = [
            n
            for n in range(start, len(self.messages))
            if self.messages[n].role is Role.TOOL
        ]
        weights = [self.weights[n] for n in indexes]
        other_weight = self.weight(start) - sum(weights)
        cap = max(fair_share(weights, budget - other_weight), _MIN_RESULT_BYTES)
        for index in indexes:
            if self.weights[index] > cap:
                self.put(index, self._cut_result(index, cap))

    def _cut_result(self, index: int, cap: int) -> Message:
        """Cut the result at an index to about `cap` bytes.

        Its images stay if they take at most half of that.
        """
        message, weight = self.messages[index], self.weights[index]
        image_weight = weigh_images(message)
        if image_weight > cap // 2:
            parts = (
                without_images(part) if isinstance(part, ToolResult) else part
                for part in message.parts
            )
            message = replace(message, parts=tuple(parts))
            weight, image_weight = self.weigh(message), 0
        share = max(cap - image_weight, 0) / max(weight - image_weight, 1)
        if share >= 1:
            return message
        cut: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult):
                size = int(len(part.content) * share)
                part = replace(part, content=truncate_middle(part.content, size))
            cut.append(part)
        return replace(message, parts=tuple(cut))


class Compaction(Struct, frozen=True):
    """The replacement of the first `length` messages (without the system message)."""

    length: int
    messages: tuple[Message, ...]

    def apply(self, body: Sequence[Message]) -> tuple[Message, ...]:
        """Return a conversation with its beginning replaced."""
        return (*self.messages, *body[self.length :])

    def extend(self, plan: CompactionPlan, summary: str) -> "Compaction":
        """Return the compaction after a plan for the conversation with this one."""
        length = max(plan.length, len(self.messages))
        return Compaction(
            length - len(self.messages) + self.length, plan.replacement(summary, length)
        )


class Compactions:
    """A cache of compactions, so that the next turn sends the same prefix.

    The key is the model and the digest of the messages that a compaction replaced.
    After an edit of an old message, and in another conversation, the digest differs.
    The caller computes digests (`digests`), because long conversations take time.
    """

    def __init__(self, budget: int = _CACHE_BYTES) -> None:
        self._compactions = BoundedMap[tuple[str, bytes], Compaction](
            budget, lambda _, compaction: _size(compaction.messages)
        )

    def knows(self, model: str) -> bool:
        """Tell whether there is any compaction for a model."""
        return any(name == model for name, _ in self._compactions)

    def lengths(self, model: str) -> set[int]:
        """Return how many messages each compaction of a model replaces."""
        return {c.length for (name, _), c in self._compactions.items() if name == model}

    def find(self, model: str, digests: Sequence[bytes]) -> Compaction | None:
        """Return the compaction of the last of these digests that has one."""
        keys = ((model, digest) for digest in reversed(digests))
        key = next((key for key in keys if key in self._compactions), None)
        return None if key is None else self._compactions.get(key)

    def store(self, model: str, digest: bytes, compaction: Compaction) -> None:
        """Cache the compaction of the prefix with this digest."""
        self._compactions[model, digest] = compaction


def _size(messages: Iterable[Message]) -> int:
    """Estimate how many bytes messages take; an image may take millions."""
    parts = [part for message in messages for part in message.parts]
    sizes = (_PART_BYTES + sum(map(len, _texts_of(part))) for part in parts)
    return _PART_BYTES + sum(sizes)


def digests(body: Sequence[Message], lengths: Iterable[int]) -> list[bytes]:
    """Return the digests of the prefixes with these lengths, the shortest first."""
    state, done, result = hashlib.blake2b(digest_size=16), 0, list[bytes]()
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
        result.append(state.copy().digest())
    return result


def _texts_of(part: Part) -> tuple[str, ...]:
    """Return the kind of a part and all its text, for digests."""
    match part:
        case TextPart(text=text):
            return ("text", text)
        case ThinkingPart(text=text):
            raw = part.provider_data
            data = (write_json(raw.data).decode(),) if raw else ()
            return ("thinking", text, *data)
        case ImagePart(media_type=media_type, data=data):
            return ("image", media_type, data)
        case ToolCall(id=id_, name=name, arguments=arguments):
            return ("call", id_, name, arguments)
        case ToolResult(call_id=call_id, name=name, content=content):
            kind = "error" if part.is_error else "result"
            images = (text for image in part.images for text in _texts_of(image))
            return (kind, call_id, name, content, *images)
