"""Give an upstream back the provider data of its own tool calls.

That comes before a conversation is kept within its window: it takes room there.
"""

from byok.chat import Origin
from byok.toolcalls.provider_data import (
    has_calls,
    keys_of,
    read_call_data,
    restore_call_data,
)
from byok.upstream.base import Plan, Recovery
from byok.upstream.provider_data_store import ProviderDataStore


class RestoredData(Recovery):
    """Puts the data that the client dropped into requests; no failure asks for it."""

    def __init__(self, store: ProviderDataStore) -> None:
        self._store = store

    async def prepare(self, plan: Plan) -> Plan:
        """Restore what came with the tool calls of the conversation."""
        request = plan.request
        if plan.restored or request.fim is not None or not has_calls(request):
            return plan
        origin = Origin("", plan.name, plan.model)
        raw = await self._store.find(keys_of(request, origin))
        found = {key: data for key in raw if (data := read_call_data(raw[key]))}
        return plan.having(restored=restore_call_data(request, origin, found))
