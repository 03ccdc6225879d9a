"""The server is composed of what runs; every service has a handler."""

from byok.augment.endpoints import ENDPOINTS, Local
from byok.routing import Service
from tests.fakes.daemon import running

_NEEDS_A_NAME = {Service.KEY_TEST, Service.STOP}
_NEEDS_A_PATH = {Service.INDEX_ADD, Service.INDEX_REMOVE, Service.INDEX_WHY}


async def test_composed_endpoints_answer_or_say_what_is_missing() -> None:
    rows = [row for row in ENDPOINTS if isinstance(row, Local)]
    async with running(upstream="demo") as editor:
        statuses = {row.answer: (await editor.post(row.path)).status for row in rows}
    refused = {service for service, status in statuses.items() if status == 422}
    assert refused == _NEEDS_A_NAME | _NEEDS_A_PATH
    assert set(statuses.values()) == {200, 422}
