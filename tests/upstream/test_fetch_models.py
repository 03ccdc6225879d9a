"""A list of models: its pages in order, each model once, within a time limit."""

import httpx
import pytest

from byok.core.errors import UpstreamGarbled, UpstreamTimeout
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.catalog import fetch_models
from byok.upstream.http_sender import Sender
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.lister import Canned
from tests.fakes.upstream import FakeUpstream


def sender_of(url: str, transports: Transports) -> tuple[Sender, Api]:
    api = Api(OpenAIChat(), url)
    return Sender(UpstreamSpec("fake", (api,)), transports, Key()), api


def canned(text: str) -> tuple[Sender, Api]:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(text.encode()))

    return sender_of("http://fake.test/v1", Canned(answer))


async def test_each_model_is_listed_once() -> None:
    rows = '{"data": [{"id": "a"}, {"id": "b"}, {"id": "a", "context_length": 9000}]}'
    assert await fetch_models(*canned(rows)) == [ModelFacts("a"), ModelFacts("b")]


async def test_a_list_that_is_no_json_is_an_error() -> None:
    with pytest.raises(UpstreamGarbled, match="not JSON"):
        await fetch_models(*canned("<html>"))


async def test_a_list_that_takes_too_long_is_an_error(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.models_delay = 5
    sender, api = sender_of(fake.url, transports)
    with pytest.raises(UpstreamTimeout, match="did not list its models in time"):
        await fetch_models(sender, api, seconds=0.05)
