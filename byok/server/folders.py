"""Remembers each client's open folders, for its requests that do not name them."""

from collections.abc import Mapping

from byok.augment.chat_request import open_folders
from byok.augment.retrieval import with_folders
from byok.bounded import BoundedMap
from byok.chat import Json

_HEADER = "X-Request-Session-Id"  # one for each window of an editor
_MOST = 256
_LONGEST = 100


def window_of(headers: Mapping[str, str]) -> str:
    """Return what a client calls its window, "" if it names none."""
    return headers.get(_HEADER, "")[:_LONGEST]


class OpenFolders:
    """The folders that each client's last chat named; the oldest are forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._told = BoundedMap[str, list[str]](most)

    def note(self, headers: Mapping[str, str], body: Json) -> None:
        """Remember the open folders that a chat names, if any."""
        session = window_of(headers)
        folders = open_folders(body) if session else []
        if folders:
            self._told[session] = folders

    def add_folders(self, headers: Mapping[str, str], body: Json) -> Json:
        """Return a retrieval body with the open folders of its client."""
        known = self._told.get(window_of(headers))
        return with_folders(body, known) if known else body
