"""`reasoning_details`: the blocks of a model's reasoning as routers pass them on.

A router such as OpenRouter wants the whole list back, unchanged and in its order. In a
stream each chunk has pieces of entries. Source: OpenRouter's guide to reasoning tokens.
"""

from collections.abc import Iterable
from typing import Any

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
