"""Random conversations as the dialects get them: paired, and in a legal order."""

import base64
from collections.abc import Sequence
from itertools import count

from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.base import Target
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.presets import quirks_of
from tests.fakes.strict import broken_rules

PNG = ImagePart(
    "image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
)
_FILLERS = ("let x = 1;\n", "ошибка ", "编译失败", "🛠 ", "x")


def user(*texts: str) -> Message:
    return Message(Role.USER, tuple(map(TextPart, texts)))


def step(number: int, result: str, *, said: str = "") -> tuple[Message, Message]:
    """One tool call of the assistant, and its result."""
    call = ToolCall(f"call_{number}", "view", f'{{"path": "src/{number}.rs"}}')
    parts: tuple[Part, ...] = (TextPart(said), call) if said else (call,)
    return (
        Message(Role.ASSISTANT, parts),
        Message(Role.TOOL, (ToolResult(call.id, call.name, result),)),
    )


def agent(steps: int, size: int, *, task: str = "Port it.") -> tuple[Message, ...]:
    """One request of the user, and many steps."""
    done = [m for n in range(steps) for m in step(n, (f"{n} " * size)[:size])]
    return (user(task), *done)


def results(messages: Sequence[Message]) -> dict[str, str]:
    """Return every result by its call."""
    return {
        p.call_id: p.content
        for m in messages
        for p in m.parts
        if isinstance(p, ToolResult)
    }


def rules_broken_by(messages: Sequence[Message]) -> list[str]:
    """Return what a strict upstream has against a conversation."""
    chat = ChatRequest(tuple(messages))
    return broken_rules(encode_request(chat, Target("m"), quirks_of("openai")).body)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw a conversation without a system message; the user or a tool spoke last."""
    maker = _Maker(draw)
    messages = [maker.asked()]
    for _ in range(draw(st.integers(0, 14))):
        calls = draw(st.integers(0, 3))
        messages += maker.step(calls)
        if not calls or draw(st.integers(0, 4)) == 0:
            messages.append(maker.asked())
    return tuple(messages)


class _Maker:
    """Draws messages; no two texts of one conversation are the same."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = count(1)

    def asked(self) -> Message:
        parts: list[Part] = [self._text(self._draw(st.sampled_from([3, 60, 900])))]
        if self._draw(st.integers(0, 5)) == 0:
            parts += [TextPart("Image 1:"), PNG]
        return Message(Role.USER, tuple(parts))

    def step(self, calls: int) -> list[Message]:
        ids = [f"call_{next(self._numbers)}" for _ in range(calls)]
        parts: list[Part] = []
        if calls and self._draw(st.integers(0, 3)) == 0:
            parts.append(ThinkingPart(self._text(20).text))
        if not calls or self._draw(st.booleans()):
            parts.append(self._text(60))
        parts += [ToolCall(i, "view", f'{{"path": "{i}"}}') for i in ids]
        found = [ToolResult(i, "view", self._text(500).text) for i in ids]
        return [
            Message(Role.ASSISTANT, tuple(parts)),
            *(Message(Role.TOOL, (result,)) for result in found),
        ]

    def _text(self, most: int) -> TextPart:
        filler = self._draw(st.sampled_from(_FILLERS))
        size = self._draw(st.integers(0, most))
        return TextPart(f"<{next(self._numbers)}> {filler * size}".strip())
