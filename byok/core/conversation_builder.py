"""Build a conversation in which every tool call has exactly one result, in order.

Clients send results anywhere behind their call, twice, or not at all. Upstreams want
them directly behind the message with the calls, before any words of the user, and
strict ones refuse a call without a result. So a result is stored with its call, and a
call without a result gets an invented one. Results without a call are left to the
caller.
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
# Python 3.11 takes 0.1 µs to look up a member of an enum, which adds up per message.
_USER, _ASSISTANT = Role.USER, Role.ASSISTANT


class _Step(Struct):
    """Consecutive parts of one side, with their calls, and the results by call id."""

    role: Role
    parts: list[Part]
    calls: list[ToolCall] = field(default_factory=list)
    results: dict[str, ToolResult] | None = None

    def message_of_result(self, call: ToolCall) -> Message:
        """Return the result of a call as a message, invented if it is missing."""
        result = (self.results or {}).get(call.id) or ToolResult(
            call.id, call.name, NO_RESULT, is_missing=True
        )
        return Message(Role.TOOL, (result,))


class ConversationBuilder:
    """Builds the messages of a conversation, from the oldest to the newest.

    Consecutive messages of one role are joined, because strict upstreams refuse them.
    """

    def __init__(self, beginning: str) -> None:
        """Begin; `beginning` is a text of the user, used if an answer comes first."""
        self._beginning = beginning
        self._steps: list[_Step] = []
        self._calls: dict[str, tuple[_Step, ToolCall]] = {}
        self._has_result = False  # of the newest answer

    @property
    def is_empty(self) -> bool:
        """Whether no part was added yet."""
        return not self._steps

    def add_user(self, parts: Sequence[Part]) -> None:
        """Add words and images of the user."""
        self._add(_USER, parts)

    def add_answer(self, parts: Sequence[Part]) -> None:
        """Add parts of a model's answer; until a result is added, they are one turn."""
        if step := self._add(_ASSISTANT, parts):
            for part in parts:
                if isinstance(part, ToolCall):
                    step.calls.append(part)
                    self._calls[part.id] = (step, part)

    def add_turn(self, parts: Sequence[Part]) -> None:
        """Add a whole answer, which does not continue the previous one.

        If the previous answer has no calls, both are joined, with a blank line between
        their texts. The thinking of the first is dropped then, because it could not be
        distinguished from that of the second.
        """
        previous = self._steps[-1] if self._steps else None
        if previous is not None and previous.role is _ASSISTANT:
            if previous.calls:
                self._has_result = True
            else:
                parts = _join_answers(previous, parts)
        self.add_answer(parts)

    def add_result(self, result: ToolResult) -> bool:
        """Add the result of a call; only the first result of a call is used.

        Return whether the result is in the conversation: it is not if there is no such
        call, or if the call has another result.
        """
        step, call = self._calls.get(result.call_id, (None, None))
        if step is None or call is None:
            return False
        self._has_result = True
        step.results = step.results or {}
        if stored := step.results.get(call.id):
            return stored.content == result.content
        step.results[call.id] = ToolResult(
            result.call_id, call.name, result.content, result.is_error, result.images
        )
        return True

    def name_of(self, call_id: str) -> str:
        """Return the name of the tool of a call, "" if there is no such call."""
        _, call = self._calls.get(call_id, (None, None))
        return call.name if call else ""

    def messages(self) -> list[Message]:
        """Return the messages; the first one is by the user."""
        messages: list[Message] = []
        for step in self._steps:
            if step.role is _ASSISTANT:
                is_thought = [isinstance(part, ThinkingPart) for part in step.parts]
                if step.calls or not all(is_thought):
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
        is_new, self._has_result = self._has_result, False
        if last is None or last.role is not role or (is_new and role is _ASSISTANT):
            last = _Step(role, [*parts])
            self._steps.append(last)
        else:
            last.parts += parts
        return last


def _join_answers(previous: _Step, parts: Sequence[Part]) -> Sequence[Part]:
    """Drop the thinking of an answer without calls; return the parts to add to it."""
    previous.parts = [p for p in previous.parts if not isinstance(p, ThinkingPart)]
    continued = list(parts)
    for index, part in enumerate(continued):
        if isinstance(part, TextPart) and previous.parts:
            continued[index] = TextPart(f"\n\n{part.text}")
            break
    return continued


def make_result(
    call_id: str, parts: Sequence[TextPart | ImagePart], *, is_error: bool = False
) -> ToolResult:
    """Build a result from parts; its text refers to the images by number."""
    texts: list[str] = []
    images: list[ImagePart] = []
    for part in parts:
        if isinstance(part, TextPart):
            texts.append(part.text)
        else:
            images.append(part)
            texts.append(f"[image {len(images)} below]")
    return ToolResult(call_id, "", "\n".join(texts), is_error, tuple(images))
