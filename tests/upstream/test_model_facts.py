"""The windows of models: told by a list, or asked for where a server loads models."""

import httpx
import pytest

from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.quirks import QUIRKS
from tests.fakes.asker import Asker
from tests.fakes.lister import Canned


class Loaded:
    """A local server that tells its loaded models, and how often it was asked."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.upstream = Asker(
            Canned(self._answered), "http://fake.test/v1", quirks=QUIRKS["ollama"]
        ).upstream

    def _answered(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        status, text = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return httpx.Response(status, stream=httpx.ByteStream(text.encode()))


PS = '{"models": [{"model": "a:latest", "context_length": 4096}]}'


async def test_a_local_server_is_asked_for_the_window_of_a_loaded_model_once() -> None:
    server = Loaded((200, PS))
    assert [await server.upstream.known.window("a") for _ in range(3)] == [4096] * 3
    assert server.asked == ["http://fake.test/api/ps"]


async def test_a_model_that_is_not_loaded_yet_is_asked_for_again() -> None:
    server = Loaded((200, '{"models": []}'), (200, PS))
    assert [await server.upstream.known.window("a") for _ in range(3)] == [
        0,
        4096,
        4096,
    ]
    assert len(server.asked) == 2


@pytest.mark.parametrize("answer", [(404, "no"), (200, "<p>"), (200, "[" * 9999)])
async def test_a_server_without_model_windows_is_not_asked_each_time(
    answer: tuple[int, str],
) -> None:
    server = Loaded(answer)
    assert [await server.upstream.known.window("a") for _ in range(3)] == [0] * 3
    assert len(server.asked) == 1


async def test_others_are_not_asked_for_loaded_models() -> None:
    transport = Canned(lambda request: pytest.fail("was asked"))
    upstream = Asker(transport, "http://fake.test/v1", quirks=QUIRKS["openai"]).upstream
    assert await upstream.known.window("a") == 0


async def test_facts_are_those_of_the_list_with_the_window_of_the_loaded_model() -> (
    None
):
    rows = '{"data": [{"id": "a", "context_length": 32768}, {"id": "b"}]}'
    server = Loaded((200, rows), (200, PS))
    assert server.upstream.known.facts("a") == ModelFacts("a")
    await server.upstream.models()
    assert server.upstream.known.facts("a") == ModelFacts("a", 32_768)
    await server.upstream.known.window("a")
    assert server.upstream.known.facts("a") == ModelFacts("a", 4096)
    assert server.upstream.known.facts("b") == ModelFacts("b")
