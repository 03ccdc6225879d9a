"""Asking an upstream over real sockets: repetitions, refusals, broken answers."""

import asyncio
import gzip
import json

import httpx
import pytest

from byok.core.errors import KeyMissing, UpstreamError
from byok.core.events import TextDelta
from byok.dialects.model_facts import ModelFacts
from byok.upstream.client import MAX_ANSWER_BYTES, HttpUpstream
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import Timeouts
from byok.upstream.transport import Transports
from tests.fakes.asker import HI, Asker, Key
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Canned
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.upstream import DONE, FakeUpstream, Script, answer, delta, refusal


async def test_extra_headers_and_extra_body_are_sent(
    fake: FakeUpstream, transports: Transports
) -> None:
    asker = Asker(transports, fake.url, headers={"X-Team": "a"}, extra_body={"seed": 7})
    await asker.ask()
    assert httpx.Headers(fake.headers[0])["X-Team"] == "a"
    assert fake.requests[0]["seed"] == 7


# Repetitions


@pytest.mark.parametrize(
    ("before", "requests"),
    [([], 2), ([delta(content="One")], 1)],
    ids=["at once", "in the middle"],
)
@pytest.mark.case("F05")
async def test_a_timeout_is_retried_once_before_anything_was_shown(
    fake: FakeUpstream, transports: Transports, before: list[bytes], requests: int
) -> None:
    fake.play(Script(before, end="hang"))
    asker = Asker(transports, fake.url, timeouts=Timeouts(first_byte=0.2, idle=0.2))
    events, error = await asker.fail()
    assert len(events) == len(before)
    assert error.code == "upstream_timeout"
    assert len(fake.requests) == requests


@pytest.mark.slow
async def test_a_model_that_reasons_may_be_silent_for_longer(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([0.4, delta(content="Hi."), 0.4, delta(finish="stop"), DONE]))
    brief = Timeouts(first_byte=0.1, idle=0.1)
    facts = {"m": ModelFacts("m", thinking=True)}
    assert await Asker(transports, fake.url, timeouts=brief, facts=facts).ask() == HI
    assert len(fake.requests) == 1


# Parameters that an upstream dislikes


@pytest.mark.slow
async def test_an_endless_answer_ends_at_the_size_limit(
    fake: FakeUpstream, asker: Asker
) -> None:
    piece = delta(content="x" * 2**19)
    fake.play(Script([piece] * (MAX_ANSWER_BYTES // len(piece) + 2), end="hang"))
    events, error = await asker.fail()
    said = sum(len(e.text) for e in events if isinstance(e, TextDelta))
    assert MAX_ANSWER_BYTES - 4 * 2**20 < said < MAX_ANSWER_BYTES
    assert error.code == "upstream_event_too_large"
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


# Keys


@pytest.mark.parametrize(("status", "forgotten"), [(401, 1), (403, 0), (500, 0)])
async def test_an_api_key_is_looked_up_anew_only_after_a_401(
    fake: FakeUpstream, asker: Asker, status: int, forgotten: int
) -> None:
    asker.key.key = "sk-1"
    fake.play(refusal(status, "Incorrect key"))
    error = await asker.refused()
    assert asker.key.forgotten == forgotten
    assert error.status == 422
    assert "sk-1" not in error.sentence


async def test_without_an_api_key_nothing_is_sent(
    fake: FakeUpstream, asker: Asker
) -> None:
    asker.key.key = "missing"
    with pytest.raises(KeyMissing):
        await asker.ask()
    with pytest.raises(KeyMissing):
        await asker.upstream.models()
    assert fake.requests == fake.list_headers == []


# Odd answers


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.case("B62")
async def test_a_redirect_is_refused_and_not_followed(
    fake: FakeUpstream, asker: Asker, status: int
) -> None:
    async with FakeUpstream() as other:
        location = {"Location": f"{other.url}/chat/completions"}
        fake.play(Script([], status, location))
        error = await asker.refused()
        assert other.requests == []
    assert error.code == "upstream_redirect"
    assert len(fake.requests) == 1


@pytest.mark.parametrize("pieces", [1, 1000])
@pytest.mark.case("F10")
async def test_a_gzip_answer_is_decoded_although_identity_was_asked(
    fake: FakeUpstream, asker: Asker, pieces: int
) -> None:
    packed = gzip.compress(b"".join(answer("Hi.")))
    cuts = [packed[i : i + 1] for i in range(len(packed))] if pieces > 1 else [packed]
    fake.play(Script(cuts, headers={"Content-Encoding": "gzip"}))
    assert await asker.ask() == HI


@pytest.mark.parametrize(
    ("pieces", "headers", "code"),
    [
        pytest.param([b": ping\n\n"], {}, "upstream_empty", id="only comments"),
        ([b"x"], {"Content-Encoding": "br"}, "upstream_encoding"),  # brotli
        ([b"oops"], {"Content-Encoding": "gzip"}, "upstream_encoding"),  # no gzip
        pytest.param(
            [gzip.compress(b"\0" * 2**23)],
            {"Content-Encoding": "gzip"},
            "upstream_event_too_large",
            id="a bomb",
        ),
    ],
)
async def test_an_invalid_answer_is_an_error(
    fake: FakeUpstream,
    asker: Asker,
    pieces: list[bytes],
    headers: dict[str, str],
    code: str,
) -> None:
    fake.play(Script(pieces, headers=headers))
    events, error = await asker.fail()
    assert events == []
    assert error.code == code


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": "No ' + b"x" * 200_000 + b'"}', "No …"),  # long JSON
        pytest.param(b"y" * 200_000, "…", id="one long word, which may be a key"),
        pytest.param(b"", "no reason given", id="nothing"),
    ],
)
async def test_an_odd_refusal_becomes_a_short_sentence(
    fake: FakeUpstream, asker: Asker, body: bytes, said: str
) -> None:
    fake.play(Script([body], status=400, headers={}))
    error = await asker.refused()
    assert said in str(error)
    assert error.upstream_status == 400


@pytest.mark.parametrize(
    "pieces",
    [answer("Hi."), answer("Hi.")[:-1]],
    ids=["after [DONE]", "after finish_reason"],
)
@pytest.mark.parametrize("end", ["reset", "hang"])
async def test_a_failure_after_the_end_of_the_stream_is_ignored(
    fake: FakeUpstream,
    transports: Transports,
    pieces: list[bytes],
    end: str,
) -> None:
    asker = Asker(transports, fake.url, timeouts=Timeouts(first_byte=0.2, idle=0.2))
    fake.play(Script(pieces, end=end))
    assert await asker.ask() == HI


# Hanging up


@pytest.mark.parametrize(
    "pieces", [[], [delta(content="One")]], ids=["before", "after the first event"]
)
async def test_cancelling_the_reader_disconnects(
    fake: FakeUpstream, asker: Asker, pieces: list[bytes]
) -> None:
    fake.play(Script(pieces, end="hang"))
    reading = asyncio.ensure_future(asker.ask())
    await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


# Models


def canned(status: int, body: bytes) -> Canned:
    """Answer everything so; the body is still to be read, as from a socket."""
    return Canned(lambda _: httpx.Response(status, stream=httpx.ByteStream(body)))


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        pytest.param(404, b"", "upstream_not_found", id="404"),
        pytest.param(200, b"<html>", "upstream_garbled", id="a web page"),
        pytest.param(200, b"[" * (17 * 2**20), "upstream_garbled", id="far too much"),
    ],
)
async def test_an_invalid_model_list_is_an_error(
    status: int, body: bytes, code: str
) -> None:
    asker = Asker(canned(status, body), "http://fake.test/v1")
    with pytest.raises(UpstreamError, match=r"^fake: ") as caught:
        await asker.upstream.models()
    assert caught.value.code == code


