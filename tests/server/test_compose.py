"""The server is composed of what runs; every service has a handler."""

from byok.core.routing import Service
from byok.protocols.augment.endpoints import ENDPOINTS, Local
from tests.fakes.daemon import Editor

_NEEDS_A_NAME = {Service.KEY_TEST, Service.STOP}
_NEEDS_A_PATH = {Service.INDEX_ADD, Service.INDEX_REMOVE, Service.INDEX_WHY}

_NEEDS_A_MODEL = {
    Service.EMBED_ESTIMATE,
    Service.EMBED_ENABLE,
    Service.EMBED_PUSH,
    Service.EMBED_PULL,
}


async def test_composed_endpoints_answer_or_say_what_is_missing(editor: Editor) -> None:
    rows = [row for row in ENDPOINTS if isinstance(row, Local)]
    statuses = {row.answer: (await editor.post(row.path)).status for row in rows}
    refused = {service for service, status in statuses.items() if status == 422}
    assert refused == _NEEDS_A_NAME | _NEEDS_A_PATH
    wrong = {service for service, status in statuses.items() if status == 400}
    assert wrong == _NEEDS_A_MODEL
    assert set(statuses.values()) == {200, 400, 422}
