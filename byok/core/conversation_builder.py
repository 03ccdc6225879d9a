"""Build a conversation in which every tool call has exactly one result, in order.

Clients send results at any place behind their call, twice, or not at all. Upstreams
want them directly behind the message with the calls, before any words of the user, and
strict ones refuse a call without a result. So a result is kept with its call, and a
call without one gets an invented one. What belongs to no call is the caller's to tell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from byok.core.chat import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)

NO_RESULT = '{"error":"no result was recorded for this call"}'


@dataclass(slots=True)
class _Step:
    """What one side says at once, with the results of its calls by their id."""

    role: Role
    parts: list[Part]
    results: dict[str, ToolResult] = field(default_factory=dict)


class ConversationBuilder:
    """Builds the messages of a conversation, the oldest first.

    Messages of one role in a row become one, because strict upstreams refuse two.
    """

    def __init__(self, beginning: str) -> None:
        """Begin; `beginning` stands for the user where an answer comes first."""
        self._beginning = beginning
        self._steps: list[_Step] = []
        self._calls: dict[str, tuple[_Step, ToolCall]] = {}
        self._has_result = False  # of the newest answer

    @property
    def is_empty(self) -> bool:
        """Whether nobody has said anything yet."""
        return not self._steps

    def add_user(self, parts: Sequence[Part]) -> None:
        """Add words and images of the user."""
        self._add(Role.USER, parts)

    def add_answer(self, parts: Sequence[Part]) -> None:
        """Add parts of a model's answer; those before any result are one turn."""
        if step := self._add(Role.ASSISTANT, parts):
            calls = (part for part in parts if isinstance(part, ToolCall))
            self._calls.update((call.id, (step, call)) for call in calls)

    def add_turn(self, parts: Sequence[Part]) -> None:
        """Add a whole answer, which does not go on with the one before.

        A blank line separates the texts of two without calls. The thinking of the first
        is dropped: it could not be told from that of the second.
        """
        said = list(parts)
        before = self._steps[-1] if self._steps else _Step(Role.USER, [])
        if any(isinstance(part, ToolCall) for part in before.parts):
            self._has_result = True
        elif before.role is Role.ASSISTANT:
            parts = before.parts
            before.parts = [p for p in parts if not isinstance(p, ThinkingPart)]
            for place, part in enumerate(said):
                if isinstance(part, TextPart) and before.parts:
                    said[place] = TextPart(f"\n\n{part.text}")
                    break
        self.add_answer(said)

    def add_result(self, result: ToolResult) -> bool:
        """Add the result of a call, of which the first one counts.

        Return whether it has a place: it has none if its call is not there, or has
        another result.
        """
        step, call = self._calls.get(result.call_id, (None, None))
        if step is None or call is None:
            return False
        self._has_result = True
        known = step.results.setdefault(call.id, replace(result, name=call.name))
        return known.content == result.content

    def name_of(self, call_id: str) -> str:
        """Return the name of the tool of a call, "" if there is no such call."""
        _, call = self._calls.get(call_id, (None, None))
        return call.name if call else ""

    def messages(self) -> list[Message]:
        """Return the messages; the first one is the user's."""
        messages: list[Message] = []
        for step in self._steps:
            messages += _messages(step)
            if [m.role for m in messages[-2:]] == [Role.USER] * 2:
                last = messages.pop()
                messages[-1] = Message(Role.USER, messages[-1].parts + last.parts)
        if messages and messages[0].role is not Role.USER:
            messages.insert(0, Message(Role.USER, (TextPart(self._beginning),)))
        return messages

    def _add(self, role: Role, parts: Sequence[Part]) -> _Step | None:
        if not parts:
            return None
        last = self._steps[-1] if self._steps else None
        apart, self._has_result = self._has_result, False
        if last is None or last.role is not role or (apart and role is Role.ASSISTANT):
            last = _Step(role, [])
            self._steps.append(last)
        last.parts += parts
        return last


def _messages(step: _Step) -> Iterator[Message]:
    """Yield a step and the results of its calls; nothing for thinking alone."""
    if all(isinstance(part, ThinkingPart) for part in step.parts):
        return
    yield Message(step.role, tuple(step.parts))
    for part in step.parts:
        if isinstance(part, ToolCall):
            missing = ToolResult(part.id, part.name, NO_RESULT, is_missing=True)
            yield Message(Role.TOOL, (step.results.get(part.id, missing),))


def make_result(
    call_id: str, parts: Sequence[TextPart | ImagePart], *, is_error: bool = False
) -> ToolResult:
    """Make a result of its parts; its text refers to the images by number."""
    said: list[str] = []
    images: list[ImagePart] = []
    for part in parts:
        if isinstance(part, TextPart):
            said.append(part.text)
        else:
            images.append(part)
            said.append(f"[image {len(images)} below]")
    return ToolResult(call_id, "", "\n".join(said), is_error, tuple(images))
