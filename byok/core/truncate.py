"""Truncate texts: keep both ends of one, share a limit fairly among many."""

from collections.abc import Sequence

LEFT_OUT = "\n[… the middle was left out to save room …]\n"
_TAIL = 500  # characters; the last lines of a result hold the id of the whole of it


def keep_ends(text: str, head: int, tail: int) -> str:
    """Keep both ends of a text; one that would not become shorter stays."""
    if len(text) <= head + len(LEFT_OUT) + tail:
        return text
    return text[:head] + LEFT_OUT + text[len(text) - tail :]


def truncate_middle(text: str, limit: int) -> str:
    """Cut a text in the middle to about `limit` characters."""
    tail = min(_TAIL, limit // 3)
    return keep_ends(text, max(limit - tail - len(LEFT_OUT), 0), tail)


def fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the cap with which all sizes fit into the room; small ones stay whole."""
    left = len(sizes)
    for size in sorted(sizes):
        if size * left > room:
            return max(room, 0) // left
        room -= size
        left -= 1
    return max(sizes, default=0)
