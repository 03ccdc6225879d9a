"""Who serves a request: byok, the official service or nobody."""

from dataclasses import dataclass

from byok.augment.chat_request import model_id
from byok.augment.constant_replies import ConstantReply
from byok.augment.endpoints import Endpoint, Generate, Refused
from byok.chat import Json
from byok.config.routing_sections import OfficialSettings
from byok.model_ids import PREFIX
from byok.routing import EndpointGroup, ServedBy
from byok.server.openai_api import Forward, ListModels
from byok.server.routes import Row

_UNREAD, _PASSED_ON = 2**20, 32 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A request that byok does not answer itself: ServedBy.OFFICIAL or ServedBy.OFF."""

    row: Endpoint
    group: EndpointGroup
    where: ServedBy


def longest_body(settings: OfficialSettings, row: Row) -> int:
    """Return how large a body may be, in bytes.

    What byok itself does not read may be larger where the official service answers.
    """
    if isinstance(row, ListModels):
        return _UNREAD
    if isinstance(row, (ConstantReply, Refused)):
        return _PASSED_ON if row.group in settings.groups else _UNREAD
    return row.max_body


def choose_where(settings: OfficialSettings, row: Row, body: Json) -> Elsewhere | None:
    """Return where the user wants a request to go; None means that byok answers.

    A model named as byok names them is nobody else's, also where its upstream has left
    the settings: what was meant for it goes nowhere else.
    """
    if isinstance(row, (Forward, ListModels)) or not (group := row.group):
        return None
    where = settings.where(group)
    if where is ServedBy.LOCAL:
        return None
    is_ours = isinstance(row, Generate) and model_id(body).startswith(PREFIX)
    if where is ServedBy.OFFICIAL and is_ours:
        return None
    return Elsewhere(row, group, where)
