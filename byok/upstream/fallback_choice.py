"""Which models stand behind a chosen one, by what it is asked for.

Code goes only to upstreams that the user chose or put into the list. Who chooses a
model on this machine may do so to keep code here; it is replaced by one elsewhere only
if the list has it too, so that the user has seen both together.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from byok.model_ids import split_id
from byok.purposes import Purpose
from byok.upstream.fallback import FallbackUpstream
from byok.upstream.fallback_memory import FallbackMemory
from byok.upstream.refusing import RefusingUpstream
from byok.upstream.router import Destination, Router


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Puts the user's other models behind a chosen one.

    `named` gives the ids of the models for a purpose, `local` are the names of the
    upstreams on this machine.
    """

    router: Router
    named: Callable[[Purpose], Sequence[str]]
    local: Collection[str]
    memory: FallbackMemory

    async def prepare(
        self, chosen: Destination, purpose: Purpose, conversation: str = ""
    ) -> Destination:
        """Return a destination that falls back, or the chosen one if none is named."""
        others = self._others(chosen, self.named(purpose))
        if not others:
            return chosen
        chain = [chosen, *[await self.router.choose(model) for model in others]]
        topic = (purpose, conversation, chosen.model_id)
        upstream = FallbackUpstream(chain, self.memory, topic)
        return Destination(upstream, upstream.now.model, chosen.instead_of)

    def _others(self, chosen: Destination, named: Sequence[str]) -> list[str]:
        if not named or isinstance(chosen.upstream, RefusingUpstream):
            return []
        ids = list(dict.fromkeys(map(self.router.resolve, named)))
        others = [model for model in ids if model != chosen.model_id]
        if chosen.upstream.name in self.local and chosen.model_id not in ids:
            return [model for model in others if self._is_local(model)]
        return others

    def _is_local(self, model_id: str) -> bool:
        upstream, _ = split_id(model_id) or ("", "")
        return upstream in self.local
