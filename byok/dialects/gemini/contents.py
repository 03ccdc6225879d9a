"""Gemini: the messages of a conversation as `contents` and `systemInstruction`.

Users and tools speak as `user`, the model as `model`, and the roles alternate: the
results of a step stand in one content directly after its calls, in their order.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.chat import ImagePart, Message, Part, Role, TextPart, ToolCall, ToolResult
from byok.dialects.base import Target
from byok.dialects.chat_changes import NO_PICTURE
from byok.dialects.gemini.model_turn import ModelTurns
from byok.dialects.safe_names import Aliases
from byok.dialects.thought_signatures import wants_signatures

_NO_WORDS = "(no words)"
_NO_OUTPUT = "(no output)"
# Source: Gemini API, Image understanding.
_PICTURES = frozenset(
    ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
)


class GeminiContents:
    """The contents of one request.

    `hides_picture` tells whether a picture of the newest turn was left out, because
    of its type.
    """

    def __init__(self, names: Aliases, target: Target) -> None:
        self._names = names
        self._turns = ModelTurns(names, target)
        # Gemini 3, which also wants signatures, sees pictures inside of results.
        self._inside = wants_signatures(target.model)
        self._contents: list[dict[str, Any]] = []
        self._system: list[dict[str, Any]] = []
        self._asked: list[str] = []  # ids of the calls whose results come next
        self._results: list[ToolResult] = []
        self.hides_picture = False

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages, the oldest first."""
        for message in messages:
            if message.role is not Role.TOOL:
                self._end_step()
            match message.role:
                case Role.SYSTEM:
                    self._system += self._words(message.parts)
                case Role.ASSISTANT:
                    self.hides_picture = False
                    calls = [p for p in message.parts if isinstance(p, ToolCall)]
                    self._asked = [call.id for call in calls]
                    self._put("model", [*self._turns.parts_of(message.parts)])
                case Role.USER:
                    words = [*self._words(message.parts)]
                    self._put("user", words or [{"text": _NO_WORDS}])
                case Role.TOOL:
                    found = (p for p in message.parts if isinstance(p, ToolResult))
                    self._results += found
        self._end_step()

    def fields(self) -> dict[str, Any]:
        """Return the fields of the body."""
        system = {"systemInstruction": {"parts": self._system}} if self._system else {}
        return {**system, "contents": self._contents}

    def _put(self, role: str, parts: list[dict[str, Any]]) -> None:
        if parts and self._contents and self._contents[-1]["role"] == role:
            self._contents[-1]["parts"] += parts
        elif parts:
            self._contents.append({"role": role, "parts": parts})

    def _end_step(self) -> None:
        """Add the results of a step in the order of its calls, which have no ids."""
        place = {call_id: n for n, call_id in enumerate(self._asked)}
        self._results.sort(key=lambda result: place.get(result.call_id, len(place)))
        later: list[dict[str, Any]] = []
        responses = [self._response(result, later) for result in self._results]
        self._put("user", [*responses, *later])
        self._results = []

    def _words(self, parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        for part in parts:
            if isinstance(part, TextPart) and part.text:
                yield {"text": part.text}
            elif isinstance(part, ImagePart):
                yield self._picture(part)

    def _picture(self, image: ImagePart) -> dict[str, Any]:
        if image.media_type in _PICTURES:
            return {"inlineData": {"mimeType": image.media_type, "data": image.data}}
        self.hides_picture = True
        return {"text": NO_PICTURE}

    def _response(
        self, result: ToolResult, later: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the part of a result; pictures that it cannot hold come `later`."""
        id_ = self._turns.ids.get(result.call_id)
        response: dict[str, Any] = {
            **({"id": id_} if id_ else {}),
            "name": self._names.alias(result.name),
            "response": {
                "error" if result.is_error else "output": result.content or _NO_OUTPUT
            },
        }
        for number, image in enumerate(result.images, 1):
            picture = self._picture(image)
            if self._inside and "inlineData" in picture:
                response.setdefault("parts", []).append(picture)
            else:
                whose = f"Image {number}, output of {result.name} ({result.call_id}):"
                later += [{"text": whose}, picture]
        return {"functionResponse": response}
