"""The table in use: quick to read, and never the end of a request."""

from datetime import timedelta

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from byok.core.errors import ByokError
from byok.core.platform.paths import find_paths
from byok.dialects.known_models import EMPTY_TABLE, LISTS
from byok.upstream.model_table import (
    MOST_BYTES,
    fetch_list,
    keep_lists,
    known_table,
    load_table,
    packed_table,
)
from byok.upstream.transport import Route, Transports
from tests.fakes.model_lists import GEM, models_dev


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"vendors": 1}'])
def test_a_damaged_table_is_reported_and_counts_as_empty(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert load_table(lambda: content) is EMPTY_TABLE
    assert "the table of known models is not used" in caplog.text


@pytest.mark.parametrize(("days", "is_used"), [(-1, False), (0, True), (1, True)])
def test_an_update_is_used_unless_the_package_is_newer(
    days: int, *, is_used: bool
) -> None:
    content = orjson.dumps(models_dev(gem=GEM))
    day = packed_table().day + timedelta(days)
    keep_lists([content], day, find_paths().known_models)
    assert ("gem" in known_table().models_of("gemini")) is is_used


async def fetch(answer: web.Response) -> bytes:
    async def handle(request: web.Request) -> web.Response:
        assert not {"Authorization", "Cookie"} & {*request.headers}
        return answer

    app = web.Application()
    app.router.add_get("/api.json", handle)
    transports = Transports()
    async with TestServer(app) as server:
        public = replace(LISTS[0], url=str(server.make_url("/api.json")))
        try:
            return await fetch_list(public, transports, Route())
        finally:
            await transports.close()


async def test_a_list_is_fetched_with_nothing_of_the_users() -> None:
    assert await fetch(web.Response(body=b"{}")) == b"{}"


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=302, headers={"Location": "/api.json"}),
        web.Response(status=404),
        web.Response(body=b" " * (MOST_BYTES + 1)),
    ],
    ids=["elsewhere", "missing", "too large"],
)
async def test_a_list_that_is_elsewhere_missing_or_too_large_is_refused(
    answer: web.Response,
) -> None:
    with pytest.raises(ByokError):
        await fetch(answer)
