"""Calling a server: its key, the deadline for the head, redirects, the breaker."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest

from byok import __version__
from byok.core.errors import NotReady, UpstreamUnreachable
from byok.dialects.base import Dialect
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.breaker import FAILURES, CircuitBreaker
from byok.upstream.http_body import hang_up
from byok.upstream.http_sender import Caller, Sender
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import REMOTE, Timeouts, Watch
from byok.upstream.transport import Route, Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.clock import Clock, run_at_once
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, dead_url


def head(key: str) -> httpx.Headers:
    return httpx.Headers({"Authorization": f"Bearer {key}"})


class Line:
    """A caller of one URL."""

    def __init__(
        self,
        transports: Transports,
        url: str,
        key: Key | None = None,
        route: Route | None = None,
        timeouts: Timeouts = REMOTE,
    ) -> None:
        self.clock = Clock()
        self.caller = Caller(
            transports,
            key or Key("sk-1"),
            CircuitBreaker(60, upstream="fake", clock=self.clock),
            route=route or Route(),
            timeouts=timeouts,
        )
        self.url = url

    async def call(
        self,
        path: str = "x",
        content: bytes | None = b"{}",
        timeouts: Timeouts | None = None,
    ) -> int:
        """Return the status."""
        url = httpx.URL(f"{self.url}/{path}")
        response = await self.caller.call(url, content, head, timeouts=timeouts)
        await hang_up(response)
        return response.status_code


@pytest.mark.case("F05")
async def test_http_times_out_without_a_response_head(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.models_delay = PATIENCE
    hasty = Timeouts(first_byte=0.2)
    with pytest.raises(UpstreamUnreachable, match="begin to answer") as caught:
        await Line(transports, fake.url, timeouts=hasty).call("models", None)
    assert caught.value.code == "upstream_timeout"


async def test_http_circuit_breaker_opens_and_lets_a_probe_through(
    transports: Transports,
) -> None:
    route = Route(proxy=dead_url().removesuffix("/v1"))
    line = Line(transports, "http://model.test/v1", route=route)
    for _ in range(FAILURES):
        with pytest.raises(UpstreamUnreachable, match="the proxy cannot be reached"):
            await line.call()
    with pytest.raises(NotReady, match=r"^fake: the proxy cannot be .* in 60 s\."):
        await line.call()
    line.clock.now += 60
    with pytest.raises(UpstreamUnreachable):
        await line.call()


async def test_http_circuit_breaker_spares_a_local_server_that_is_down(
    transports: Transports,
) -> None:
    line = Line(transports, dead_url())
    for _ in range(FAILURES + 2):
        with pytest.raises(UpstreamUnreachable, match="nothing answers") as caught:
            await line.call()
        assert caught.value.hint.startswith("Is it running")


class Changing(Key):
    """A key source that finds another key after it was told to forget."""

    def forget(self) -> None:
        super().forget()
        self.key = "sk-2"


async def test_http_tries_a_changed_api_key_at_once(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b"{}"], status=401), Script([b"{}"]))
    key = Changing("sk-1")
    assert await Line(transports, fake.url, key).call() == 200
    sent = [headers["Authorization"] for headers in fake.headers]
    assert sent == ["Bearer sk-1", "Bearer sk-2"]
    assert key.forgotten == 1


# An upstream that cannot be reached is left alone for a while
DOWN = UpstreamUnreachable("nothing answers at http://a/v1.", hint="Is it running?")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(30.0, clock=clock, sleep=clock.sleep)


def is_open(check: Callable[[], None]) -> bool:
    try:
        check()
    except NotReady as error:
        assert (error.status, error.code, error.retryable) == (
            503,
            "upstream_down",
            True,
        )
        return True
    return False


def fail(breaker: CircuitBreaker, times: int = FAILURES) -> None:
    for _ in range(times):
        breaker.record_failure(DOWN)


def test_circuit_breaker_resets_its_count_at_one_success(
    breaker: CircuitBreaker,
) -> None:
    fail(breaker, FAILURES - 1)
    breaker.record_success()
    breaker.record_failure(DOWN)
    assert not is_open(breaker.check)


def test_circuit_breaker_lets_one_probe_through_after_the_pause(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 29.9
    assert is_open(breaker.check)
    clock.now += 0.1
    assert not is_open(breaker.check)
    assert is_open(breaker.check)


async def test_circuit_breaker_does_not_count_a_cancelled_request(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 30
    with pytest.raises(ValueError):
        async with breaker.attempt():
            assert is_open(breaker.check)  # for all others, as long as it goes on
            raise ValueError
    assert not is_open(breaker.check)


@pytest.mark.parametrize("outcome", ["success", "failure", "cancelled"])
async def test_circuit_breaker_lets_others_wait_for_the_probe(
    outcome: str, breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 30
    is_over = asyncio.Event()

    async def probe() -> None:
        async with breaker.attempt():
            await is_over.wait()
            if outcome == "failure":
                breaker.record_failure(DOWN)
            if outcome == "success":
                breaker.record_success()

    async def ask() -> bool:
        try:
            async with breaker.attempt():
                breaker.record_success()
        except NotReady:
            return False
        return True

    probing = asyncio.ensure_future(probe())
    await asyncio.sleep(0)
    others = asyncio.gather(ask(), ask())
    for _ in range(5):
        await asyncio.sleep(0)
    is_over.set()
    await probing
    assert set(await others) == {outcome != "failure"}


@pytest.mark.parametrize("left", [1.9, 0.01])
async def test_circuit_breaker_waits_for_a_short_pause(
    breaker: CircuitBreaker, clock: Clock, left: float
) -> None:
    fail(breaker)
    clock.now += 30 - left
    async with breaker.attempt():
        breaker.record_success()
    assert clock.now == pytest.approx(1030)
    assert not is_open(breaker.check)


# One exchange with an upstream: headers, deadlines, the breaker


class Asked:
    """A sender, and the API that it is to ask."""

    def __init__(self, spec: UpstreamSpec, transports: Transports, key: str) -> None:
        self.key = Key(key)
        self.api = spec.api
        self.sender = Sender(spec, transports, self.key)

    def open(
        self, path: str, content: bytes | None = None, **headers: str
    ) -> AbstractAsyncContextManager[httpx.Response]:
        return self.sender.open(self.api, path, content, headers)


def sender(
    transports: Transports,
    url: str,
    *,
    pause: float = 30.0,
    key: str = "sk-1",
    dialect: Dialect = OpenAIChat(),  # noqa: B008 - it holds no state
    **fields: Any,
) -> Asked:
    spec = UpstreamSpec(
        "fake",
        (Api(dialect, url),),
        breaker_pause=pause,
        **{"headers": {"X-Own": "1"}, "timeouts": PATIENT, **fields},
    )
    return Asked(spec, transports, key)


async def test_http_sender_sets_a_content_type_on_post_only(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url)
    async with asked.open("chat/completions", b'{"a":1}') as response:
        assert response.status_code == 200
    async with asked.open("models"):
        pass
    assert fake.requests == [{"a": 1}]
    assert fake.headers[0]["Content-Length"] == "7"
    for headers in (fake.headers[0], fake.list_headers[0]):
        assert headers["Host"] == fake.url.split("/")[2]
        assert "Transfer-Encoding" not in headers
        assert headers["Authorization"] == "Bearer sk-1"
        assert headers["x-own"] == "1"
        assert headers["User-Agent"] == f"byok/{__version__}"
        assert headers["Accept-Encoding"] == "identity"
    assert fake.headers[0]["Content-Type"] == "application/json"
    assert "Content-Type" not in fake.list_headers[0]


async def test_http_sender_adds_the_query_to_every_url(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url, query={"api-version": "2024-10-21", "a": "&"})
    async with asked.open("chat/completions", b"{}"):
        pass
    async with asked.open("models"):
        pass
    assert fake.queries == ["api-version=2024-10-21&a=%26"] * 2


class Versioned(OpenAIChat):
    """A dialect whose requests all need a header, with and without a key."""

    def headers(self, key: str) -> Mapping[str, str]:
        return {"X-Version": "2", "Accept": "a/b"} | ({"X-Key": key} if key else {})


async def test_headers_of_the_user_win_but_for_the_key(
    fake: FakeUpstream, transports: Transports
) -> None:
    own = {"x-version": "3", "x-key": "mine", "accept": "c/d"}
    asked = sender(transports, fake.url, dialect=Versioned(), headers=own)
    async with asked.open("chat/completions", b"{}"):
        pass
    found = {name: fake.headers[0][name] for name in ("x-version", "x-key", "Accept")}
    assert found == {"x-version": "3", "x-key": "sk-1", "Accept": "c/d"}


LONG = 60.0


async def watched(
    timeouts: Timeouts, *, told: bool | None = None, seconds: float = 1.6
) -> str:
    """Watch an answer that has a read every 10 ms; return why it was aborted."""
    aborted = asyncio.Event()
    with Watch(timeouts, aborted.set) as watch:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and not aborted.is_set():
            if told is not None:
                watch.note_bytes(has_event=told)
            await asyncio.sleep(0.01)
    assert aborted.is_set() is (watch.failure is not None)
    if watch.failure is None:
        return ""
    assert watch.failure.code == "upstream_timeout"
    return str(watch.failure)


@pytest.mark.parametrize(
    ("timeouts", "told", "why"),
    [
        pytest.param(Timeouts(first_byte=1.0), None, "did not begin", id="silence"),
        pytest.param(Timeouts(first_byte=1.0), False, "", id="signs of life"),
        pytest.param(Timeouts(idle=1.0), True, "", id="text"),
        (Timeouts(idle=1.0, comments_only=1.0), False, "signs of life"),  # only signs
        pytest.param(Timeouts(idle=1.0, comments_only=1.0), True, "", id="more text"),
        pytest.param(Timeouts(idle=LONG, total=0.1), True, "too long", id="all"),
    ],
)
@pytest.mark.case("F06")
def test_a_timeout_error_names_the_limit(
    timeouts: Timeouts, told: bool | None, why: str
) -> None:
    failure = run_at_once(watched(timeouts, told=told))
    assert why in failure
    assert bool(failure) is bool(why)


def test_no_timeout_fires_after_the_end() -> None:
    aborted: list[None] = []

    async def watch() -> None:
        with Watch(Timeouts(idle=0.02), lambda: aborted.append(None)):
            pass
        await asyncio.sleep(LONG)

    run_at_once(watch())
    assert aborted == []


def test_a_configured_idle_timeout_raises_shorter_limits() -> None:
    own = REMOTE.with_idle(700)
    assert (own.first_byte, own.idle, own.comments_only, own.total) == (
        700,
        700,
        700,
        1800,
    )
    own = REMOTE.with_idle(5)
    assert (own.first_byte, own.idle, own.comments_only, own.total) == (5, 5, 600, 1800)
