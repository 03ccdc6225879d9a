"""The trial protocol: reading the answer, one JSON object a line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from byok.core.chat import Origin
from byok.core.errors import UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)

_FINISH = {
    "end": FinishReason.STOP,
    "calls": FinishReason.TOOL_CALLS,
    "full": FinishReason.LENGTH,
}


class TrialAnswer:
    """Stage[Any, StreamEvent]; see Codec.reader."""

    def __init__(self, tool_names: Mapping[str, str], _: Origin) -> None:
        self._tool_names = tool_names
        self._is_over = False

    def feed(self, line: Any, /) -> Iterator[StreamEvent]:
        """Read one line."""
        match line:
            case {"problem": str(problem)}:
                raise UpstreamGarbled(f"it broke off its answer: {problem}")
            case {"text": str(text)}:
                yield TextDelta(text)
            case {"thought": str(thought)}:
                yield ThinkingDelta(thought)
            case {"call": {"place": int(place), "arguments": str(more)}}:
                yield ToolCallDelta(place, arguments=more)
            case {"call": {"place": int(place), "id": str(id_), "name": str(name)}}:
                yield ToolCallDelta(place, id_, self._tool_names.get(name, name))
            case {"over": str(reason), "read": int(read), "written": int(written)}:
                self._is_over = True
                yield Usage(read, written)
                yield Finish(_FINISH.get(reason, FinishReason.STOP))
            case _:
                pass  # a later version of the protocol may say more

    def flush(self) -> Iterable[StreamEvent]:
        """End the answer; one without any word that it is over was cut."""
        if not self._is_over:
            raise UpstreamGarbled(
                "its answer broke off before the end.",
                code="upstream_cut",
                retryable=True,
            )
        return ()
