"""Messages of a client as a conversation in which every tool call has one result.

Clients send results at any place behind their call. Upstreams want them directly behind
the message with the call, and strict ones refuse a call without a result or a result
without a call; so the former gets a synthetic one and the latter becomes labelled text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from byok.chat import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.errors import BadRequest

NO_RESULT = '{"error":"no result was recorded for this call"}'
BEGINNING = "(The conversation begins with an answer.)"
_INSTRUCTIONS = "[instructions]"
_ORPHAN = "[earlier tool result, call not in this conversation]"


@dataclass(slots=True)
class _Step:
    role: Role
    parts: list[Part]
    results: dict[str, ToolResult] = field(default_factory=dict)


class Turns:
    """Builds the messages of a conversation, the oldest first."""

    def __init__(self) -> None:
        self._system: list[str] = []
        self._steps: list[_Step] = []
        self._calls: dict[str, tuple[_Step, ToolCall]] = {}  # by the client's id
        self._ids: set[str] = set()
        self._numbers: dict[str, int] = {}  # of the last one of each id that repeats
        self._ended = False  # results came: the next answer is another turn
        self.user_texts: list[str] = []

    @property
    def own_words(self) -> str:
        """Return the user's newest words."""
        return self.user_texts[-1] if self.user_texts else ""

    def add_system(self, text: str) -> None:
        """Add instructions; behind the first message they become words of the user.

        Many chat templates take only one system message, at the beginning.
        """
        if not text.strip():
            return
        if self._steps:
            self._add(Role.USER, [TextPart(f"{_INSTRUCTIONS}\n{text}")])
        else:
            self._system.append(text)

    def add_user(self, parts: Iterable[TextPart | ImagePart]) -> None:
        """Add text and images of the user."""
        said: list[Part] = []
        said += (p for p in parts if not isinstance(p, TextPart) or p.text)
        self.user_texts += (p.text for p in said if isinstance(p, TextPart))
        self._add(Role.USER, said)

    def add_answer(self, parts: Iterable[TextPart | ThinkingPart | ToolCall]) -> None:
        """Add blocks of the model's answer; those before any result are one turn."""
        said: list[Part] = []
        calls: list[tuple[str, ToolCall]] = []
        for part in parts:
            if isinstance(part, ToolCall):
                call = replace(part, id=self._unique_id(part.id))
                calls.append((part.id, call))
                said.append(call)
            elif not isinstance(part, TextPart) or part.text:
                said.append(part)
        step = self._add(Role.ASSISTANT, said)
        if step is not None:
            self._calls.update((given, (step, call)) for given, call in calls)

    def add_result(self, result: ToolResult) -> None:
        """Add the result of a call; the first one of each call counts."""
        step, call = self._calls.get(result.call_id, (None, None))
        if step is None or call is None:
            self._add_orphan(result)
            return
        self._ended = True
        known = step.results.setdefault(
            call.id, replace(result, call_id=call.id, name=call.name)
        )
        if known.content != result.content:
            self._add_orphan(result)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages; the first one that is no instruction is the user's.

        Raises:
            BadRequest: there are none.
        """
        system = "\n\n".join(self._system)
        messages: list[Message] = []
        for step in self._steps:
            messages += _messages(step)
            if [m.role for m in messages[-2:]] == [Role.USER] * 2:
                last = messages.pop()
                messages[-1] = Message(Role.USER, messages[-1].parts + last.parts)
        if not messages:
            if not system:
                raise BadRequest("There is nothing to answer.", code="bad_field")
            return (Message(Role.USER, (TextPart(system),)),)
        if messages[0].role is not Role.USER:
            messages.insert(0, Message(Role.USER, (TextPart(BEGINNING),)))
        if system:
            messages.insert(0, Message(Role.SYSTEM, (TextPart(system),)))
        return tuple(messages)

    def _add(self, role: Role, parts: list[Part]) -> _Step | None:
        if not parts:
            return None
        last = self._steps[-1] if self._steps else None
        ended, self._ended = self._ended, False
        if last is None or last.role is not role or (ended and role is Role.ASSISTANT):
            last = _Step(role, [])
            self._steps.append(last)
        last.parts += parts
        return last

    def _add_orphan(self, result: ToolResult) -> None:
        status = "error" if result.is_error else "ok"
        head = f"{_ORPHAN}\nid: {result.call_id or 'unknown'}\nstatus: {status}"
        self._add(Role.USER, [TextPart(f"{head}\n{result.content}"), *result.images])

    def _unique_id(self, wanted: str) -> str:
        """Return an id that no call before has; some models repeat theirs."""
        found, number = wanted, self._numbers.get(wanted, 1)
        while found in self._ids:
            number += 1
            found = f"{wanted}_{number}"
        self._ids.add(found)
        self._numbers[wanted] = number
        return found


def _messages(step: _Step) -> Iterable[Message]:
    """Return a step and the results of its calls; not one of reasoning alone."""
    if all(isinstance(part, ThinkingPart) for part in step.parts):
        return
    yield Message(step.role, tuple(step.parts))
    for part in step.parts:
        if isinstance(part, ToolCall):
            missing = ToolResult(part.id, part.name, NO_RESULT)
            yield Message(Role.TOOL, (step.results.get(part.id, missing),))


def make_result(
    call_id: str, parts: list[TextPart | ImagePart], *, is_error: bool = False
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
