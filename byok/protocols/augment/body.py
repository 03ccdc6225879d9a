"""Tolerant access to the fields of a client's body.

Clients of several years differ: a field may be missing, null, of a similar type, or in
camelCase. Nothing here raises; unusable values count as absent.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

from byok.core.bounded import BoundedMap
from byok.core.chat import Json
from byok.core.wire.json_body import write_json

T = TypeVar("T")
_PARSED_BYTES = 1500  # estimate for the objects that one object becomes when read


def value(body: Json, name: str) -> Any:
    """Return a field, in snake_case or camelCase; None if it is missing or null."""
    result = body.get(name)
    return body.get(_camel(name)) if result is None and "_" in name else result


def text(body: Json, *names: str) -> str:
    """Return the first of the fields that is a string or a number, else ""."""
    for name in names:
        if (field := value(body, name)) is None:
            continue
        if isinstance(field, str):
            return field
        if isinstance(field, (int, float)) and not isinstance(field, bool):
            return str(field)
    return ""


def first_text(body: Json, *names: str) -> str:
    """Return the first of the fields that is a non-empty string, else ""."""
    for name in names:
        if words := text(body, name):
            return words
    return ""


def integer(body: Json, name: str, default: int = 0) -> int:
    """Return a whole number, also one written as a string or a float."""
    raw = value(body, name)
    if raw is None or isinstance(raw, bool):
        return default
    if isinstance(raw, (int, float)) and raw == raw // 1:
        return int(raw)
    if isinstance(raw, str):
        digits = raw.strip()
        if digits.removeprefix("-").isdecimal() and len(digits) < len("9" * 19):
            return int(digits)
    return default


def flag(body: Json, name: str) -> bool:
    """Return whether a field is true, also as 1 or "true"."""
    raw = value(body, name)
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    if isinstance(raw, str):
        return raw.strip().lower() == "true"
    return isinstance(raw, int) and raw == 1


def mapping(body: Json, *names: str) -> dict[str, Any]:
    """Return the first of the fields that is an object, else {}."""
    for name in names:
        candidate = value(body, name)
        if isinstance(candidate, dict):
            return candidate
    return {}


def items(body: Json, *names: str) -> list[Any]:
    """Return the first of the fields that is an array, else []."""
    for name in names:
        candidate = value(body, name)
        if isinstance(candidate, list):
            return candidate
    return []


def objects(body: Json, *names: str) -> list[dict[str, Any]]:
    """Return the objects of the first of the fields that is an array."""
    array = items(body, *names)
    return array and [item for item in array if isinstance(item, dict)]


def strings(body: Json, *names: str) -> list[str]:
    """Return the strings of all the fields together, in order, each once."""
    all_items = [item for name in names for item in items(body, name)]
    return all_items and list(dict.fromkeys(i for i in all_items if isinstance(i, str)))


@cache  # only for names in byok's code, so it cannot grow without limit
def _camel(name: str) -> str:
    head, *others = name.split("_")
    return head + "".join(word.capitalize() for word in others)


class CachedReader(Generic[T]):
    """Reads objects that clients repeat in every request: tools, items of a history.

    Results are cached by the bytes of the object, so an edited object is read again.
    Several threads may use it: at worst, two read the same object.
    """

    def __init__(
        self,
        read: Callable[[Json], T],
        room: int,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """Cache results of about `room` bytes, while `has_room` says there is memory.

        The least recently used ones are evicted first.
        """
        self._read = read
        self._has_room = has_room
        self._cache = BoundedMap[bytes, T](room, _entry_size)

    def __call__(self, item: Json) -> T:
        """Return the result of `read` for an object, on which alone it must depend."""
        raw = write_json(item)
        if (result := self._cache.get(raw)) is None:
            result = self._read(item)
            if self._has_room():
                self._cache[raw] = result
            else:
                self.forget()
        return result

    def forget(self) -> None:
        """Clear the cache."""
        self._cache.clear()


def _entry_size(raw: bytes, _: object) -> int:
    """Return an upper bound of the bytes of an entry: key, strings and objects.

    In a string with an emoji, Python stores every character in four bytes.
    """
    return (2 if raw.isascii() else 5) * len(raw) + _PARSED_BYTES
