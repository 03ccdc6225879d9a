"""A request on its way: how its errors are written and noted."""

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from byok.core.errors import BadRequest
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.server.http.reply import HttpExchange


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/chat", {"code", "message", "hint", "request_id", "retryable"}),
        ("/v1/models", {"code", "message", "type", "param"}),
    ],
)
def test_exchange_error_has_the_shape_that_its_client_reads(
    path: str, keys: set[str]
) -> None:
    record = RequestRecord("r1")
    exchange = HttpExchange(make_mocked_request("POST", path), record, Redactor())
    response = exchange.write_error(BadRequest("No.", code="bad_body"))
    assert response.status == 400
    assert isinstance(response.body, bytes)
    assert json.loads(response.body)["error"].keys() == keys
    assert (record.error, record.error_class) == ("bad_body", "BadRequest")
    assert exchange.request_id == "r1"
