"""What is left of a request once it was understood, where that is little."""

import json
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import StreamResponse

from byok.core.chat import Json
from byok.core.record import Hop, RequestRecord
from byok.core.redact import Redactor
from byok.server.answerable import ConstantAnswer, ConstantStream, ObjectAnswer
from byok.server.http.reply import HttpExchange


def object_of(response: StreamResponse) -> Any:
    """The object that a whole response carries."""
    return json.loads(getattr(response, "body"))  # noqa: B009 - a Response in fact


async def test_answer_of_a_constant_endpoint() -> None:
    assert object_of(await ConstantAnswer({"a": 1}).answer()) == {"a": 1}


async def test_answer_of_a_handler_is_its_object() -> None:
    async def handler() -> Json:
        return {"a": 1}

    assert object_of(await ObjectAnswer(handler).answer()) == {"a": 1}


@pytest.mark.parametrize(
    ("lines", "sent"), [((), b""), (({"a": 1}, {"b": 2}), b'{"a":1}\n{"b":2}\n')]
)
async def test_answer_of_a_stream_is_its_lines(
    lines: tuple[Json, ...], sent: bytes
) -> None:
    seen: list[tuple[Hop, bytes]] = []
    record = RequestRecord("r", tap=lambda hop, data: seen.append((hop, data)))
    exchange = HttpExchange(make_mocked_request("POST", "/"), record, Redactor())
    response = await ConstantStream(exchange, lines).answer()
    assert response.headers["X-Request-Id"] == "r"
    assert seen == [(Hop.TO_CLIENT, sent)]
