"""The questions of the probe: small conversations that each try one thing."""

import base64
import struct
import zlib

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Part,
    Role,
    Sampling,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)

MAX_TOKENS = 1024  # of each answer; a model that reasons needs some of them for that
_SIDE = 64  # pixels of the picture; some APIs refuse smaller ones than 28
_RED = b"\xff\x00\x00"
_PREFIX_LINES = 450  # about 9,000 tokens: no vendor caches less than 4,096 or so
_LINE_TOKENS = 30  # at most
_WEATHER = ToolDefinition(
    "get_weather",
    "Return the current weather of a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city"}},
        "required": ["city"],
    },
)
_SYSTEM = Message(Role.SYSTEM, (TextPart("You answer briefly."),))
COLOUR = "red"


def _user(*parts: Part) -> Message:
    return Message(Role.USER, parts)


def ask(
    *messages: Message,
    sampling: Sampling | None = None,
    tools: tuple[ToolDefinition, ...] = (),
    use: ToolUse = ToolUse.AUTO,
    conversation: str = "",
) -> ChatRequest:
    """Return a request with these messages after the system's."""
    return ChatRequest(
        (_SYSTEM, *messages),
        tools,
        sampling=sampling or Sampling(max_tokens=MAX_TOKENS),
        tool_choice=ToolChoice(use),
        agent=bool(tools),
        client_parallel_tools=True,
        conversation=conversation,
    )


def count_to_thirty(
    *,
    effort: str = "",
    temperature: float | None = None,
    top_p: float | None = None,
) -> ChatRequest:
    """Ask for an answer that is long enough to come in pieces."""
    words = TextPart("Write the numbers from 1 to 30, separated by spaces.")
    sampling = Sampling(temperature, top_p, MAX_TOKENS, effort)
    return ask(_user(words), sampling=sampling)


def call_tool(use: ToolUse = ToolUse.AUTO) -> ChatRequest:
    """Ask for one call of a tool."""
    words = TextPart("What is the weather in Paris? Use the tool.")
    return ask(_user(words), tools=(_WEATHER,), use=use)


def call_tools() -> ChatRequest:
    """Ask for two calls in one answer."""
    words = TextPart(
        "What is the weather in Paris, and what is it in Oslo? Call the tool for both "
        "cities now, in one answer."
    )
    return ask(_user(words), tools=(_WEATHER,))


def go_on(said: tuple[Part, ...]) -> ChatRequest:
    """Continue after an answer that called tools, with their results."""
    calls = [part for part in said if isinstance(part, ToolCall)]
    results = [
        Message(Role.TOOL, (ToolResult(call.id, call.name, "18 degrees, sunny"),))
        for call in calls
    ]
    asked = call_tool()
    return ask(
        *asked.messages[1:],
        Message(Role.ASSISTANT, said),
        *results,
        tools=(_WEATHER,),
    )


def show_picture() -> ChatRequest:
    """Ask about a picture, of which every pixel has one colour."""
    words = TextPart("Which colour is this picture? Answer with one word.")
    return ask(_user(words, ImagePart("image/png", _picture())))


def share_prefix(number: int, window: int = 0) -> ChatRequest:
    """Ask something behind a long text that is the same each time.

    It fills less than half of a window of so many tokens; 0 is unknown.
    """
    count = min(_PREFIX_LINES, window // _LINE_TOKENS // 2 or _PREFIX_LINES)
    lines = "\n".join(
        f"Rule {n}: in room {n * 7 % 100} the lamp number {n} burns until {n % 24} h."
        for n in range(count)
    )
    words = TextPart(f"{lines}\n\nAnswer with the word ready. This is try {number}.")
    return ask(_user(words), conversation="byok-probe")


def exceed_window(tokens: int) -> ChatRequest:
    """Ask with more than a window of so many tokens; no text has fewer a word."""
    return ask(_user(TextPart("lamp " * (tokens + 64))))


def _picture() -> str:
    """Return a PNG of one colour in base64 (RFC 2083)."""
    rows = (b"\x00" + _RED * _SIDE) * _SIDE
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        data += struct.pack(">I", len(content)) + name + content
        data += struct.pack(">I", zlib.crc32(name + content))
    return base64.b64encode(data).decode()
