"""Reasoning in Chat Completions: how it came, and how it is sent back.

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

from collections.abc import Iterable
from typing import Any

from byok.core.chat import Json, Message, ThinkingPart, data_of
from byok.dialects.answer_reader import tags_of
from byok.dialects.base import Target
from byok.dialects.model_facts import Replay
from byok.dialects.openai_chat.chunks import DETAILS, REASONING_FIELDS
from byok.dialects.presets import Quirks
from byok.dialects.safe_names import NOT_CHECKED, wants_signatures

# `reasoning_details`: the blocks of a model's reasoning as routers pass them on.
#
# A router such as OpenRouter wants the whole list back, unchanged and in its order. In
# a stream each chunk has pieces of entries. Source: OpenRouter's guide to reasoning
# tokens.


_TEXTS = ("text", "summary")
_ENCRYPTED = "reasoning.encrypted"


class DetailList:
    """Joins the pieces of one list: an entry for each type and index.

    Texts are continued; of every other field the last value counts. Entries of the same
    chunk are never joined, and encrypted ones are only kept once each.
    """

    def __init__(self) -> None:
        self._details: list[_Detail] = []
        self._open: dict[tuple[str, str], _Detail] = {}
        self._encrypted: set[tuple[str, str]] = set()
        self._chunk = 0

    def __bool__(self) -> bool:
        return bool(self._details)

    def add(self, entries: Any) -> None:
        """Add the entries of one chunk; what cannot be an entry is ignored."""
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
            mark = (repr(entry.get("id")), repr(entry.get("data")))
            if mark in self._encrypted:
                return  # a gateway that sends its last chunk twice
            self._encrypted.add(mark)
        else:
            key = (entry["type"], repr(index))
            begun = self._open.get(key)
            if begun and begun.continues(entry, self._chunk):
                begun.add(entry, self._chunk)
                return
        detail = _Detail(entry, self._chunk)
        self._details.append(detail)
        self._open[entry["type"], repr(index)] = detail


class _Detail:
    """One entry; the pieces of its text are joined at the end, which is linear."""

    def __init__(self, entry: dict[str, Any], chunk: int) -> None:
        self._fields = dict(entry)
        self._pieces: dict[str, list[str]] = {}
        self._chunk = -1
        self.add(entry, chunk)

    def continues(self, entry: dict[str, Any], chunk: int) -> bool:
        """Tell whether an entry of a later chunk is a piece of this one."""
        own, other = self._fields.get("id"), entry.get("id")
        return self._chunk < chunk and (own == other or None in (own, other))

    def add(self, entry: dict[str, Any], chunk: int) -> None:
        self._chunk = chunk
        for name, value in entry.items():
            if name in _TEXTS and isinstance(value, str):
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


# Gemini's signatures of tool calls in Chat Completions: what replaces missing ones.
#
# It stands beside the call, or as an entry of `reasoning_details` where a router passes
# signatures on in these.


_EXTRA = "extra_content"
UNSIGNED = {_EXTRA: {"google": {"thought_signature": NOT_CHECKED}}}


def _unsigned_detail(call_id: str) -> dict[str, Any]:
    return {
        "type": _ENCRYPTED,
        "data": NOT_CHECKED,
        "id": call_id,
        "format": "google-gemini-v1",
        "index": 0,
    }


# Earlier reasoning in a request: what goes back to the model, and in which form.
#
# Reasoning goes back only to its origin, in the form in which it came (`reasoning.py`).
# Which turns need theirs is a fact of the model. Where it is unknown,
# `reasoning_details` go back, because routers want them for every model that has some,
# and reasoning that came in a field goes back beside tool calls: models that think
# between calls forget why they made them, and repeat them. Templates leave out what is
# of an earlier turn. byok does not, because the prompt would no longer begin as the one
# before; an API that takes no such field says so once (`remedies.py`).


def replay_of(target: Target, quirks: Quirks) -> Replay | None:
    """Return which earlier reasoning goes back; None where nobody knows."""
    known = target.facts.replay
    return quirks.replay if known is None else known


def add_reasoning(
    sent: dict[str, Any], message: Message, target: Target, quirks: Quirks
) -> None:
    """Add the reasoning of an assistant message to what is sent of it.

    `sent` has `content`, and `tool_calls` where the message has calls.
    """
    replay, calls = replay_of(target, quirks), sent.get("tool_calls")
    if replay is Replay.NEVER:
        return
    wanted = replay is Replay.EVERY_TURN or bool(calls)
    thoughts = (part for part in message.parts if isinstance(part, ThinkingPart))
    blocks = [(part, data_of(part)) for part in thoughts]
    details = join_details(data.get("details") for _, data in blocks) if blocks else []
    if details and (wanted or replay is None):
        sent[DETAILS] = details
        wanted = wanted and replay is not None
    elif calls and quirks.details and wants_signatures(target.model):
        sent[DETAILS] = [_unsigned_detail(calls[0]["id"])]
    if wanted:
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

    Between tags it is sent only if the model is known to want it.
    """
    known = target.facts.empty_reasoning
    empty = quirks.empty_reasoning if known is None else known
    plain = empty or quirks.replay is not None
    usual = "reasoning" if quirks.details else "reasoning_content"
    before, thoughts = "", list[str]()
    for part, data in blocks:
        name = data.get("field")
        if part.provider_data is None and plain and part.text:
            name = usual
        if name in REASONING_FIELDS:
            sent[name] = sent.get(name, "") + part.text
        elif is_known and (tags := tags_of(data)):
            before += f"{tags[0]}{part.text}{tags[1]}"
        elif data.get(PARTS) is True:
            thoughts.append(part.text)
    if before:
        sent["content"] = f"{before}{sent['content'] or ''}"
    if thoughts:
        said = _texts(sent["content"]) if sent["content"] else []
        parts = [{"type": "thinking", "thinking": _texts(one)} for one in thoughts]
        sent["content"] = [*parts, *said]
    if empty and not any(sent.get(name) for name in (*REASONING_FIELDS, DETAILS)):
        sent[usual] = ""


def _texts(content: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}]
