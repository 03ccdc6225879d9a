"""Upstreams without a model: the demo inside the daemon, and those that refuse.

The demo repeats the question, calls a tool if the question names one, and says that it
is not a model.

A refusing upstream stands for one that is not configured, or has no model. A request
for one upstream is never sent to another one: the user may have chosen a local model so
that no code leaves the machine. Nor is a model invented for a server that has none.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolResult,
    is_said_by_user,
)
from byok.core.errors import MODEL_NOT_FOUND, BadRequest, UpstreamError
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from byok.dialects.presets import OLLAMA, SUGGESTED_MODEL
from byok.upstream.base import ForwardedResponse, Plan, Recovery
from byok.upstream.http_sender import NO_HEADERS

MODEL = "echo"
_MAX_ECHO = 2000  # characters
_LABEL = re.compile(r"\[[a-z][^\]\n]*\]?")  # of protocols/augment/nodes.py
# Names that no section of the settings can have are not repeated: they may be anything.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_UNNAMED = "unknown"


class _NoServer:
    """The common part of upstreams that ask no server."""

    recoveries: tuple[Recovery, ...] = ()
    rest_seconds = 0.0

    def __init__(self, name: str) -> None:
        self.name = name


class DemoUpstream(_NoServer):
    """Upstream without a model; it pauses for `pause` seconds between words."""

    def __init__(self, name: str = "demo", *, pause: float = 0.01) -> None:
        super().__init__(name)
        self._pause = pause

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
        text, call = answer_of(chat)
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


def answer_of(chat: ChatRequest) -> tuple[str, ToolCallDelta | None]:
    """Return the answer to the last message, and the call of a tool that it names.

    Messages that an editor adds beside the results of tools are no questions.
    """
    candidates = (
        message
        for message in reversed(chat.messages)
        if message.role is not Role.USER or is_said_by_user(message)
    )
    last = next(candidates, chat.messages[-1])
    if last.role is Role.TOOL:
        results = [p for p in last.parts if isinstance(p, ToolResult)]
        echo = results[-1].content[:_MAX_ECHO]
        return f"I am byok's demo, no model. The tool answered:\n{echo}", None
    # The user's newest text, without context, which has a label in brackets.
    texts = [part.text for part in last.parts if isinstance(part, TextPart)]
    unlabelled = [text for text in texts if not _LABEL.match(text)]
    question = (unlabelled or texts or [""])[-1]
    named = (
        tool
        for tool in sorted(chat.tools, key=lambda t: len(t.name), reverse=True)
        if re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", question)
    )
    if (tool := next(named, None)) is None:
        return (
            "I am byok's demo, no model: choose one with byok serve --upstream NAME. "
            f"You asked: {question[:_MAX_ECHO]}"
        ), None
    start, end = question.find("{"), question.rfind("}") + 1
    arguments = question[start:end] if 0 <= start < end else "{}"
    call = ToolCallDelta(0, "call_demo", tool.name, arguments)
    return f"I am byok's demo, no model. Calling {tool.name} as you asked.", call


def _size(message: Message) -> int:
    return sum(len(p.text) for p in message.parts if isinstance(p, TextPart))


class RefusingUpstream(_NoServer):
    """Upstream that refuses every request."""

    def __init__(self, name: str, message: str, hint: str) -> None:
        super().__init__(name)
        self._message = message
        self._hint = hint

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.send."""
        raise self._refusal(422)
        yield []  # makes it a generator

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves; forwarding refuses."""
        return True

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward."""
        raise self._refusal(404)  # as OpenAI says it: only /v1 is forwarded
        yield

    async def models(self) -> list[str]:
        """See Upstream.models."""
        return []

    def _refusal(self, status: int) -> BadRequest:
        return BadRequest(
            self._message, code=MODEL_NOT_FOUND, hint=self._hint, status=status
        )


def unconfigured_upstream(name: str) -> RefusingUpstream:
    """Return the upstream of a model id whose upstream is not in the settings."""
    name = name if _NAME.fullmatch(name) else _UNNAMED
    return RefusingUpstream(
        name,
        f"The chosen model belongs to the upstream {name!r}, which is not configured.",
        "Choose another model (byok models lists them), or add "
        f"[upstreams.{name}] to the settings.",
    )


def upstream_without_models(name: str, vendor: str) -> RefusingUpstream:
    """Return the upstream of a server that says it has no model."""
    hint = f"Load one there, or name it as model under [upstreams.{name}]."
    if vendor == OLLAMA:
        hint = f"Get one on that machine, such as: ollama pull {SUGGESTED_MODEL}."
    return RefusingUpstream(name, f"{name} has no model yet.", hint)
