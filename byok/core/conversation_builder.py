"""Build a conversation in which every tool call has exactly one result, in order.

Clients send results at any place behind their call, twice, or not at all. Upstreams
want them directly behind the message with the calls, before any words of the user, and
strict ones refuse a call without a result. So a result is kept with its call, and a
call without one gets an invented one. What belongs to no call is the caller's to tell.
"""

from collections.abc import Sequence

from msgspec import Struct, field

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
# Python 3.11 takes .1 µs to look up a member of an enum; here it is per message.
_USER, _ASSISTANT = Role.USER, Role.ASSISTANT


class _Step(Struct):
    """What one side says at once, its calls, and their results by id."""

    role: Role
    parts: list[Part]
    calls: list[ToolCall] = field(default_factory=list)
    results: dict[str, ToolResult] | None = None

    def message_of_result(self, call: ToolCall) -> Message:
        """Return the result of a call as a message; it may have to be invented."""
        result = (self.results or {}).get(call.id) or ToolResult(
            call.id, call.name, NO_RESULT, is_missing=True
        )
        return Message(Role.TOOL, (result,))


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
        self._add(_USER, parts)

    def add_answer(self, parts: Sequence[Part]) -> None:
        """Add parts of a model's answer; those before any result are one turn."""
        if step := self._add(_ASSISTANT, parts):
            for part in parts:
                if isinstance(part, ToolCall):
                    step.calls.append(part)
                    self._calls[part.id] = (step, part)

    def add_turn(self, parts: Sequence[Part]) -> None:
        """Add a whole answer, which does not go on with the one before.

        A blank line separates the texts of two without calls. The thinking of the first
        is dropped: it could not be told from that of the second.
        """
        before = self._steps[-1] if self._steps else None
        if before is not None and before.role is _ASSISTANT:
            if before.calls:
                self._has_result = True
            else:
                parts = _join_answers(before, parts)
        self.add_answer(parts)

    def add_result(self, result: ToolResult) -> bool:
        """Add the result of a call, of which the first one counts.

        Return whether it has a place: it has none if its call is not there, or has
        another result.
        """
        step, call = self._calls.get(result.call_id, (None, None))
        if step is None or call is None:
            return False
        self._has_result = True
        step.results = step.results or {}
        if known := step.results.get(call.id):
            return known.content == result.content
        step.results[call.id] = ToolResult(
            result.call_id, call.name, result.content, result.is_error, result.images
        )
        return True

    def name_of(self, call_id: str) -> str:
        """Return the name of the tool of a call, "" if there is no such call."""
        _, call = self._calls.get(call_id, (None, None))
        return call.name if call else ""

    def messages(self) -> list[Message]:
        """Return the messages; the first one is the user's."""
        messages: list[Message] = []
        for step in self._steps:
            if step.role is _ASSISTANT:
                if step.calls or not all(map(_is_thought, step.parts)):
                    messages.append(Message(_ASSISTANT, tuple(step.parts)))
                messages += map(step.message_of_result, step.calls)
            elif messages and messages[-1].role is _USER:
                parts = (*messages[-1].parts, *step.parts)
                messages[-1] = Message(_USER, parts)
            else:
                messages.append(Message(_USER, tuple(step.parts)))
        if messages and messages[0].role is not _USER:
            messages.insert(0, Message(_USER, (TextPart(self._beginning),)))
        return messages

    def _add(self, role: Role, parts: Sequence[Part]) -> _Step | None:
        if not parts:
            return None
        last = self._steps[-1] if self._steps else None
        apart, self._has_result = self._has_result, False
        if last is None or last.role is not role or (apart and role is _ASSISTANT):
            last = _Step(role, [*parts])
            self._steps.append(last)
        else:
            last.parts += parts
        return last


def _join_answers(before: _Step, parts: Sequence[Part]) -> Sequence[Part]:
    """Drop the thinking of an answer without calls; return the parts that go on."""
    before.parts = [p for p in before.parts if not isinstance(p, ThinkingPart)]
    said = list(parts)
    for place, part in enumerate(said):
        if isinstance(part, TextPart) and before.parts:
            said[place] = TextPart(f"\n\n{part.text}")
            break
    return said


def _is_thought(part: Part) -> bool:
    return isinstance(part, ThinkingPart)


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
