"""Messages API: one block of a model's reasoning while it comes."""

from typing import Any

from byok.wire.surrogates import SurrogateBuffer


class ThinkingBlock:
    """A block of reasoning, whose text and signature come in pieces."""

    def __init__(self, block: dict[str, Any] | None = None) -> None:
        self._block = block or {"type": "thinking"}
        signature = self._block.get("signature")
        self._signature = [signature] if isinstance(signature, str) else []
        self._buffer = SurrogateBuffer()
        self._texts: list[str] = []

    def think(self, piece: str) -> str:
        """Add a piece; return the text that is complete now."""
        if text := self._buffer.feed(piece):
            self._texts.append(text)
        return text

    def sign(self, piece: str) -> None:
        """Add a piece of the signature."""
        self._signature.append(piece)

    def rest(self) -> str:
        """Return the text that was held back."""
        if text := self._buffer.flush():
            self._texts.append(text)
        return text

    def block(self) -> dict[str, Any]:
        """Return the block to send back, {} if it is not a complete one."""
        if self._block.get("type") == "redacted_thinking":
            data = self._block.get("data")
            return {"type": "redacted_thinking", "data": data} if data else {}
        if not (signature := "".join(self._signature)):
            return {}
        text = "".join(self._texts)
        return {"type": "thinking", "thinking": text, "signature": signature}
