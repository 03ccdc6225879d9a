"""Where byok's own questions about code may go: to models that chats go to anyway.

The questions of an agent tell what somebody works on, and so do the lines of code that
may come with them. Who lets only a model on this machine chat must not find them on
another one because a small model was named for titles. So the rule is:

    a model on this machine may be asked, and one elsewhere only if its upstream is one
    that chats go to

The chats of a window of an editor go to the upstreams that were chosen in it since the
start (`router.py`). For a window without a chat, and for programs that have none,
it is the upstream of `[routing.models] chat`, else that of the default model, and those
behind it in `[routing.fallback]`; none, where the official service answers chats. That
clients may choose other models does not count: they need not have done so.
"""

from dataclasses import dataclass

from byok.core.errors import ConfigError
from byok.core.purposes import Purpose
from byok.core.record import current_record
from byok.upstream.base import Destination
from byok.upstream.fallback import Fallbacks


@dataclass(frozen=True, slots=True)
class QuestionRoutes:
    """Routes byok's own questions by the settings in force.

    `chat_model` is the user's choice for chats that name no model, "" for the default,
    and None if no upstream answers chats.
    """

    fallbacks: Fallbacks
    chat_model: str | None

    async def find(self, wanted: str) -> Destination:
        """Return who answers for a model that the user named; "" is that of chats.

        Nobody stands behind it: a failure costs less than the wait for another one.

        Raises:
            ConfigError: it is on another machine, and chats do not go there.
        """
        found = await self._choose(wanted or self.chat_model or "")
        name = found.upstream.name
        if name in self.fallbacks.local or name in await self._upstreams_of_chats():
            return found
        raise ConfigError(
            f"it is asked nothing about code: no chat goes to {name}.",
            hint="byok sends its own questions only to models on this machine and to "
            "upstreams of [routing] default, models.chat and fallback.chat.",
            upstream=name,
        )

    async def _upstreams_of_chats(self) -> frozenset[str]:
        """Return the names of the upstreams that are asked, one if the other fails."""
        seen = current_record().chat_upstreams
        if seen is not None:
            return seen
        if self.chat_model is None:
            return frozenset()
        chosen = await self._choose(self.chat_model)
        chain = await self.fallbacks.chain_of(chosen, Purpose.CHAT)
        return frozenset(asked.upstream.name for asked in chain)

    async def _choose(self, model: str) -> Destination:
        if model:
            return await self.fallbacks.router.choose_listed(model)
        return await self.fallbacks.router.choose("")
