"""Gemini: the messages of a conversation as `contents` and `systemInstruction`.

Users and tools speak as `user`, the model as `model`, and the roles alternate: the
results of a step stand in one content directly after its calls, in their order.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.chat import ImagePart, Message, Part, Role, TextPart, ToolResult
from byok.dialects.base import Target
from byok.dialects.gemini.model_turn import ModelTurns
from byok.dialects.records import NO_PICTURE
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
        self._later: list[dict[str, Any]] = []  # pictures behind the results of a step
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
                    self._put("model", [*self._turns.parts_of(message.parts)])
                case Role.USER:
                    words = [*self._words(message.parts)]
                    self._put("user", words or [{"text": _NO_WORDS}])
                case Role.TOOL:
                    results = [p for p in message.parts if isinstance(p, ToolResult)]
                    self._put("user", [self._result(result) for result in results])
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
        later, self._later = self._later, []
        self._put("user", later)

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

    def _result(self, result: ToolResult) -> dict[str, Any]:
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
                self._later += [{"text": whose}, picture]
        return {"functionResponse": response}
