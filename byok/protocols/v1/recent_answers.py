"""Recent answers, to which the next requests of a client may refer.

Clients of Responses may send the id of an item instead of the item, and the id of a
response instead of the conversation, because the API stores answers by default. byok
caches them in memory only.
"""

from typing import Any

from byok.core.bounded import BoundedMap
from byok.core.wire.json_body import parse_json, write_json

_MAX_BYTES = 32 * 2**20
_PREVIOUS = "previous_response_id"


class RecentAnswers:
    """A cache of the most recently used items and responses, by their ids."""

    def __init__(self, room: int = _MAX_BYTES) -> None:
        self._cache = BoundedMap[str, bytes](room, lambda _, raw: len(raw))

    def keep(self, name: str, value: Any) -> None:
        """Store an item, the input of a response (`input_name`), or its output."""
        self._cache[name] = write_json(value)

    def fill_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body whose references are replaced by their targets.

        Without references it is the same body. Unknown references stay.
        """
        items = list_items(body.get("input"))
        filled = [self._find(item) or item for item in items]
        previous = body.get(_PREVIOUS)
        question, answer = map(self._look_up, (input_name(previous), previous))
        if question is not None and answer is not None:
            others = {name: value for name, value in body.items() if name != _PREVIOUS}
            return {**others, "input": [*question, *answer, *filled]}
        is_same = all(new is old for new, old in zip(filled, items, strict=True))
        return body if is_same else {**body, "input": filled}

    def _find(self, item: Any) -> Any:
        if isinstance(item, dict) and item.get("type") == "item_reference":
            return self._look_up(item.get("id"))
        return None

    def _look_up(self, name: Any) -> Any:
        raw = self._cache.get(name) if isinstance(name, str) else None
        return None if raw is None else parse_json(raw)


def list_items(value: Any) -> list[Any]:
    """Return the items of an `input`; a string becomes a message of the user."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return value if isinstance(value, list) else []


def input_name(response_id: Any) -> str:
    """Return the name under which the input of a response is stored."""
    return f"{response_id}/input"
