"""Which model answers a request: the user's choice for its purpose, or the client's."""

from dataclasses import dataclass

from byok.augment.body import first_text
from byok.augment.chat_request import model_id
from byok.augment.silent_purposes import purpose_of_chat
from byok.chat import Json
from byok.config.routing_sections import ModelSettings
from byok.purposes import Purpose
from byok.upstream.fallback_choice import Fallbacks
from byok.upstream.router import Destination, Router


@dataclass(frozen=True, slots=True)
class ModelChooser:
    """Chooses by purpose and by what the client names."""

    settings: ModelSettings
    router: Router
    fallbacks: Fallbacks

    async def choose(self, purpose: Purpose, body: Json) -> Destination:
        """Return the upstream and the model that answer a body, and if not, others.

        What the user set for a purpose counts more than what the client names, but in
        a chat: there the user chooses in the client. A silent chat is a job of the
        client's own, like those of the other endpoints. Where nobody chose a model,
        small jobs and completions get a small one of the same upstream.
        """
        named = model_id(body)
        if purpose is Purpose.CHAT:
            purpose = purpose_of_chat(body)
        wanted = self.settings.for_purpose(purpose)
        if wanted and not (purpose is Purpose.CHAT and named):
            chosen = await self.router.choose_listed(wanted)
        else:
            chosen = await self.router.choose(named)
            chosen = self.router.choose_for(purpose, chosen)
        conversation = first_text(body, "conversation_id")
        return await self.fallbacks.prepare(chosen, purpose, conversation)
