"""Which model answers a request: the user's choice for the purpose, or the client's."""

from byok.augment.body import flag
from byok.augment.chat_request import model_id
from byok.chat import Json
from byok.knowledge import Purpose
from byok.services import Services
from byok.upstream.router import Destination


async def choose_model(services: Services, purpose: Purpose, body: Json) -> Destination:
    """Return who answers.

    What the user set for a purpose counts more than what the client names, but in a
    chat: there the user chooses in the client. A silent chat is a job of the client's
    own, like those of the other endpoints.
    """
    asked, models = model_id(body), services.settings.routing.models
    if purpose is Purpose.CHAT and flag(body, "silent"):
        wanted = models.for_purpose(Purpose.SUMMARY)
    elif purpose is Purpose.CHAT and asked:
        wanted = ""
    else:
        wanted = models.for_purpose(purpose)
    if wanted:
        return await services.router.choose_listed(wanted)
    return await services.router.choose(asked)
