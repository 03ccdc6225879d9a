"""The assistant's turns as input items: reasoning, messages and function calls.

A reasoning item goes back unchanged, directly before what it led to; alone it would be
refused. Items have no ids: they name what the vendor has stored, and nothing is stored
(OpenAI's Codex sends none either).
"""

from collections.abc import Iterable
from typing import Any

from byok.chat import Json, Part, TextPart, ThinkingPart, ToolCall
from byok.dialects.base import Target
from byok.dialects.model_facts import Replay
from byok.dialects.openai_responses.call_ids import CallIds
from byok.dialects.safe_names import Aliases

# The last two are those of OpenRouter, for models of other vendors.
_SEALS = ("encrypted_content", "signature", "format")
_PHASES = ("commentary", "final_answer")


def assistant_items(
    parts: Iterable[Part], target: Target, names: Aliases, ids: CallIds
) -> list[dict[str, Any]]:
    """Return the items of one turn, in the order of its parts."""
    items: list[dict[str, Any]] = []
    reasoning: list[dict[str, Any]] = []  # waits for what it led to
    phase = ""
    for part in parts:
        match part:
            case ThinkingPart(provider_data=data) if data is not None:
                own = data.data_for(target.origin)
                reasoning += _reasoning_item(own.get("item"), target)
                phase = own["phase"] if own.get("phase") in _PHASES else phase
            case TextPart(text=text) if text:
                items += reasoning
                message = {"type": "message", "role": "assistant", "content": text}
                items.append({**message, "phase": phase} if phase else message)
                reasoning, phase = [], ""
            case ToolCall():
                if phase and items and items[-1].get("role"):
                    # its data was restored beside the call
                    items[-1].setdefault("phase", phase)
                items += reasoning
                items.append(_call(part, names, ids))
                reasoning, phase = [], ""
            case _:
                pass
    return items


def _call(call: ToolCall, names: Aliases, ids: CallIds) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": ids.call(call.id),
        "name": names.alias(call.name),
        "arguments": call.arguments,
    }


def _reasoning_item(item: Any, target: Target) -> list[dict[str, Any]]:
    """Return an item that this model wrote, unless it is damaged or not wanted.

    Without the encrypted form, it is text that only some models want back.
    """
    if not isinstance(item, dict) or item.get("type") != "reasoning":
        return []
    sealed = item.get("encrypted_content")
    if sealed is not None and not isinstance(sealed, str):
        return []
    if not sealed and target.facts.replay in (None, Replay.NEVER):
        return []
    summary, content = item.get("summary", []), item.get("content", [])
    if not _are_texts(summary) or not _are_texts(content):
        return []
    sent: dict[str, Any] = {"type": "reasoning", "summary": _copy_texts(summary)}
    if "content" in item:
        sent["content"] = _copy_texts(content)
    seals = {name: item.get(name) for name in _SEALS}
    return [sent | {k: v for k, v in seals.items() if v and isinstance(v, str)}]


def _copy_texts(parts: list[Json]) -> list[Json]:
    return [{"type": part["type"], "text": part["text"]} for part in parts]


def _are_texts(parts: Any) -> bool:
    return isinstance(parts, list) and all(map(_is_text, parts))


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and all(
        isinstance(part.get(name), str) for name in ("type", "text")
    )
