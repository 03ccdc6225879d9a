"""Reasoning in Chat Completions: in which form it came, and how it is sent back.

Chat Completions has no field for reasoning, and each vendor added another one. The
opaque data of a ThinkingPart tell the form:

    {"field": "reasoning_content"}      the text was in this field of the message
    {"details": [...]}                  all `reasoning_details` of a router
    {"tags": ["<think>", "</think>"]}   the text began the content, between tags
    {"parts": true}                     the text was a thinking part of the content
    {"extra_content": {...}}            a signature beside text (Gemini)

Reasoning goes back only to its origin, in the form in which it came. The facts about a
model say which turns need their reasoning. If they do not:

- `reasoning_details` go back, because routers need them for every model that has some.
- Reasoning from a field goes back beside tool calls: models that think between calls
  forget why they made them, and repeat them.

Chat templates drop the reasoning of earlier turns. byok does not, because then the
prompt would no longer begin with the previous one; an API that accepts no such field
refuses it once (`remedies.py`).

Sources: the API references of DeepSeek, Moonshot, Z.ai, MiniMax, Mistral and
OpenRouter, and Google's page about thought signatures in its compatible API.
"""

from collections.abc import Iterable
from typing import Any

from byok.core.chat import Json, Message, ThinkingPart, data_of
from byok.dialects.answer_reader import tags_of
from byok.dialects.base import Target
from byok.dialects.model_facts import Replay
from byok.dialects.openai_chat.chunks import DETAILS, REASONING_FIELDS
from byok.dialects.presets import Quirks
from byok.dialects.safe_names import NOT_CHECKED, wants_signatures

PARTS = "parts"
_EXTRA = "extra_content"
_ENCRYPTED = "reasoning.encrypted"
_TEXT_FIELDS = ("text", "summary")  # of an entry of `reasoning_details`
# The value of `extra_content` that replaces the missing signature of a tool call.
UNSIGNED = {_EXTRA: {"google": {"thought_signature": NOT_CHECKED}}}


