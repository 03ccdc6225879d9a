"""Messages of a client as a conversation in which every tool call has one result.

Ids of calls that repeat are made unique. A result without a call becomes labelled text.
"""

from collections.abc import Iterable
from dataclasses import replace

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
from byok.conversation_builder import ConversationBuilder
from byok.errors import BadRequest

BEGINNING = "(The conversation begins with an answer.)"
_INSTRUCTIONS = "[instructions]"
_ORPHAN = "[earlier tool result, call not in this conversation]"


class Turns:
    """Builds the messages of a conversation, the oldest first."""

    def __init__(self) -> None:
        self._system: list[str] = []
        self._builder = ConversationBuilder(BEGINNING)
        self._ids: dict[str, str] = {}  # of the newest call by the client's id
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # of the last one of each id that repeats
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
        if self._builder.is_empty:
            self._system.append(text)
        else:
            self._builder.add_user(
                [TextPart(f"{_INSTRUCTIONS}\n{text}", is_aside=True)]
            )

    def add_user(self, parts: Iterable[TextPart | ImagePart]) -> None:
        """Add text and images of the user."""
        said = [p for p in parts if not isinstance(p, TextPart) or p.text]
        self.user_texts += (p.text for p in said if isinstance(p, TextPart))
        self._builder.add_user(said)

    def add_answer(self, parts: Iterable[TextPart | ThinkingPart | ToolCall]) -> None:
        """Add blocks of the model's answer; those before any result are one turn."""
        said: list[Part] = []
        for part in parts:
            if isinstance(part, ToolCall):
                said.append(replace(part, id=self._unique_id(part.id)))
            elif not isinstance(part, TextPart) or part.text:
                said.append(part)
        self._builder.add_answer(said)

    def add_result(self, result: ToolResult) -> None:
        """Add the result of a call; the first one of each call counts."""
        call_id = self._ids.get(result.call_id)
        of_call = result if call_id is None else replace(result, call_id=call_id)
        if call_id is None or not self._builder.add_result(of_call):
            status = "error" if result.is_error else "ok"
            head = f"{_ORPHAN}\nid: {result.call_id or 'unknown'}\nstatus: {status}"
            told = TextPart(f"{head}\n{result.content}", is_aside=True)
            self._builder.add_user([told, *result.images])

    def messages(self) -> tuple[Message, ...]:
        """Return the messages; the first one that is no instruction is the user's.

        Raises:
            BadRequest: there are none.
        """
        system = "\n\n".join(self._system)
        messages = self._builder.messages()
        if not messages:
            if not system:
                raise BadRequest("There is nothing to answer.", code="bad_field")
            return (Message(Role.USER, (TextPart(system),)),)
        if system:
            messages.insert(0, Message(Role.SYSTEM, (TextPart(system),)))
        return tuple(messages)

    def _unique_id(self, wanted: str) -> str:
        """Return an id that no call before has; some models repeat theirs."""
        found, number = wanted, self._numbers.get(wanted, 1)
        while found in self._taken:
            number += 1
            found = f"{wanted}_{number}"
        self._taken.add(found)
        self._numbers[wanted] = number
        self._ids[wanted] = found
        return found
