"""Ask a model again for tool calls whose arguments were not valid JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from byok.core.chat import (
    ChatRequest,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.events import ThinkingDelta
from byok.upstream.toolcalls.assemble import BrokenCall

_AROUND = 80  # characters shown on either side of the place


def correction_request(
    chat: ChatRequest, said: Sequence[Part], broken: Sequence[BrokenCall]
) -> ChatRequest | None:
    """Return a request that shows the model its answer and what was wrong with it.

    The broken calls are shown with empty arguments, because strict upstreams refuse
    invalid ones. Returns None if there is no broken call, or one of a tool that was not
    offered: upstreams refuse such a history.
    """
    offered = {tool.name for tool in chat.tools}
    if not broken or any(one.call.name not in offered for one in broken):
        return None
    calls = (replace(one.call, arguments="{}") for one in broken)
    answer = Message(Role.ASSISTANT, (*said, *calls))
    results = (Message(Role.TOOL, (_result(one.call, one),)) for one in broken)
    return replace(chat, messages=(*chat.messages, answer, *results))


def answer_parts(pieces: Iterable[str | ThinkingDelta]) -> list[Part]:
    """Join the pieces of an answer to blocks, in their order; text comes as strings."""
    parts: list[Part] = []
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        held: list[str] = []
        for piece in group:
            if isinstance(piece, str):
                held.append(piece)
                continue
            held.append(piece.text)
            if piece.provider_data:
                parts.append(ThinkingPart("".join(held), piece.provider_data))
                held = []
        if text := "".join(held):
            if not is_text:
                parts.append(ThinkingPart(text))
            elif text.strip():
                parts.append(TextPart(text))
    return parts


def _result(call: ToolCall, broken: BrokenCall) -> ToolResult:
    raw, at = call.arguments, broken.at
    start, end = max(0, at - _AROUND), at + _AROUND
    place = f"{'…' if start else ''}{raw[start:end]}{'…' if raw[end:] else ''}"
    told = (
        "ERROR: the tool was not run, because the arguments of this call are not valid "
        f"JSON: {broken.problem} (character {at}). The text there is:\n{place}\n"
        "Make the call again, as one JSON object. Inside its strings a backslash is "
        'written \\\\, a quotation mark \\" and a line break \\n.'
    )
    return ToolResult(call.id, call.name, told, is_error=True)


class Unsaid:
    """Removes from a second answer the text that the first one already showed.

    Models often begin again with the words that preceded the broken call.
    """

    def __init__(self, said: str) -> None:
        self._said = said.strip()
        self._gap = "" if said.endswith("\n") else "\n\n"
        self._held = ""
        self._over = not self._said

    def feed(self, text: str) -> str:
        """Return the new text; "" as long as it may still be a repetition."""
        if self._over:
            return text
        self._held += text
        bare = self._held.lstrip()
        if self._said.startswith(bare):
            return ""
        self._over, self._held = True, ""
        if bare.startswith(self._said):
            return bare[len(self._said) :]
        return self._gap + bare
