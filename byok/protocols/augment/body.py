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
_OBJECTS = 1500  # bytes of the objects that are read of one


def value(body: Json, name: str) -> Any:
    """Return a field in either spelling; None if it is not present, or null."""
    found = body.get(name)
    return body.get(_camel(name)) if found is None and "_" in name else found


def text(body: Json, *names: str) -> str:
    """Return the first of the fields that is a string or a number, else ""."""
    for name in names:
        if (found := value(body, name)) is None:
            continue
        if isinstance(found, str):
            return found
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return str(found)
    return ""


def first_text(body: Json, *names: str) -> str:
    """Return the first of the fields that is a non-empty string, else ""."""
    for name in names:
        if found := text(body, name):
            return found
    return ""


def integer(body: Json, name: str, default: int = 0) -> int:
    """Return a whole number, also one written as a string or a float."""
    found = value(body, name)
    if found is None or isinstance(found, bool):
        return default
    if isinstance(found, (int, float)) and found == found // 1:
        return int(found)
    if isinstance(found, str):
        digits = found.strip()
        if digits.removeprefix("-").isdecimal() and len(digits) < len("9" * 19):
            return int(digits)
    return default


def flag(body: Json, name: str) -> bool:
    """Return whether a field is true, also as 1 or "true"."""
    found = value(body, name)
    if found is None or isinstance(found, bool):
        return bool(found)
    if isinstance(found, str):
        return found.strip().lower() == "true"
    return isinstance(found, int) and found == 1


def mapping(body: Json, *names: str) -> dict[str, Any]:
    """Return the first of the fields that is an object, else {}."""
    for name in names:
        found = value(body, name)
        if isinstance(found, dict):
            return found
    return {}


def items(body: Json, *names: str) -> list[Any]:
    """Return the first of the fields that is an array, else []."""
    for name in names:
        found = value(body, name)
        if isinstance(found, list):
            return found
    return []


def objects(body: Json, *names: str) -> list[dict[str, Any]]:
    """Return the objects of the first of the fields that is an array."""
    found = items(body, *names)
    return found and [item for item in found if isinstance(item, dict)]


def strings(body: Json, *names: str) -> list[str]:
    """Return the strings of all the fields together, in order, each once."""
    found = [item for name in names for item in items(body, name)]
    return found and list(dict.fromkeys(i for i in found if isinstance(i, str)))


@cache  # the names are those in byok's own code
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class KeptReadings(Generic[T]):
    """Reads objects that clients send again in every request: tools, a whole history.

    What was read is kept by the bytes of its object, so one that was edited is read
    anew. Several threads may use it: at worst, two read the same.
    """

    def __init__(
        self,
        read: Callable[[Json], T],
        room: int,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """Keep what takes about `room` bytes, while the process `has_room`.

        What was not used for longest goes first.
        """
        self._read = read
        self._has_room = has_room
        self._kept = BoundedMap[bytes, T](room, _weigh)

    def __call__(self, given: Json) -> T:
        """Return what `read` returns for an object; it must depend on nothing else."""
        raw = write_json(given)
        if (kept := self._kept.get(raw)) is None:
            kept = self._read(given)
            if self._has_room():
                self._kept[raw] = kept
            else:
                self.forget()
        return kept

    def forget(self) -> None:
        """Forget everything, which costs time only."""
        self._kept.clear()


def _weigh(raw: bytes, _: object) -> int:
    """Estimate the bytes of an entry at most: its key, its strings, and its objects.

    One emoji makes four bytes of each character of its string.
    """
    return (2 if raw.isascii() else 5) * len(raw) + _OBJECTS
