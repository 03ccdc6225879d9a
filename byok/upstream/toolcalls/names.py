"""The names of offered tools, as models spell them.

Models put the names of tools into wrappings that they learned elsewhere: the namespace
of their training (`functions.view`, `default_api.view`), what follows a name in their
chat template (`view<|channel|>commentary`), another case (`View`).
"""

import re
from collections.abc import Mapping

_LONGEST = 256  # characters; longer ones are no names
_BEFORE = (
    *("functions", "function", "tools", "tool", "default_api", "api", "namespace"),
    *("multi_tool_use", "recipient_name", "recipient", "python", "assistant", "call"),
)
_SPACES = re.compile(
    rf"(?:to=)?(?:(?:{'|'.join(_BEFORE)})(?:\.|::?|/))*", re.IGNORECASE
)
_MARKS = re.compile(r"[<({\[|｜\"'`\s].*", re.DOTALL)
_NUMBER = re.compile(r":\d+\Z|\.call\Z")  # Kimi's ids, Llama's built-in tools
_OTHER = re.compile(r"[\s._-]+")


class ToolNames:
    """Finds offered tools by what a model calls them.

    `sent` are the original names by the names that the model was given.
    """

    def __init__(self, sent: Mapping[str, str]) -> None:
        self._sent = sent
        self._folded: dict[str, set[str]] = {}
        for name, original in sent.items():
            self._folded.setdefault(_fold(name), set()).add(original)
        self._beginnings = (
            *(_fold(name) for name in sent),
            *(_fold(word) for word in _BEFORE),
        )

    def find(self, name: str) -> str | None:
        """Return the original name of the only offered tool that a name can mean."""
        if (original := self._sent.get(name)) is not None:
            return original
        if len(name) > _LONGEST:
            return None
        bare = _unwrap(name)
        if (original := self._sent.get(bare)) is not None:
            found = self._folded.get(_fold(name.strip()), set()) | {original}
        else:
            found = {
                tool
                for spelling in (name.strip(), bare)
                for tool in self._folded.get(_fold(spelling), ())
            }
        return found.pop() if len(found) == 1 else None

    def can_begin(self, text: str) -> bool:
        """Tell whether a text may be the beginning of a tool's name."""
        bare = _fold(_SPACES.sub("", text, count=1))
        return any(name.startswith(bare) for name in self._beginnings)


def _unwrap(name: str) -> str:
    """Remove everything around a name that is known to be no part of one."""
    name = _SPACES.sub("", name.strip(" \t\r\n\"'`<"), count=1)
    return _NUMBER.sub("", _MARKS.sub("", name))


def _fold(name: str) -> str:
    return _OTHER.sub("", name.casefold())
