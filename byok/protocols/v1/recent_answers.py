"""Recent answers, to which the next requests of a client may refer.

Clients of Responses may send the id of an item instead of the item, and that of a
response instead of the conversation, as the API stores answers unless it is told not
to. byok remembers them in memory only, and not for ever.
"""

from typing import Any

from byok.core.bounded import BoundedMap
from byok.core.wire.json_body import parse_json, write_json

_ROOM = 32 * 2**20  # bytes
_PREVIOUS = "previous_response_id"


class RecentAnswers:
    """Remembers what was used last, by the ids of items and of responses."""

    def __init__(self, room: int = _ROOM) -> None:
        self._kept = BoundedMap[str, bytes](room, lambda _, kept: len(kept))

    def keep(self, name: str, value: Any) -> None:
        """Remember an item, the input of a response (`input_name`), or its output."""
        self._kept[name] = write_json(value)

    def fill_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with what it refers to in place of the references.

        It is the same body if there are none; unknown ones stay.
        """
        items = list_items(body.get("input"))
        filled = [self._find(item) or item for item in items]
        if (before := self._find_conversation(body.get(_PREVIOUS))) is not None:
            rest = {name: value for name, value in body.items() if name != _PREVIOUS}
            return {**rest, "input": [*before, *filled]}
        is_same = all(one is other for one, other in zip(filled, items, strict=True))
        return body if is_same else {**body, "input": filled}

    def _find(self, item: Any) -> Any:
        if isinstance(item, dict) and item.get("type") == "item_reference":
            return self._recall(item.get("id"))
        return None

    def _find_conversation(self, response_id: Any) -> list[Any] | None:
        before = self._recall(input_name(response_id))
        answer = self._recall(response_id)
        return None if before is None or answer is None else [*before, *answer]

    def _recall(self, name: Any) -> Any:
        kept = self._kept.get(name) if isinstance(name, str) else None
        return None if kept is None else parse_json(kept)


def list_items(given: Any) -> list[Any]:
    """Return the items of an `input`: a text is a message of the user."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def input_name(response_id: Any) -> str:
    """Return the name under which the input of a response is remembered."""
    return f"{response_id}/input"
