"""Provider data by tool call, which clients may drop and upstreams require back.

Some upstreams refuse a conversation in which the reasoning before a tool call, or the
call's signature, is missing or changed. Clients send reasoning back in their history,
but not all store it, and none stores the data of a call. So byok stores both by call,
and adds them when the call comes back in a history.

Ids of calls are not unique: Kimi counts them anew in each conversation. So the key also
contains the conversation, the name and the arguments, and no conversation gets the
reasoning of another one. A conversation without an id is identified by a digest of its
earlier messages.
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

MAX_ENTRY_BYTES = 4 * 2**20  # a longer entry is not stored


class CallData(Struct, frozen=True):
    """The provider data of a tool call.

    `thinking` are the reasoning blocks between the previous call and this one, `own` is
    the call's own data, and `place` its index in the answer.
    """

    place: int
    thinking: tuple[ThinkingPart, ...] = ()
    own: ProviderData | None = None

    @property
    def origin(self) -> Origin | None:
        """The common origin of all data; None without any data."""
        all_data = [part.provider_data for part in self.thinking] + [self.own]
        return next((data.origin for data in all_data if data), None)

    def write(self) -> bytes:
        """Serialise the data as JSON."""
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
    """Parse the output of `CallData.write`; None for anything else."""
    try:
        fields = parse_json(raw, keep_halves=True)
        origin = Origin(*map(str, fields["origin"]))
        thinking = tuple(
            ThinkingPart(str(text), ProviderData(origin, dict(data)))
            for text, data in fields["thinking"]
        )
        own = fields["own"]
        data = None if own is None else ProviderData(origin, dict(own))
        return CallData(int(fields["place"]), thinking, data)
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
        """Record the next event of the answer; most kinds do not matter."""
        match event:
            case ThinkingDelta(text=text, provider_data=data):
                self._text.append(text)
                if data:
                    self._thinking.append(ThinkingPart("".join(self._text), data))
                    self._text = []
            case ToolCallPlace(call_id=call_id):
                self._placed[call_id] = self._start_call()
            case ToolCall():
                is_placed = event.id in self._placed
                place, thinking = (
                    self._placed.pop(event.id) if is_placed else self._start_call()
                )
                self._add(CallData(place, tuple(thinking), event.provider_data), event)
            case Notice(is_restart=True):
                self._text, self._thinking = [], []
            case _:
                pass

    def _add(self, data: CallData, call: ToolCall) -> None:
        if (origin := data.origin) is None:
            return
        if len(raw := data.write()) <= MAX_ENTRY_BYTES:
            self.entries[call_key(_scope(self._conversation, origin), call)] = raw

    def _start_call(self) -> tuple[int, list[ThinkingPart]]:
        """Return the index of the next call and the reasoning before it."""
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
    chat: ChatRequest, origin: Origin, data_by_key: Mapping[bytes, CallData]
) -> ChatRequest:
    """Return the conversation with its calls and reasoning as the model sent them."""
    if not data_by_key:
        return chat
    messages = (
        _restore_message(message, scope, data_by_key)
        for message, scope in _with_scopes(chat, origin)
    )
    return replace(chat, messages=tuple(messages))


def _restore_message(
    message: Message, scope: str, data_by_key: Mapping[bytes, CallData]
) -> Message:
    call_data = [
        data_by_key.get(call_key(scope, part)) if isinstance(part, ToolCall) else None
        for part in message.parts
    ]
    if not any(call_data):
        return message
    parts = [
        replace(part, provider_data=data.own)
        if isinstance(part, ToolCall) and data and data.own
        else part
        for part, data in zip(message.parts, call_data, strict=True)
    ]
    return Message(message.role, tuple(_in_order(parts, call_data)))


def _in_order(parts: list[Part], call_data: list[CallData | None]) -> list[Part]:
    """Return the parts as the model wrote them.

    They stay in their order if the client kept all reasoning. Else the text comes
    before the first call, and calls without stored data come last.
    """
    calls = [
        (data or CallData(len(parts)), part)
        for part, data in zip(parts, call_data, strict=True)
        if isinstance(part, ToolCall)
    ]
    calls.sort(key=lambda call: call[0].place)
    expected: list[Part] = []
    for data, call in calls:
        expected += (*data.thinking, call)
    received = [
        part
        for part in parts
        if isinstance(part, ToolCall)
        or (isinstance(part, ThinkingPart) and part.provider_data is not None)
    ]
    if received[: len(expected)] == expected:
        return parts
    first = len(calls[0][0].thinking)
    texts = [part for part in parts if isinstance(part, TextPart)]
    known = {*expected}
    others = [part for part in received if part not in known]
    return [*expected[:first], *texts, *expected[first:], *others]


def _with_scopes(chat: ChatRequest, origin: Origin) -> Iterator[tuple[Message, str]]:
    names = conversations(chat)
    for message, name in zip(chat.messages, names, strict=False):
        yield message, (_scope(name, origin) if calls_of(message) else "")


def conversations(chat: ChatRequest) -> Iterator[str]:
    """Yield the name of the conversation before each message, and after the last.

    It is the id, or else a digest of the texts of the user and the tools so far.
    """
    digest = blake2b(digest_size=24)
    for message in chat.messages:
        yield chat.conversation or digest.hexdigest()
        if not chat.conversation:
            for text in _texts(message):
                raw = text.encode("utf-8", "surrogatepass")
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
    """Return the key of a call in a scope, such as a conversation."""
    return _digest(scope, call.id, call.name, call.arguments)


def _digest(*texts: str) -> bytes:
    digest = blake2b(digest_size=24)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.digest()
