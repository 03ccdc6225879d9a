"""What users are told about windows, once per conversation and model.

A server that cuts a prompt without a word answers as if the user had never named the
task, or as if there were no tools. The only sign is its count of the prompt's tokens.
"""

from byok.bounded import BoundedMap
from byok.errors import ContextLengthExceeded
from byok.events import Notice

_MOST_TOLD = 1000
_MOST_OF_TOOLS = 0.6  # of a window, from where no conversation fits beside them
_FEWER_TOOLS = (
    "Set compact_tools = true under [chat], which describes tools more briefly, or "
    "switch off MCP servers that you do not need."
)
GUESSED = Notice(
    "The upstream rejected this conversation as too long without naming its limit, so "
    "byok shortened its oldest part by an estimate. Set context_window for this "
    "upstream."
)


class WindowNotices:
    """The notices for one upstream; `cure` says what helps against a small window.

    A conversation is named by its id; None means that no user would see the notice.
    """

    def __init__(self, cure: str) -> None:
        self._cure = cure
        self._told = BoundedMap[tuple[str, str], bool](_MOST_TOLD)

    def note_cut(
        self, conversation: str | None, model: str, tokens: int, estimate: int
    ) -> Notice | None:
        """Return the notice that a server read only `tokens` of a longer prompt."""
        if not self._is_first(conversation, model):
            return None
        return Notice(
            f"The model has read only {tokens:,} of about {estimate:,} tokens: its "
            "server cut off the beginning of this conversation without a word, and "
            f"perhaps the task or the tools. {self._cure}"
        )

    def note_instructions(
        self, conversation: str | None, model: str, window: int
    ) -> Notice | None:
        """Return the notice that the middle of the instructions was left out."""
        if not self._is_first(conversation, model):
            return None
        return Notice(
            f"The instructions are too long for this model's window of {window:,} "
            "tokens, so byok left out their middle: shorten guidelines and rules. "
            f"{self._cure}"
        )

    def note_no_room(
        self, conversation: str | None, model: str, window: int, estimate: int
    ) -> Notice | None:
        """Return the notice that instructions and tools alone exceed a window."""
        if not self._is_first(conversation, model):
            return None
        return Notice(
            f"The instructions and tools alone have about {estimate:,} tokens, which "
            f"leaves no room in this model's window of {window:,}. {self._cure} "
            f"{_FEWER_TOOLS}"
        )

    def explain_tools(
        self, error: ContextLengthExceeded, window: int, tools: int, count: int
    ) -> ContextLengthExceeded:
        """Return the refusal of a prompt whose tools alone fill most of the window.

        `window` and `tools` are in tokens, `count` is the number of tools. Others stay.
        """
        if not window or tools < window * _MOST_OF_TOOLS:
            return error
        return error.with_hint(
            f"The {count} tools alone have about {tools:,} tokens, and this model's "
            f"window has {window:,}. {_FEWER_TOOLS} {self._cure}"
        )

    def _is_first(self, conversation: str | None, model: str) -> bool:
        if conversation is None:
            return False
        key = (conversation, model)
        was_told = self._told.get(key)
        self._told[key] = True
        return not was_told
