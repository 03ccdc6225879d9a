"""Provider data by tool call: what a client may drop, and an upstream wants back.

Some upstreams refuse a conversation in which the reasoning before a tool call, or the
call's signature, is missing or changed. Clients send reasoning back in their history,
but not all keep it, and none keeps the data of a call. So byok keeps both by the call,
and adds them again when the call comes back.

Ids of calls are not unique: Kimi counts them anew in each conversation. So the key also
contains the conversation, the name and the arguments, and nobody gets the reasoning of
another conversation. A conversation without an id is what was said in it before.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import (
    NO_ORIGIN,
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    calls_of,
    parts_of,
)
from byok.core.events import Notice, StreamEvent, ThinkingDelta, ToolCallPlace
from byok.core.wire.json_body import parse_json, write_json

LONGEST_ENTRY = 4 * 2**20  # bytes; a longer one is not kept


class CallData(Struct, frozen=True):
    """What came with a tool call.

    `thinking` are the reasoning blocks between the call before it and this one, `own`
    is the call's own data, and `place` its number in the answer, from 0.
    """

    place: int
    thinking: tuple[ThinkingPart, ...] = ()
    own: ProviderData | None = None

    @property
    def origin(self) -> Origin | None:
        """The origin of the data, which is one; None without any data."""
        held = [part.provider_data for part in self.thinking] + [self.own]
        return next((data.origin for data in held if data), None)

    def write(self) -> bytes:
        """Serialise data that is there."""
        origin = self.origin or NO_ORIGIN
        return write_json(
            {
                "origin": [origin.dialect, origin.upstream, origin.model],
                "place": self.place,
                "thinking": [[p.text, _plain(p.provider_data)] for p in self.thinking],
                "own": _plain(self.own),
            }
        )


def read_call_data(raw: bytes) -> CallData | None:
    """Parse what `CallData.write` wrote; None for anything else."""
    try:
        kept = parse_json(raw, keep_halves=True)
        origin = Origin(*map(str, kept["origin"]))
        thinking = tuple(
            ThinkingPart(str(text), ProviderData(origin, dict(data)))
            for text, data in kept["thinking"]
        )
        own = kept["own"]
        data = None if own is None else ProviderData(origin, dict(own))
        return CallData(int(kept["place"]), thinking, data)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _plain(data: ProviderData | None) -> Any:
    return None if data is None else data.data


class CallDataCollector:
    """Collects the provider data of one answer from its events."""

    def __init__(self, chat: ChatRequest) -> None:
        *_, self._conversation = conversations(chat)
        self._text: list[str] = []
        self._thinking: list[ThinkingPart] = []
        self._placed: dict[str, tuple[int, list[ThinkingPart]]] = {}
        self._calls = 0
        self.entries: dict[bytes, bytes] = {}

    def note(self, event: StreamEvent) -> None:
        """Take the next event of the answer; most kinds do not matter."""
        match event:
            case ThinkingDelta(text=text, provider_data=data):
                self._text.append(text)
                if data:
                    self._thinking.append(ThinkingPart("".join(self._text), data))
                    self._text = []
            case ToolCallPlace(call_id=call_id):
                self._placed[call_id] = self._take_place()
            case ToolCall():
                known = event.id in self._placed
                place, thinking = (
                    self._placed.pop(event.id) if known else self._take_place()
                )
                self._add(CallData(place, tuple(thinking), event.provider_data), event)
            case Notice(is_restart=True):
                self._text, self._thinking = [], []
            case _:
                pass

    def _add(self, data: CallData, call: ToolCall) -> None:
        if (origin := data.origin) is None:
            return
        if len(held := data.write()) <= LONGEST_ENTRY:
            self.entries[call_key(_scope(self._conversation, origin), call)] = held

    def _take_place(self) -> tuple[int, list[ThinkingPart]]:
        thinking, self._thinking = self._thinking, []
        self._calls += 1
        return self._calls - 1, thinking


def has_calls(chat: ChatRequest) -> bool:
    """Tell whether the conversation has tool calls."""
    return ToolCall in map(type, parts_of(chat.messages))


def keys_of(chat: ChatRequest, origin: Origin) -> list[bytes]:
    """Return the keys of all tool calls in a conversation, for one model."""
    return [
        call_key(scope, call)
        for message, scope in _with_scopes(chat, origin)
        for call in calls_of(message)
    ]


def restore_call_data(
    chat: ChatRequest, origin: Origin, found: Mapping[bytes, CallData]
) -> ChatRequest:
    """Return the conversation with its calls and reasoning as the model sent them."""
    if not found:
        return chat
    messages = (
        _restore_message(message, scope, found)
        for message, scope in _with_scopes(chat, origin)
    )
    return replace(chat, messages=tuple(messages))


def _restore_message(
    message: Message, scope: str, found: Mapping[bytes, CallData]
) -> Message:
    held = [
        found.get(call_key(scope, part)) if isinstance(part, ToolCall) else None
        for part in message.parts
    ]
    if not any(held):
        return message
    parts = [
        replace(part, provider_data=data.own)
        if isinstance(part, ToolCall) and data and data.own
        else part
        for part, data in zip(message.parts, held, strict=True)
    ]
    return Message(message.role, tuple(_in_order(parts, held)))


def _in_order(parts: list[Part], held: list[CallData | None]) -> list[Part]:
    """Return the parts as the model wrote them.

    They stay where they are if the client kept all reasoning in its order. Else the
    text stands before the first call; calls of which nothing is known come last.
    """
    calls = [
        (data or CallData(len(parts)), part)
        for part, data in zip(parts, held, strict=True)
        if isinstance(part, ToolCall)
    ]
    calls.sort(key=lambda call: call[0].place)
    wanted: list[Part] = []
    for data, call in calls:
        wanted += (*data.thinking, call)
    given = [p for p in parts if isinstance(p, ToolCall) or _has_data(p)]
    if given[: len(wanted)] == wanted:
        return parts
    first = len(calls[0][0].thinking)
    texts = [part for part in parts if isinstance(part, TextPart)]
    known = {*wanted}
    rest = [part for part in given if part not in known]
    return [*wanted[:first], *texts, *wanted[first:], *rest]


def _has_data(part: Part) -> bool:
    return isinstance(part, ThinkingPart) and part.provider_data is not None


def _with_scopes(chat: ChatRequest, origin: Origin) -> Iterator[tuple[Message, str]]:
    """Give each message with the scope of its calls."""
    names = conversations(chat)
    for message, name in zip(chat.messages, names, strict=False):
        yield message, (_scope(name, origin) if calls_of(message) else "")


def conversations(chat: ChatRequest) -> Iterator[str]:
    """Give what identifies the conversation before each message, and after the last.

    That is the id, else a digest of what the user and the tools said.
    """
    digest = blake2b(digest_size=24)
    for message in chat.messages:
        yield chat.conversation or digest.hexdigest()
        if not chat.conversation:
            for said in _texts(message):
                raw = said.encode("utf-8", "surrogatepass")
                digest.update(len(raw).to_bytes(8, "big") + raw)
    yield chat.conversation or digest.hexdigest()


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield part.content
        elif message.role is Role.USER and type(part) is TextPart:
            yield part.text


def _scope(conversation: str, origin: Origin) -> str:
    return _digest(origin.upstream, origin.model, conversation).hex()


def call_key(scope: str, call: ToolCall) -> bytes:
    """Return what identifies a call in a scope, such as a conversation."""
    return _digest(scope, call.id, call.name, call.arguments)


def _digest(*texts: str) -> bytes:
    digest = blake2b(digest_size=24)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.digest()
