"""Items of recent answers, to which the next requests of a client may refer.

Clients of Responses may send the id of an item instead of the item, as the API stores
answers unless it is told not to. byok remembers them in memory only, and not for ever.
"""

from typing import Any

from byok.core.bounded import BoundedMap
from byok.core.chat import Json
from byok.core.wire.json_body import parse_json, write_json

_ROOM = 32 * 2**20  # bytes
_REFERENCE = "item_reference"


class RecentItems:
    """Remembers the items that were used last, by their ids."""

    def __init__(self, room: int = _ROOM) -> None:
        self._items = BoundedMap[str, bytes](room, lambda _, item: len(item))

    def keep(self, item: Json) -> None:
        """Remember an item."""
        self._items[item["id"]] = write_json(item)

    def fill_in(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the items in place of references to them.

        It is the same body if there is none; an unknown reference stays.
        """
        given = body.get("input")
        if not isinstance(given, list):
            return body
        filled = [self._find(item) or item for item in given]
        is_same = all(one is other for one, other in zip(filled, given, strict=True))
        return body if is_same else {**body, "input": filled}

    def _find(self, item: Any) -> Any:
        if not isinstance(item, dict) or item.get("type") != _REFERENCE:
            return None
        named = item.get("id")
        kept = self._items.get(named) if isinstance(named, str) else None
        return kept and parse_json(kept)
