"""Gemini: a turn of the model, given back with what the model sent beside it.

`answer.py` says what the provider data holds. It comes from a client, so it may be
forged or damaged: what has the wrong type is left out.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from byok.chat import Json, Part, TextPart, ThinkingPart, ToolCall
from byok.dialects.base import Target
from byok.dialects.gemini.answer import OPAQUE
from byok.dialects.safe_names import Aliases
from byok.dialects.thought_signatures import NOT_CHECKED, wants_signatures
from byok.wire.json_body import parse_json

_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]+\Z")
_BESIDE = {"thoughtSignature", "thought"}


class ModelTurns:
    """Encodes the turns of the model in one request.

    `ids` holds the ids that the model gave to its calls, by the ids of the client.
    """

    def __init__(self, names: Aliases, target: Target) -> None:
        self._names = names
        self._target = target
        self._bypass = wants_signatures(target.model)
        self.ids: dict[str, str] = {}

    def parts_of(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        """Yield the parts of one turn; a signature waits for the text that it signs."""
        waiting: Json = {}
        chars, called = 0, False
        for part in parts:
            if waiting:
                text = part.text if isinstance(part, TextPart) else ""
                yield {"text": text[:chars], **waiting}
                waiting = {}
                if text:
                    part = TextPart(text[chars:])
            match part:
                case TextPart(text=text) if text:
                    yield {"text": text}
                case ToolCall():
                    yield self._call(part, is_first=not called)
                    called = True
                case ThinkingPart():
                    own = self._own(part)
                    chars = _chars(own)
                    waiting = _signature(own) if chars else {}
                    yield from () if chars else _thought(part.text, own)
                case _:
                    pass  # a user's parts
        if waiting:
            yield {"text": "", **waiting}

    def _call(self, call: ToolCall, *, is_first: bool) -> dict[str, Any]:
        own = self._own(call)
        signature = _signature(own)
        if not signature and is_first and self._bypass:
            signature = {"thoughtSignature": NOT_CHECKED}
        body = {"name": self._names.alias(call.name), "args": _args(call.arguments)}
        if isinstance(id_ := own.get("id"), str) and id_:
            self.ids[call.id] = id_
            body = {"id": id_, **body}
        return {"functionCall": body, **signature}

    def _own(self, part: ThinkingPart | ToolCall) -> Json:
        """Return what this very model sent with a part, {} for any other."""
        data = part.provider_data
        return data.data_for(self._target.origin) if data else {}


def _signature(own: Json) -> dict[str, Any]:
    signature = own.get("thoughtSignature")
    is_valid = isinstance(signature, str) and _BASE64.match(signature)
    return {"thoughtSignature": signature} if is_valid else {}


def _chars(own: Json) -> int:
    """Return how many characters of the next text are signed, 0 for none of them."""
    chars = own.get("chars")
    is_valid = type(chars) is int and chars > 0 and bool(_signature(own))
    return chars if is_valid and isinstance(chars, int) else 0


def _thought(text: str, own: Json) -> Iterator[dict[str, Any]]:
    """Yield the part of one block of reasoning.

    Summaries without a signature are for people: the model does not need them.
    """
    part = own.get("part")
    if isinstance(part, dict):
        thought = {"thought": True} if part.get("thought") is True else {}
        kinds = part.keys() - _BESIDE
        is_opaque = len(kinds) == 1 and kinds <= set(OPAQUE)
        if is_opaque and all(isinstance(part[kind], dict) for kind in kinds):
            yield {kind: part[kind] for kind in kinds} | thought | _signature(part)
    elif signature := _signature(own):
        is_thought = own.get("thought") is True
        yield (
            {"text": text, "thought": True, **signature}
            if is_thought
            else {"text": "", **signature}
        )


def _args(arguments: str) -> Any:
    """Return the arguments as an object; a text that is none becomes a value in one."""
    try:
        value = parse_json(arguments.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}
