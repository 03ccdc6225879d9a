"""An answer as one object, made by the stage that also writes it in pieces."""

from collections.abc import Iterable, Iterator, Sequence

from byok.chat import Json
from byok.clients.block_reply import BlockReply
from byok.errors import ByokError
from byok.events import StreamEvent


class WholeReply:
    """Stage[StreamEvent, Json] whose flush gives the answer as one object."""

    def __init__(self, pieces: BlockReply) -> None:
        self._pieces = pieces

    @property
    def omitted_tools(self) -> Sequence[str]:
        """The calls beyond the first one that the client did not want."""
        return self._pieces.omitted_tools

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect an event."""
        self._pieces.feed(event)
        return ()

    def flush(self) -> Iterator[Json]:
        """Give the object."""
        self._pieces.flush()
        yield self._pieces.whole()

    def fail_whole(self, error: ByokError, /) -> Json:
        """Raise the error: these clients get a status."""
        raise error
