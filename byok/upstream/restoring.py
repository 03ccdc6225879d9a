"""An upstream that gets back the provider data of its own tool calls.

It stands in front of what keeps a conversation within the window: what is added here
takes room there.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from byok.chat import ChatRequest, Origin
from byok.events import StreamEvent
from byok.toolcalls.provider_data import (
    has_calls,
    keys_of,
    read_call_data,
    restore_call_data,
)
from byok.upstream.base import Upstream, UpstreamLayer
from byok.upstream.provider_data_store import ProviderDataStore


class RestoringUpstream(UpstreamLayer):
    """An upstream whose requests contain the data that the client dropped."""

    def __init__(self, inner: Upstream, store: ProviderDataStore) -> None:
        super().__init__(inner)
        self._store = store

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        if chat.fim is not None or not has_calls(chat):
            return self._inner.stream(chat, model)
        return self._restoring(chat, model)

    async def _restoring(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        origin = Origin("", self.name, model)
        raw = await self._store.find(keys_of(chat, origin))
        found = {key: data for key in raw if (data := read_call_data(raw[key]))}
        stream = self._inner.stream(restore_call_data(chat, origin, found), model)
        del chat  # it may be large
        async with aclosing(stream) as batches:
            async for batch in batches:
                yield batch
