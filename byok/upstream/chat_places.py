"""Which upstreams the chats of each window of an editor went to.

byok's own questions about code go nowhere else (`question_routes.py`): who chooses a
model on this machine in one window wants the code of that window to stay here, whatever
the default model is.
"""

from byok.bounded import BoundedMap

_MOST = 256


class ChatPlaces:
    """The upstreams that were chosen for chats since the start, by window.

    Windows are known by what their client calls them. The least recently used of them
    are forgotten.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._seen = BoundedMap[str, frozenset[str]](most)

    def note(self, window: str, upstream: str) -> None:
        """Remember that a chat of a window goes to an upstream; "" is no window."""
        if window:
            self._seen[window] = (self._seen.get(window) or frozenset()) | {upstream}

    def find(self, window: str) -> frozenset[str] | None:
        """Return the upstreams of a window's chats; None if it had no chat yet."""
        return self._seen.get(window)
