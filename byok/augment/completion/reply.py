"""The reply of a completion: one item, or none."""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.augment.completion.cursor import Cursor
from byok.augment.completion.cut import Cutter
from byok.augment.models import COMPLETION_TIMEOUT_MS, PREFIX_CHARS, SUFFIX_CHARS
from byok.augment.reply_job import ReplyFacts
from byok.chat import Json
from byok.errors import ByokError
from byok.events import Finish, FinishReason, StreamEvent, TextDelta


class CompletionObject:
    """ObjectReply with the text at the cursor; a failure is a reply without items.

    An error would leave the editor's status bar in a failed state. The retrieval facts
    may arrive while the model answers; whoever writes the object last sets them.
    """

    omitted_tools = ()

    def __init__(self, cutter: Cutter, cursor: Cursor, facts: ReplyFacts) -> None:
        self._cutter = cutter
        self.facts = facts
        self._finish: FinishReason | None = None
        self.cursor = cursor
        self.text = ""  # that was given

    @property
    def enough(self) -> bool:
        """Whether the model need not continue."""
        return self._cutter.enough

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the text; nothing is written yet."""
        match event:
            case TextDelta(text=text):
                self._cutter.feed(text)
            case Finish(reason=reason):
                self._finish = reason
            case _:
                pass
        return ()

    def flush(self) -> Iterator[Json]:
        """Return the text that fits; if a limit cut it, its complete lines."""
        lines = self._cutter.text(whole=False)
        if self._finish is FinishReason.CONTENT_FILTER:
            yield self.write("")
        elif self._finish is FinishReason.LENGTH and lines:
            yield self.write(lines)
        else:
            yield self.write(self._cutter.text(whole=True))

    def in_time(self) -> Json:
        """Return the complete lines that arrived so far."""
        return self.write(self._cutter.text(whole=False))

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return no item."""
        del error
        return self.write("")

    def write(self, text: str) -> dict[str, Any]:
        """Write the object for a text; "" is no item."""
        self.text = text
        item = {"text": text, "suffix_replacement_text": "", "skipped_suffix": ""}
        return {
            "completion_items": [item] if text else [],
            "text": text,  # for old readers
            **self.facts.fields,
            "unknown_memory_names": list(self.facts.unknown),
            "suggested_prefix_char_count": PREFIX_CHARS,
            "suggested_suffix_char_count": SUFFIX_CHARS,
            "completion_timeout_ms": COMPLETION_TIMEOUT_MS,
        }
