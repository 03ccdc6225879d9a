"""The form in which reasoning came, so that it can be sent back in the same form.

Chat Completions has no field for reasoning, and each vendor added another one. The
opaque data of a ThinkingPart says which it was:

    {"field": "reasoning_content"}      the text was in this field of the message
    {"details": [...]}                  `reasoning_details`, complete
    {"tags": ["<think>", "</think>"]}   the text began the content, between these
    {"parts": true}                     the text was a thinking part of the content
    {"extra_content": {...}}            a signature that no tool call has (Gemini)

Sources: the API references of DeepSeek, Moonshot, Z.ai, MiniMax, Mistral and
OpenRouter, and Google's page about thought signatures in its compatible API.
"""

from typing import Any

from byok.dialects.openai_chat.reasoning_details import DetailList

PARTS = "parts"


class ReasoningBlock:
    """The block of reasoning that is being read; `is_open` until its data is taken."""

    def __init__(self) -> None:
        self.is_open = False
        self._form: dict[str, Any] = {}
        self._details = DetailList()

    def note_form(self, name: str) -> None:
        """Note the field that the text came in, or PARTS for a part of the content."""
        self.is_open = True
        if name == PARTS:
            self._form[PARTS] = True
        else:
            self._form.setdefault("field", name)

    def add_details(self, entries: Any) -> None:
        """Add `reasoning_details` of one chunk."""
        self._details.add(entries)
        self.is_open = self.is_open or bool(self._details)

    def add_extra(self, extra: Any) -> None:
        """Add `extra_content` of a delta, where it has a signature."""
        google = extra.get("google") if isinstance(extra, dict) else None
        if isinstance(google, dict) and google.get("thought_signature"):
            self._form["extra_content"] = extra
            self.is_open = True

    def take(self) -> dict[str, Any]:
        """Return the data of the block, and begin the next one."""
        data = self._form
        if self._details:
            data["details"] = self._details.entries()
        self.is_open, self._form, self._details = False, {}, DetailList()
        return data
