"""One request for vectors over real sockets: faults, retries, limits."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from byok.core.errors import (
    BadRequest,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.record import RequestRecord, begin_record, current_record
from byok.dialects.ollama.dialect import Ollama
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.client import HttpUpstream
from byok.upstream.demo import DemoUpstream
from byok.upstream.embeddings import EmbeddingModel
from byok.upstream.recoveries import Wait
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.patience import PATIENCE

TEXTS = ["red fox", "blue fish"]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as server:
        yield server


class Asker:
    """An embedding model whose waits are noted and not waited for."""

    def __init__(
        self, transports: Transports, url: str, seconds: float = PATIENCE
    ) -> None:
        self.slept: list[float] = []
        self.key = Key("sk-secret-of-the-test-0123456789")
        spec = UpstreamSpec("fake", (Api(OpenAIChat(), url),), timeouts=PATIENT)
        upstream = HttpUpstream(
            spec, transports, self.key, wait=Wait(spec.patience, self._sleep)
        )
        self.ask = EmbeddingModel(
            upstream, "tiny-embed", seconds=seconds, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def asker(transports: Transports, server: EmbeddingServer) -> Asker:
    return Asker(transports, server.url)


@pytest.mark.parametrize(
    "fault",
    [
        *("cut", "not JSON", "one too few", "NaN in base64", "503", "500"),
        "cut before the head",
    ],
)
async def test_a_passing_fault_costs_another_try(
    asker: Asker, server: EmbeddingServer, fault: str
) -> None:
    server.faults = [fault]
    assert len(await asker.ask(TEXTS)) == 2
    assert len(server.requests) == 2
    assert len(asker.slept) == int(fault != "cut before the head")


@pytest.mark.case("F47")
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("cut", UpstreamUnreachable),
        ("NaN", UpstreamGarbled),
        ("one too many", UpstreamGarbled),
        ("429", UpstreamRefused),
    ],
)
async def test_a_fault_that_stays_is_tried_three_times(
    asker: Asker, server: EmbeddingServer, fault: str, kind: type[UpstreamError]
) -> None:
    server.always = fault
    with pytest.raises(kind) as caught:
        await asker.ask(TEXTS)
    assert len(server.requests) == 3
    assert caught.value.upstream == "fake"
    assert caught.value.retryable


@pytest.mark.case("F47")
async def test_64_mib_are_not_read(asker: Asker, server: EmbeddingServer) -> None:
    server.always = "64 MiB"
    with pytest.raises(UpstreamGarbled, match="larger than 2 vectors can be"):
        await asker.ask(TEXTS)
    assert len(server.requests) == 1


@pytest.mark.case("F47")
@pytest.mark.parametrize("fault", ["hang", "hang in the body"])
async def test_a_hanging_server_is_left_after_a_while(
    transports: Transports, server: EmbeddingServer, fault: str
) -> None:
    asker = Asker(transports, server.url, seconds=1.0)
    server.always = fault
    with pytest.raises(UpstreamTimeout, match="did not make 2 vectors"):
        await asker.ask(TEXTS)
    assert len(server.requests) == 1


async def test_a_server_without_base64_is_asked_for_numbers_from_then_on(
    asker: Asker, server: EmbeddingServer
) -> None:
    server.takes_base64 = False
    assert len(await asker.ask(TEXTS)) == len(await asker.ask(TEXTS)) == 2
    formats = [request.get("encoding_format") for request in server.requests]
    assert formats == ["base64", None, None]


async def test_a_refusal_that_is_not_about_base64_is_told_as_it_is(
    asker: Asker, server: EmbeddingServer
) -> None:
    server.longest = 3
    with pytest.raises(UpstreamRefused, match="an input is too long"):
        await asker.ask(TEXTS)
    server.longest = 100
    await asker.ask(TEXTS)
    assert server.requests[-1]["encoding_format"] == "base64"
    asked = len(server.requests)
    server.longest = 3
    with pytest.raises(UpstreamRefused, match="an input is too long"):
        await asker.ask(TEXTS)
    assert len(server.requests) == asked + 1


async def test_the_compatible_api_of_an_upstream_with_one_of_its_own_is_asked(
    transports: Transports, server: EmbeddingServer
) -> None:
    own = Api(Ollama(), server.url.removesuffix("/v1"))
    apis = (own, Api(OpenAIChat(), server.url))
    upstream = HttpUpstream(UpstreamSpec("ollama", apis), transports, Key())
    assert len(await EmbeddingModel(upstream, "tiny-embed")(["a"])) == 1


async def test_an_upstream_without_embeddings_says_so(transports: Transports) -> None:
    only = UpstreamSpec("own", (Api(Ollama(), "http://127.0.0.1:1"),))
    for upstream in (HttpUpstream(only, transports, Key()), DemoUpstream()):
        with pytest.raises(BadRequest, match=r"no .*/embeddings") as caught:
            await EmbeddingModel(upstream, "m")(["a"])
        assert caught.value.hint


async def test_a_question_that_is_not_waited_for_leaves_the_server(
    asker: Asker, server: EmbeddingServer
) -> None:
    server.gate.clear()
    asking = asyncio.ensure_future(asker.ask(TEXTS))
    await server.reached.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(PATIENCE):
        while server.open:
            await asyncio.sleep(0.01)


async def test_requests_for_vectors_are_in_no_other_request_s_record(
    asker: Asker, server: EmbeddingServer
) -> None:
    seen: list[bytes] = []
    record = begin_record(RequestRecord(tap=lambda hop, data: seen.append(data)))
    await asker.ask(TEXTS)
    server.faults = ["401"]
    with pytest.raises(UpstreamRefused):
        await asker.ask(TEXTS)
    assert (record.attempts, seen) == (0, [])
    assert current_record() is record
