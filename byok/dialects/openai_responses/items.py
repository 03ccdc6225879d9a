"""Items of Responses: what a call, a reasoning item or a message carries."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from byok.chat import Json
from byok.dialects.safe_names import Aliases, IdRule

# Items that ask the client to act, though byok offers only functions. They come where
# the user adds tools of the API.
_FOREIGN = {
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "mcp_approval_request": "mcp",
    "shell_call": "shell",
}
# Fields of a reasoning item that are not sent back: its id names an item that is not
# stored, and the API refuses the status of an input item.
_NOT_SENT = frozenset({"id", "status"})


def reasoning_data(item: Json) -> dict[str, Any]:
    """Return what must come back of a reasoning item, {} where it is only a summary."""
    if not (item.get("encrypted_content") or item.get("content")):
        return {}
    return {key: v for key, v in item.items() if key not in _NOT_SENT and v is not None}


def reasoning_text(item: Json) -> str:
    """Return the text of a reasoning item: its summary, else the reasoning itself."""
    return join_texts(item.get("summary")) or join_texts(item.get("content"))


def join_texts(parts: Any) -> str:
    """Return the texts of parts, one below the other."""
    if not isinstance(parts, list):
        return ""
    found = (read_text(part, "text") for part in parts if isinstance(part, dict))
    return "\n".join(filter(None, found))


def message_text(item: Json) -> str:
    """Return the text or the refusal that a message consists of."""
    content = item.get("content")
    parts = content if isinstance(content, list) else ()
    return "".join(
        read_text(part, "text") or read_text(part, "refusal")
        for part in parts
        if isinstance(part, dict)
    )


def citations(item: Json) -> list[tuple[str, str]]:
    """Return the URL and the title of each source that a message names."""
    content = item.get("content")
    return [
        (url, read_text(note, "title"))
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict)
        for note in (part.get("annotations") or ())
        if isinstance(note, dict) and (url := read_text(note, "url"))
    ]


def foreign_tool(item: Json) -> str:
    """Return the name of the tool that the client would have to run, or ""."""
    kind = read_text(item, "type")
    if kind == "custom_tool_call":
        return read_text(item, "name") or "custom"
    if kind == "shell_call":
        place = item.get("environment")
        if isinstance(place, dict) and place.get("type") != "local":
            return ""  # it runs at the vendor
    if kind == "tool_search_call":
        return "tool_search" if item.get("execution") == "client" else ""
    return _FOREIGN.get(kind, "")


def read_text(item: Json, name: str) -> str:
    """Return a field that is a string, "" for anything else."""
    value = item.get(name)
    return value if isinstance(value, str) else ""


# Ids of tool calls: this API pairs calls and results by them in the whole input.
#
# Some models number the calls of each turn anew, so an id may stand for several calls
# in a conversation. Each but the first gets an id of its own.


_RULE = IdRule(64)


class CallIds:
    """The ids of one request, in the order of its calls and results."""

    def __init__(self) -> None:
        self._aliases = Aliases(_RULE.spell)
        self._calls: Counter[str] = Counter()
        self._originals: dict[str, str] = {}

    def call(self, call_id: str) -> str:
        """Return the id to send for the next call."""
        self._calls[call_id] += 1
        sent = self.result(call_id)
        self._originals[sent] = call_id
        return sent

    def result(self, call_id: str) -> str:
        """Return the id to send for a result: that of the latest call."""
        number = self._calls[call_id]
        own = f"{call_id}\0{number}" if number > 1 else call_id  # as no id is
        return self._aliases.alias(own)

    @property
    def originals(self) -> Mapping[str, str]:
        """The originals, by the ids to send so far."""
        return self._originals
