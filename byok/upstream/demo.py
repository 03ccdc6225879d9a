"""A demo upstream inside the daemon, for trying byok without an API key.

It repeats the question, calls a tool if the question names one, and says that it is not
a model.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from byok.chat import ChatRequest, Message, Role, TextPart, ToolDefinition, ToolResult
from byok.errors import BadRequest, UpstreamError
from byok.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from byok.upstream.base import NO_HEADERS, ForwardedResponse, Plan, Recovery

MODEL = "echo"
_MAX_ECHO = 2000
_LABEL = re.compile(r"\[[a-z][^\]\n]*\]?")  # of augment/nodes.py


class DemoUpstream:
    """Upstream without a model; it pauses for `pause` seconds between words."""

    recoveries: tuple[Recovery, ...] = ()

    def __init__(self, name: str = "demo", *, pause: float = 0.01) -> None:
        self._name = name
        self._pause = pause

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        return self._name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return 0.0

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves; chats are translated."""
        return False

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward."""
        raise BadRequest(
            f"The demo upstream answers chats, but no /{path}.",
            code="not_served",
            hint="Choose a real one with byok serve --upstream NAME.",
            status=422,
        )
        yield  # makes it a generator

    async def models(self) -> list[str]:
        """List the one model."""
        return [MODEL]

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        """Answer word by word."""
        chat = plan.outgoing
        if chat.verbatim:
            raise UpstreamError(
                "The demo is no model: it writes nothing into your code.",
                code="not_served",
                hint="Choose a model with byok serve --upstream NAME.",
            )
        text, call = _script(chat)
        for word in re.findall(r"\S+\s*|\s+", text):
            yield [TextDelta(word)]
            await asyncio.sleep(self._pause)
        usage = Usage(sum(_size(m) for m in chat.messages) // 4, len(text) // 4)
        if call is None:
            yield [usage, Finish(FinishReason.STOP)]
            return
        half = len(call.arguments) // 2
        yield [
            ToolCallDelta(0, call.id, call.name, call.arguments[:half]),
            ToolCallDelta(0, arguments=call.arguments[half:]),
            usage,
            Finish(FinishReason.TOOL_CALLS),
        ]


def _script(chat: ChatRequest) -> tuple[str, ToolCallDelta | None]:
    """Return the answer, and the call of a tool that the question names."""
    last = chat.messages[-1]
    if last.role is Role.TOOL:
        results = [p for p in last.parts if isinstance(p, ToolResult)]
        told = results[-1].content[:_MAX_ECHO]
        return f"I am byok's demo, no model. The tool answered:\n{told}", None
    said = _words(last)
    tool = _tool_in_question(chat.tools, said)
    if tool is None:
        return (
            "I am byok's demo, no model: choose one with byok serve --upstream NAME. "
            f"You asked: {said[:_MAX_ECHO]}"
        ), None
    start, end = said.find("{"), said.rfind("}") + 1
    arguments = said[start:end] if 0 <= start < end else "{}"
    call = ToolCallDelta(0, "call_demo", tool.name, arguments)
    return f"I am byok's demo, no model. Calling {tool.name} as you asked.", call


def _tool_in_question(
    tools: tuple[ToolDefinition, ...], said: str
) -> ToolDefinition | None:
    """Find the tool whose name is a word of the question."""
    for tool in sorted(tools, key=lambda t: len(t.name), reverse=True):
        if re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", said):
            return tool
    return None


def _words(message: Message) -> str:
    """Return the user's newest text, without context, which has a label in brackets."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    own = [said for said in texts if not _LABEL.match(said)]
    return (own or texts or [""])[-1]


def _size(message: Message) -> int:
    return sum(len(p.text) for p in message.parts if isinstance(p, TextPart))
