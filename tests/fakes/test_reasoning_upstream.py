"""Ten turns with each vendor: reasoning comes back exactly, and others' never does."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.events import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from byok.core.stage import drain
from byok.dialects.base import Target, write_request
from byok.dialects.error_bodies import refusal_of
from byok.dialects.families import family_facts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    find_remedy,
)
from tests.fakes.reasoning_upstream import StrictVendor
from tests.fakes.strict_vendors import VENDORS, Speech

PRESETS = {
    "any": "openai_compatible",
    "kimi-elsewhere": "vllm",
    "deepseek-r1": "openai_compatible",
    "qwen-elsewhere": "vllm",
    "thinker": "openai_compatible",
    "openrouter-gemini": "openrouter",
    "openrouter-claude": "openrouter",
}
TOOLS = (ToolDefinition("view", "", {"type": "object", "properties": {}}),)


def question(number: int) -> Message:
    return Message(Role.USER, (TextPart(f"Question {number}?"),))


def parts_of(events: Sequence[StreamEvent]) -> list[Part]:
    """Return the blocks of an answer as a client keeps them."""
    parts: list[Part] = []
    thought = ""
    for event in events:
        match event:
            case ThinkingDelta(text=text, provider_data=data):
                thought += text
                if data:
                    parts.append(ThinkingPart(thought, data))
                    thought = ""
            case TextDelta(text=text):
                parts.append(TextPart(text))
            case ToolCallDelta(id=call_id, name=name, provider_data=data):
                parts.append(ToolCall(call_id, name, "{}", data))
            case _:
                pass
    assert not thought
    return parts


class Client:
    """Asks one vendor's model, and keeps the history as it is."""

    def __init__(self, vendor: str, *, tools: bool = True) -> None:
        self.upstream = StrictVendor(vendor, steps=2)
        self.messages: list[Message] = []
        self._dialect = OpenAIChat.of(PRESETS.get(vendor, vendor))
        self._model = VENDORS[vendor].model
        self._tools = TOOLS if tools else ()
        self._remedies: list[Remedy] = []

    def ask(self, number: int) -> None:
        """Ask, and run tools until the model answers."""
        self.messages.append(question(number))
        while True:
            parts = self._answer()
            self.messages.append(Message(Role.ASSISTANT, tuple(parts)))
            calls = [part for part in parts if isinstance(part, ToolCall)]
            self.messages += [
                Message(Role.TOOL, (ToolResult(call.id, call.name, "ok"),))
                for call in calls
            ]
            if not calls:
                return

    def _answer(self) -> list[Part]:
        origin = Origin("openai_chat", "box", self._model)
        target = Target(self._model, facts=family_facts(self._model), origin=origin)
        chat = ChatRequest(tuple(self.messages), self._tools, agent=True)
        for _ in range(4):
            asked, sent = write_request(self._dialect, chat, target, self._remedies)
            if not (reasons := self.upstream.judge(sent.body)):
                break
            error = refusal_of({"error": {"message": reasons[0]}}, 400)
            refused = RefusedRequest(sent.body, error, chat=asked)
            remedy = find_remedy(self._dialect.remedies, refused)
            assert remedy, reasons
            self._remedies.append(remedy)
        assert not reasons
        answer = self.upstream.answer(sent.body)
        reader = self._dialect.reader(replace(sent, origin=origin))
        return parts_of([*drain(reader, answer)])


@pytest.mark.parametrize("tools", [True, False], ids=["agent", "chat"])
@pytest.mark.parametrize("vendor", VENDORS)
def test_vendor_stays_alive_for_ten_turns(vendor: str, *, tools: bool) -> None:
    client = Client(vendor, tools=tools)
    for number in range(10):
        client.ask(number)
    rules = VENDORS[vendor]
    wanted = rules.tool_turns if tools else rules.plain_turns
    assert bool(client.upstream.replayed) >= wanted
    if vendor == "deepseek-r1" or rules.speech is Speech.NONE:
        assert not client.upstream.replayed


@pytest.mark.parametrize("vendor", VENDORS)
def test_vendor_takes_the_conversation_of_another(vendor: str) -> None:
    others = {"deepseek", "openrouter-claude", "minimax", "gemini", "any"}
    for other in others - {vendor}:
        first, second = Client(other), Client(vendor)
        first.ask(0)
        second.messages = first.messages
        second.ask(1)
        second.ask(2)


@pytest.mark.parametrize("vendor", VENDORS)
def test_vendor_takes_a_conversation_without_its_reasoning(vendor: str) -> None:
    if VENDORS[vendor].speech in (Speech.TAGS, Speech.DETAILS):
        pytest.skip("nothing stands for what such a model has said")
    client = Client(vendor)
    client.ask(0)
    client.messages = [
        Message(m.role, tuple(map(_bare, m.parts))) for m in client.messages
    ]
    client.ask(1)


def _bare(part: Part) -> Part:
    """Return a part without what clients may drop."""
    if isinstance(part, ThinkingPart):
        return TextPart("")
    return replace(part, provider_data=None) if isinstance(part, ToolCall) else part


def test_reasoning_that_was_changed_is_noticed() -> None:
    client = Client("deepseek")
    client.ask(0)
    body: dict[str, Any] = {
        "model": "deepseek-v4-pro",
        "stream": True,
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": "Answer 3 of deepseek.",
                "reasoning_content": "y",
            },
            {"role": "user", "content": "x"},
        ],
    }
    assert "changed" in client.upstream.judge(body)[0]