def paged(*pages: str) -> Asker:
    """Ask for a list in the trial dialect, of which the pages are these."""
    answers = iter(pages)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(next(answers).encode()))

    asker = Asker(Canned(answer), "http://fake.test/v1")
    api = Api(TrialDialect(), "http://fake.test")
    asker.upstream = HttpUpstream(UpstreamSpec("fake", (api,)), Canned(answer), Key())
    return asker


def page(name: str, following: str = "") -> str:
    entry = {"called": name, "window": 1000, "sees": None}
    return json.dumps({"entries": [entry], "next": following})


@pytest.mark.parametrize(
    ("pages", "models"),
    [
        pytest.param([page("a", "2"), page("b", "3"), page("c")], "abc", id="three"),
        pytest.param([page("a", "2"), page("b", "2")], "ab", id="one for ever"),
        pytest.param([page("a", "2"), page("a")], "a", id="a model twice"),
        pytest.param([page(str(n), f"{n}") for n in range(99)], None, id="too many"),
    ],
)
async def test_a_list_of_models_has_pages(pages: list[str], models: str | None) -> None:
    upstream = paged(*pages).upstream
    found = await upstream.models()
    assert found == ([*models] if models else [str(n) for n in range(20)])
    assert upstream.known.facts(found[0]).window == 1000


async def test_what_an_api_serves_is_forwarded_with_the_headers_given(
    fake: FakeUpstream, asker: Asker
) -> None:
    headers = {"anthropic-beta": "a,b"}
    async with asker.upstream.forward("chat/completions", b"{}", headers) as answer:
        assert [read async for read in answer.reads]
    assert fake.headers[0]["anthropic-beta"] == "a,b"
    assert asker.upstream.serves("chat/completions", "m")


async def test_a_model_is_not_forwarded_to_an_api_in_which_it_cannot_be_asked(
    transports: Transports,
) -> None:
    trial = Api(TrialDialect(), "http://fake.test/trial")
    upstream = Asker(transports, "http://fake.test/v1", others=(trial,)).upstream
    upstream.known.set_listed([ModelFacts("picky", dialect="trial")])
    assert upstream.serves("chat/completions", "other")
    assert not upstream.serves("chat/completions", "picky")
    assert not upstream.serves("messages", "other")
