"""The embedder over real sockets: batches, refusals, faults, consent, order."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from byok.core.errors import (
    ByokError,
    NotAllowed,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.redact import Redactor
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.search.outside.consent import Consent
from byok.search.vectors.embedder import PROBE, Cooldown, ModelEmbedder, Priority
from byok.search.vectors.recipe import Prefixes, dollars_per_million, prefixes_of
from byok.search.vectors.types import SpaceName
from byok.upstream.client import HttpUpstream
from byok.upstream.embeddings import EmbeddingModel
from byok.upstream.recoveries import Wait
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.clock import Clock
from tests.fakes.embedding_server import EmbeddingServer, vector_of
from tests.fakes.patience import PATIENCE

KEY = "sk-secret-of-the-test-0123456789"
PREFIXES = Prefixes("doc: ", "ask: ")


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as server:
        yield server


def allow() -> None:
    """Let everything be sent."""


class Bench:
    """An embedder whose waits pass at once, and are noted."""

    def __init__(
        self,
        transports: Transports,
        url: str,
        *,
        seconds: float = 5.0,
        may_send: Callable[[], None] = allow,
    ) -> None:
        self.slept: list[float] = []
        self.now = 0.0
        redactor = Redactor()
        redactor.add(KEY)
        spec = UpstreamSpec("fake", (Api(OpenAIChat(), url),), timeouts=PATIENT)
        upstream = HttpUpstream(
            spec, transports, Key(KEY), wait=Wait(spec.patience, self._sleep)
        )
        model = EmbeddingModel(
            upstream, "tiny-embed", seconds=seconds, sleep=self._sleep
        )
        self.embedder = ModelEmbedder(
            model,
            model="tiny-embed",
            recipe="1",
            prefixes=PREFIXES,
            may_send=may_send,
            redact=redactor,
            cooldown=Cooldown(
                clock=lambda: self.now, sleep=self._sleep, draw=lambda: 1.0
            ),
            clock=lambda: self.now,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def bench(transports: Transports, server: EmbeddingServer) -> Bench:
    return Bench(transports, server.url)


def right(text: str) -> list[float]:
    return vector_of(text, 8, "tiny-embed")


def wanted(texts: Sequence[str]) -> object:
    return pytest.approx(np.array([right(text) for text in texts]), abs=1e-6)


def many(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


async def test_the_probe_tells_the_space(bench: Bench, server: EmbeddingServer) -> None:
    name, vector = await bench.embedder.probe()
    assert name == SpaceName("tiny-embed", 8, "1", "doc: ", "ask: ")
    assert vector == pytest.approx(
        vector_of("doc: " + PROBE, 8, "tiny-embed"), abs=1e-6
    )
    assert vector.dtype == np.float32


async def test_code_and_questions_have_prefixes_of_their_own(
    bench: Bench, server: EmbeddingServer
) -> None:
    rows = await bench.embedder.embed_documents(["red fox", "blue"])
    assert rows.shape == (2, 8)
    assert rows.dtype == np.float32
    assert rows == wanted(["doc: red fox", "doc: blue"])
    question = await bench.embedder.embed_question("where?")
    assert question == pytest.approx(
        vector_of("ask: where?", 8, "tiny-embed"), abs=1e-6
    )
    assert server.texts == ["doc: " + PROBE, "doc: red fox", "doc: blue", "ask: where?"]


async def test_texts_with_halves_of_emoji_and_of_a_mebibyte_are_embedded(
    bench: Bench, server: EmbeddingServer
) -> None:
    texts = ["\ud83d", "a" * 2**20, "\udc00b", "é" * 2**20, "fine"]
    rows = await bench.embedder.embed_documents(texts)
    assert rows.shape == (5, 8)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1] * 5)
    assert max(map(len, server.texts)) < 33_000
    assert (await bench.embedder.embed_question("\ud83d" + "a" * 2**20)).shape == (8,)


# What is refused


async def test_a_server_that_takes_fewer_texts_gets_fewer_from_then_on(
    bench: Bench, server: EmbeddingServer
) -> None:
    server.most_texts = 20
    texts = many(64)
    rows = await bench.embedder.embed_documents(texts)
    assert rows == wanted(["doc: " + text for text in texts])
    server.requests.clear()
    await bench.embedder.embed_documents(texts)
    assert server.sizes == [16, 16, 16, 16]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
async def test_a_text_that_is_too_long_is_shortened_and_spoils_no_other(
    bench: Bench, server: EmbeddingServer, status: int
) -> None:
    server.longest, server.limit_status = 600, status
    long = "word " * 400
    rows = await bench.embedder.embed_documents([*many(7), long, *many(8)])
    kept = ["doc: " + text for text in (*many(7), long, *many(8))]
    kept[7] = kept[7][: len(kept[7]) // 4]
    assert rows == wanted(kept)
    server.requests.clear()
    await bench.embedder.embed_documents(many(64))
    assert server.sizes == [64]


async def test_a_text_of_which_a_model_makes_no_numbers_spoils_no_other(
    bench: Bench, server: EmbeddingServer
) -> None:
    server.fails_at = "poison"
    rows = await bench.embedder.embed_documents([*many(7), "poison", *many(8)])
    kept = wanted(["doc: " + text for text in (*many(7), *many(8))])
    assert np.delete(rows, 7, axis=0) == kept
    assert not rows[7].any()
    assert (await bench.embedder.embed_question("where?")).shape == (8,)


async def test_a_server_that_is_wrong_about_batches_gets_single_texts(
    bench: Bench, server: EmbeddingServer
) -> None:
    server.always = "same index"
    texts = many(8)
    rows = await bench.embedder.embed_documents(texts)
    assert rows == wanted(["doc: " + text for text in texts])
    server.requests.clear()
    await bench.embedder.embed_documents(texts)
    assert server.sizes == [1] * 8


@pytest.mark.parametrize("fault", ["413", "500"])
async def test_a_model_that_refuses_everything_is_not_asked_for_every_text(
    bench: Bench, server: EmbeddingServer, fault: str
) -> None:
    await bench.embedder.probe()
    server.requests.clear()
    server.always = fault
    with pytest.raises(UpstreamRefused):
        await bench.embedder.embed_documents(many(64))
    assert len(server.requests) <= 4
    with pytest.raises(NotReady):
        await bench.embedder.embed_question("where?")


# What fails


@pytest.mark.case("F47")
@pytest.mark.parametrize(
    ("fault", "kind", "requests"),
    [
        ("401", UpstreamRefused, 1),
        ("429 for a minute", UpstreamRefused, 1),
        ("one longer", UpstreamGarbled, 4),  # with the probe
        ("zeros in base64", UpstreamGarbled, 6),
        ("an error inside 200", UpstreamRefused, 1),
    ],
)
async def test_faults_are_told_and_questions_are_not_sent_into_them(
    bench: Bench,
    server: EmbeddingServer,
    fault: str,
    kind: type[UpstreamError],
    requests: int,
) -> None:
    await bench.embedder.probe()
    server.requests.clear()
    server.always = fault
    with pytest.raises(kind) as caught:
        await bench.embedder.embed_documents(many(3))
    assert len(server.requests) == requests
    assert caught.value.upstream == "fake"
    with pytest.raises(NotReady):
        await bench.embedder.embed_question("where?")
    assert len(server.requests) == requests
    server.always = ""
    before = len(bench.slept)
    rows = await bench.embedder.embed_documents(many(3))
    assert rows.shape == (3, 8)
    assert len(bench.slept) == before + 1
    assert (await bench.embedder.embed_question("where?")).shape == (8,)


@pytest.mark.case("F47")
async def test_a_slow_model_gets_fewer_texts_and_three_tries(
    transports: Transports, server: EmbeddingServer
) -> None:
    bench = Bench(transports, server.url, seconds=1.0)
    await bench.embedder.probe()
    server.requests.clear()
    server.always = "hang"
    with pytest.raises(UpstreamTimeout):
        await bench.embedder.embed_documents(many(64))
    assert server.sizes == [64, 32, 16]
    assert bench.slept == [1, 2]
    server.always = ""
    server.requests.clear()
    await bench.embedder.embed_documents(many(17))
    assert server.sizes == [8, 9]


async def test_a_model_that_was_replaced_is_noticed_by_its_dimensions(
    bench: Bench, server: EmbeddingServer
) -> None:
    await bench.embedder.embed_documents(many(2))
    server.dimensions = 16
    asks: list[Callable[[], Awaitable[object]]] = [
        lambda: bench.embedder.embed_documents(many(2)),
        lambda: bench.embedder.embed_question("where?"),
    ]
    for ask in asks:
        with pytest.raises(
            UpstreamGarbled, match="8 dimensions before, and have 16"
        ) as caught:
            await ask()
        assert caught.value.code == "embedding_dimensions"
        bench.now += 999
    name, _ = await bench.embedder.probe()
    assert name.dimensions == 16
    assert (await bench.embedder.embed_documents(many(2))).shape == (2, 16)


# Who is first


async def test_a_question_overtakes_code(bench: Bench, server: EmbeddingServer) -> None:
    await bench.embedder.probe()
    server.requests.clear()
    server.gate.clear()
    server.reached.clear()
    filling = asyncio.ensure_future(bench.embedder.embed_documents(many(256)))
    await server.reached.wait()
    server.reached.clear()
    question = asyncio.ensure_future(bench.embedder.embed_question("where?"))
    await server.reached.wait()
    assert server.open == 2
    server.gate.set()
    assert (await question).shape == (8,)
    assert (await filling).shape == (256, 8)
    assert server.sizes == [64, 1, 64, 64, 64]


# What leaves


@pytest.mark.case("B124")
async def test_without_consent_nobody_is_even_connected_to(
    transports: Transports, server: EmbeddingServer, tmp_path: Path
) -> None:
    consent = Consent(tmp_path / "embeddings.json")
    host, model = "vendor.example:443", "tiny-embed"

    def may_send() -> None:
        consent.check(host, model, is_local=False)

    embedder = Bench(transports, server.url, may_send=may_send).embedder
    for ask in (
        embedder.probe,
        lambda: embedder.embed_documents(many(3)),
        lambda: embedder.embed_question("where?"),
    ):
        with pytest.raises(NotAllowed):
            await ask()
    assert server.requests == []
    consent.give(host, model)
    await embedder.embed_documents(many(3))
    asked = len(server.requests)
    consent.withdraw()
    with pytest.raises(NotAllowed):
        await embedder.embed_question("where?")
    assert len(server.requests) == asked


@pytest.mark.case("B124")
async def test_keys_are_in_no_text_no_error_and_no_log(
    bench: Bench, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = "sk-proj-" + "a1B2" * 12
    code = [f'token = "{KEY}"', f'other = "{planted}"', "fine"]
    await bench.embedder.embed_documents(code)
    await bench.embedder.embed_question(f"where is {planted} used with {KEY}?")
    sent = "\n".join(server.texts)
    assert KEY not in sent
    assert planted not in sent
    assert "fine" in sent
    server.key = "another"
    errors: list[ByokError] = []
    asks: list[Callable[[], Awaitable[object]]] = [
        lambda: bench.embedder.embed_documents(code),
        lambda: bench.embedder.embed_question("where?"),
    ]
    for ask in asks:
        with pytest.raises(ByokError) as caught:
            await ask()
        errors.append(caught.value)
    said = " ".join(f"{e.sentence} {e.args} {e.__cause__!r}" for e in errors)
    assert "Incorrect API key" in said
    assert KEY not in said
    assert KEY not in caplog.text


# Questions come before code, and a model that failed is left alone for a while


GONE = UpstreamUnreachable("it is gone.", upstream="box", hint="Start it.")
NO_KEY = UpstreamRefused("no key.", kind=RefusalKind.AUTH)


async def test_code_waits_for_questions_and_for_other_code() -> None:
    priority, order = Priority(), list[str]()

    async def fill(name: str) -> None:
        async with priority.filling():
            order.append(name)

    async with priority.question():
        first = asyncio.ensure_future(fill("first"))
        second = asyncio.ensure_future(fill("second"))
        await asyncio.sleep(0)
        async with priority.question():
            order.append("question")
        await asyncio.sleep(0)
        order.append("answered")
    await asyncio.gather(first, second)
    assert order == ["question", "answered", "first", "second"]


async def test_endless_questions_do_not_stop_code() -> None:
    priority = Priority(patience=0.01)
    async with priority.question(), asyncio.timeout(PATIENCE), priority.filling():
        pass


def rest_by(clock: Clock, luck: float = 1.0) -> Cooldown:
    return Cooldown(clock=clock, sleep=clock.sleep, draw=lambda: luck)


@pytest.mark.parametrize(
    ("cause", "luck", "seconds"),
    [
        (GONE, 1, [1, 2, 4, 8, 16, 32, 60, 60]),
        (GONE, 0, [0.5, 1, 2]),
        (NO_KEY, 1, [10, 20, 40, 80, 160, 300, 300]),  # a user must mend it
    ],
    ids=str,
)
def test_rests_grow_to_a_limit(
    cause: UpstreamError, luck: float, seconds: list[float]
) -> None:
    rest = rest_by(Clock(), luck)
    for expected in seconds:
        rest.begin(cause)
        assert rest.seconds == expected


@pytest.mark.parametrize(
    ("asked", "rests"), [(None, 1), (0.1, 1), (60, 60), (9e9, 600)]
)
def test_a_rest_is_as_long_as_the_upstream_asks_for(
    asked: float | None, rests: float
) -> None:
    rest = rest_by(Clock())
    rest.begin(
        UpstreamRefused(
            "no.", kind=RefusalKind.RATE_LIMIT, retry_after=asked, retryable=True
        )
    )
    assert rest.seconds == rests


async def test_a_rest_is_over_when_it_was_waited_for() -> None:
    clock = Clock(100)
    rest = rest_by(clock)
    rest.check()
    rest.begin(GONE)
    with pytest.raises(NotReady, match="box: it is gone") as caught:
        rest.check()
    assert caught.value.hint == "Start it."
    await rest.wait()
    assert clock.now == 101
    rest.check()


# What is put before texts, by the model's name


CODE, ASK, NOMIC = "Represent this sentence", "Instruct: ", "search_query: "


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("nomic-embed-text", "search_document: ", NOMIC),
        ("nomic-embed-text:v1.5", "search_document: ", NOMIC),
        ("nomic-ai/nomic-embed-text-v2-moe", "search_document: ", NOMIC),
        ("text-embedding-nomic-embed-text-v1.5", "search_document: ", NOMIC),
        ("nomic-embed-code", "", "Represent this query"),
        ("intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("e5-small-v2", "passage: ", "query: "),
        ("intfloat/multilingual-e5-large-instruct", "", ASK),
        ("intfloat/e5-mistral-7b-instruct", "", ASK),
        ("embeddinggemma:300m", "title: none | text: ", "task: code retrieval | q"),
        ("snowflake-arctic-embed2", "", "query: "),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "", "query: "),
        ("snowflake-arctic-embed:110m", "", CODE),
        ("BAAI/bge-small-en-v1.5", "", CODE),
        ("bge-large", "", CODE),
        ("BAAI/bge-large-zh-v1.5", "", "为这个句子"),
        ("mxbai-embed-large", "", CODE),
        ("Qwen/Qwen3-Embedding-0.6B", "", ASK),
        ("qwen3-embedding:8b", "", ASK),
    ],
)
def test_models_get_what_their_makers_say(
    model: str, document: str, query: str
) -> None:
    before = prefixes_of(model)
    assert before.document == document
    assert before.query.startswith(query)


@pytest.mark.parametrize(
    "model",
    ["text-embedding-3-small", "codestral-embed", "bge-m3", "all-minilm:l6-v2",
     "voyage-code-3", "gte-large", "jina-embeddings-v2-base-code", "", "the5-star"],
)  # fmt: skip
def test_other_models_take_texts_as_they_are(model: str) -> None:
    assert prefixes_of(model) == Prefixes()


def test_the_user_s_own_words_replace_those_that_are_known() -> None:
    assert prefixes_of("nomic-embed-text", "", "q ") == ("", "q ")
    assert prefixes_of("nomic-embed-text", None, "") == ("search_document: ", "")
    assert prefixes_of("mine", "d ") == ("d ", "")


# Prices belong to a vendor's own address


@pytest.mark.parametrize(
    ("host", "model", "dollars"),
    [
        ("api.openai.com:443", "text-embedding-3-small", 0.02),
        ("api.openai.com", "text-embedding-3-large", 0.13),
        ("generativelanguage.googleapis.com:443", "models/gemini-embedding-001", 0.15),
        ("api.openai.com:443", "unknown", None),
        ("gateway.example:443", "text-embedding-3-small", None),
        ("", "", None),
    ],
)
def test_prices_are_known_by_host_and_model(
    host: str, model: str, dollars: float | None
) -> None:
    assert dollars_per_million(host, model) == dollars
