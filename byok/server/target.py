"""Who answers a request: byok, the official service or nobody; and which model."""

from dataclasses import dataclass

from byok.augment.chat_request import model_id
from byok.augment.constant_replies import ConstantReply
from byok.augment.endpoint_groups import group_of
from byok.augment.endpoints import Endpoint, Generate, Refused
from byok.augment.silent_purposes import purpose_of_chat
from byok.chat import Json
from byok.model_ids import split_id
from byok.purposes import Purpose
from byok.routing import EndpointGroup, ServedBy
from byok.server.openai_api import Forward, ListModels
from byok.server.routes import Row
from byok.upstream.router import Destination
from byok.wiring.services import Services

_UNREAD, _PASSED_ON = 2**20, 32 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A request that byok does not answer itself: Where.OFFICIAL or Where.OFF."""

    row: Endpoint
    group: EndpointGroup
    where: ServedBy


def longest_body(services: Services, row: Row) -> int:
    """Return how large a body may be; what nobody reads here may be large elsewhere."""
    if isinstance(row, (ConstantReply, Refused, ListModels)):
        groups = services.settings.routing.official.groups
        return _PASSED_ON if group_of(row.path) in groups else _UNREAD
    return row.max_body


def choose_where(services: Services, row: Row, body: Json) -> Elsewhere | None:
    """Return where the user wants a request to go; None means that byok answers.

    A model named as byok names them is nobody else's, also where its upstream has left
    the settings: what was meant for it goes nowhere else.
    """
    if isinstance(row, (Forward, ListModels)) or not (group := group_of(row.path)):
        return None
    where = services.settings.routing.official.where(group)
    if where is ServedBy.LOCAL:
        return None
    is_ours = isinstance(row, Generate) and split_id(model_id(body)) is not None
    if where is ServedBy.OFFICIAL and is_ours:
        return None
    return Elsewhere(row, group, where)


async def choose_model(services: Services, purpose: Purpose, body: Json) -> Destination:
    """Return who answers.

    What the user set for a purpose counts more than what the client names, but in a
    chat: there the user chooses in the client. A silent chat is a job of the client's
    own, like those of the other endpoints.
    """
    asked = model_id(body)
    if purpose is Purpose.CHAT:
        purpose = purpose_of_chat(body)
    wanted = services.settings.routing.models.for_purpose(purpose)
    if wanted and not (purpose is Purpose.CHAT and asked):
        return await services.router.choose_listed(wanted)
    return await services.router.choose(asked)