class DetailList:
    """The `reasoning_details` of a message, joined from the pieces in its chunks.

    A router needs the whole list back, unchanged and in its order (OpenRouter's guide
    to reasoning tokens). Pieces of one type and index are one entry: their texts are
    joined, of every other field the last value counts. Entries of the same chunk are
    never joined, and equal encrypted ones are stored once.
    """

    def __init__(self) -> None:
        self._details: list[_Detail] = []
        self._open: dict[tuple[str, str], _Detail] = {}
        self._encrypted: set[tuple[str, str]] = set()
        self._chunk = 0

    def __bool__(self) -> bool:
        return bool(self._details)

    def add(self, entries: Any) -> None:
        """Add the entries of one chunk; other values are ignored."""
        self._chunk += 1
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("type"), str):
                self._add(entry)

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries."""
        return [detail.entry() for detail in self._details]

    def _add(self, entry: dict[str, Any]) -> None:
        index = entry.get("index")
        if entry["type"] == _ENCRYPTED:
            identity = (repr(entry.get("id")), repr(entry.get("data")))
            if identity in self._encrypted:
                return  # some gateways send their last chunk twice
            self._encrypted.add(identity)
        else:
            key = (entry["type"], repr(index))
            detail = self._open.get(key)
            if detail and detail.is_continued_by(entry, self._chunk):
                detail.add(entry, self._chunk)
                return
        detail = _Detail(entry, self._chunk)
        self._details.append(detail)
        self._open[entry["type"], repr(index)] = detail


class _Detail:
    """One entry, whose pieces are joined at the end, in linear time."""

    def __init__(self, entry: dict[str, Any], chunk: int) -> None:
        self._fields = dict(entry)
        self._pieces: dict[str, list[str]] = {}
        self._chunk = -1
        self.add(entry, chunk)

    def is_continued_by(self, entry: dict[str, Any], chunk: int) -> bool:
        """Tell whether an entry of a later chunk is a piece of this one."""
        own, other = self._fields.get("id"), entry.get("id")
        return self._chunk < chunk and (own == other or None in (own, other))

    def add(self, entry: dict[str, Any], chunk: int) -> None:
        self._chunk = chunk
        for name, value in entry.items():
            if name in _TEXT_FIELDS and isinstance(value, str):
                self._pieces.setdefault(name, []).append(value)
            elif value is not None or name not in self._fields:
                self._fields[name] = value

    def entry(self) -> dict[str, Any]:
        joined = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        return {**self._fields, **joined}


def join_details(lists: Iterable[Any]) -> list[dict[str, Any]]:
    """Join the lists of several blocks of one message."""
    whole = DetailList()
    for entries in lists:
        whole.add(entries)
    return whole.entries()


class ReasoningBlock:
    """The data of the current block of reasoning; `is_open` if it has any."""

    def __init__(self) -> None:
        self.is_open = False
        self._form: dict[str, Any] = {}
        self._details = DetailList()

    def add_form(self, name: str) -> None:
        """Record the field of the text, or PARTS for a part of the content."""
        self.is_open = True
        if name == PARTS:
            self._form[PARTS] = True
        else:
            self._form.setdefault("field", name)

    def add_details(self, entries: Any) -> None:
        """Add the `reasoning_details` of one chunk."""
        self._details.add(entries)
        self.is_open = self.is_open or bool(self._details)

    def add_extra(self, extra: Any) -> None:
        """Add the `extra_content` of a delta, if it has a signature."""
        google = extra.get("google") if isinstance(extra, dict) else None
        if isinstance(google, dict) and google.get("thought_signature"):
            self._form["extra_content"] = extra
            self.is_open = True

    def pop_data(self) -> dict[str, Any]:
        """Return the data of the block, and begin the next one."""
        data = self._form
        if self._details:
            data["details"] = self._details.entries()
        self.is_open, self._form, self._details = False, {}, DetailList()
        return data


def _unsigned_detail(call_id: str) -> dict[str, Any]:
    """Return the entry of `reasoning_details` that replaces a missing signature."""
    return {
        "type": _ENCRYPTED,
        "data": NOT_CHECKED,
        "id": call_id,
        "format": "google-gemini-v1",
        "index": 0,
    }


def replay_of(target: Target, quirks: Quirks) -> Replay | None:
    """Return which earlier reasoning goes back; None if it is unknown."""
    replay = target.facts.replay
    return quirks.replay if replay is None else replay


def add_reasoning(
    sent: dict[str, Any], message: Message, target: Target, quirks: Quirks
) -> None:
    """Add the reasoning of an assistant message to `sent`, its encoded form.

    `sent` has `content`, and `tool_calls` if the message has calls.
    """
    replay, calls = replay_of(target, quirks), sent.get("tool_calls")
    if replay is Replay.NEVER:
        return
    is_replayed = replay is Replay.EVERY_TURN or bool(calls)
    thoughts = (part for part in message.parts if isinstance(part, ThinkingPart))
    blocks = [(part, data_of(part)) for part in thoughts]
    details = join_details(data.get("details") for _, data in blocks) if blocks else []
    if details and (is_replayed or replay is None):
        sent[DETAILS] = details
        is_replayed = is_replayed and replay is not None
    elif calls and quirks.details and wants_signatures(target.model):
        sent[DETAILS] = [_unsigned_detail(calls[0]["id"])]
    if is_replayed:
        _add_text(sent, blocks, target, quirks, is_known=replay is not None)
    for _, data in blocks:
        if isinstance(data.get(_EXTRA), dict):
            sent[_EXTRA] = data[_EXTRA]


def _add_text(
    sent: dict[str, Any],
    blocks: list[tuple[ThinkingPart, Json]],
    target: Target,
    quirks: Quirks,
    *,
    is_known: bool,
) -> None:
    """Add reasoning as text: in a field, between tags, or as parts of the content.

    Text between tags is sent only if the model is known to need it (`is_known`).
    """
    known = target.facts.empty_reasoning
    needs_empty = quirks.empty_reasoning if known is None else known
    takes_plain = needs_empty or quirks.replay is not None
    default_field = "reasoning" if quirks.details else "reasoning_content"
    tagged, thoughts = "", list[str]()
    for part, data in blocks:
        name = data.get("field")
        if part.provider_data is None and takes_plain and part.text:
            name = default_field
        if name in REASONING_FIELDS:
            sent[name] = sent.get(name, "") + part.text
        elif is_known and (tags := tags_of(data)):
            tagged += f"{tags[0]}{part.text}{tags[1]}"
        elif data.get(PARTS) is True:
            thoughts.append(part.text)
    if tagged:
        sent["content"] = f"{tagged}{sent['content'] or ''}"
    if thoughts:
        content = _texts(sent["content"]) if sent["content"] else []
        parts = [{"type": "thinking", "thinking": _texts(text)} for text in thoughts]
        sent["content"] = [*parts, *content]
    if needs_empty and not any(sent.get(n) for n in (*REASONING_FIELDS, DETAILS)):
        sent[default_field] = ""


def _texts(content: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}]
