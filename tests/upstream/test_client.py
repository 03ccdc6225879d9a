"""Asking an upstream over real sockets: repetitions, refusals, broken answers."""

import asyncio
import gzip
import json
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import httpx
import pytest

from byok.core.errors import (
    KeyMissing,
    UpstreamError,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from byok.core.events import Finish, FinishReason, Notice, StreamEvent, TextDelta, Usage
from byok.dialects.model_facts import ModelFacts
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import MAX_ANSWER_BYTES, HttpUpstream
from byok.upstream.http_call import Timeouts
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import CHAT, HI, OK, Asker, Key
from tests.fakes.lister import Canned
from tests.fakes.patience import PATIENCE
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    dead_url,
    delta,
    event,
    refusal,
)


@pytest.fixture
def asker(fake: FakeUpstream, transports: Transports) -> Asker:
    return Asker(transports, fake.url)


RST = Script(before_head=True)
RST_AFTER_HEAD = Script([], end="reset")


async def test_an_answer_streams_as_events(fake: FakeUpstream, asker: Asker) -> None:
    assert await asker.ask() == HI
    assert asker.upstream.name == "fake"
    (request,), (headers,) = fake.requests, fake.headers
    assert request["model"] == "m"
    assert request["messages"] == [{"role": "user", "content": "Hi?"}]
    assert headers["Accept-Encoding"] == "identity"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers


async def test_an_answer_without_streaming_gives_the_same_events(
    fake: FakeUpstream, asker: Asker
) -> None:
    body = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}
    fake.play(Script([json.dumps(body).encode()], headers={}))
    assert await asker.ask() == HI


async def test_extra_headers_and_extra_body_are_sent(
    fake: FakeUpstream, transports: Transports
) -> None:
    asker = Asker(transports, fake.url, headers={"X-Team": "a"}, extra_body={"seed": 7})
    await asker.ask()
    assert httpx.Headers(fake.headers[0])["X-Team"] == "a"
    assert fake.requests[0]["seed"] == 7


# Repetitions


@pytest.mark.parametrize(
    ("scripts", "requests"),
    [
        pytest.param([refusal(429), OK], 2, id="429"),
        pytest.param([refusal(500), OK], 2, id="500"),
        pytest.param([refusal(503), refusal(502), OK], 3, id="503 and 502"),
        pytest.param([RST, OK], 2, id="RST before the head"),
        pytest.param([RST_AFTER_HEAD, OK], 2, id="RST after the head"),
        pytest.param([RST, refusal(529), OK], 3, id="RST and 529"),
    ],
)
async def test_retry_after_a_failure_before_the_first_event(
    fake: FakeUpstream, asker: Asker, scripts: list[Script], requests: int
) -> None:
    fake.play(*scripts)
    assert await asker.ask() == HI
    assert len(fake.requests) == requests
    at_once = int(scripts[0] in (RST, RST_AFTER_HEAD))
    assert len(asker.slept) == requests - 1 - at_once
    assert all(0 <= seconds <= 8 for seconds in asker.slept)
    assert fake.requests[0] == fake.requests[-1]


@pytest.mark.parametrize(
    ("script", "requests", "code"),
    [
        pytest.param(refusal(503), 16, "upstream_failed", id="503 for ever"),
        pytest.param(refusal(500), 2, "upstream_failed", id="500 twice"),
        pytest.param(refusal(429), 16, "upstream_rate_limit", id="429 for ever"),
        pytest.param(RST, 3, "upstream_cut", id="RST for ever"),
        pytest.param(refusal(403), 1, "upstream_auth", id="403"),
        pytest.param(refusal(404), 1, "upstream_not_found", id="404"),
        pytest.param(refusal(400), 1, "upstream_refused", id="400"),
        pytest.param(
            refusal(429, "exceeded your current quota"), 1, "upstream_quota", id="quota"
        ),
    ],
)
@pytest.mark.case("F09")
async def test_retry_ends_after_the_last_attempt(
    fake: FakeUpstream, asker: Asker, script: Script, requests: int, code: str
) -> None:
    fake.play(script)
    _, error = await asker.fail()
    assert error.code == code
    assert len(fake.requests) == requests


def in_stream(message: str, **fields: Any) -> Script:
    """Script a refusal as the first event of an answer with status 200."""
    return Script([event({"error": {"message": message, **fields}})])


COUNTED = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}})
BLANK = Script([delta(content=""), delta(finish="stop"), COUNTED, DONE])


@pytest.mark.parametrize(
    ("scripts", "requests"),
    [
        pytest.param([in_stream("Overloaded", type="overloaded_error"), OK], 2),
        pytest.param([in_stream("No", code="engine_overloaded")] * 2 + [OK], 3),
        pytest.param([in_stream("No", code=503, status="UNAVAILABLE"), OK], 2),
        pytest.param([in_stream("Sorry", code=529), OK], 2),
        pytest.param([in_stream("Internal error"), OK], 2),
        pytest.param([Script([DONE]), OK], 2, id="nothing but the end"),
        pytest.param([Script([]), OK], 2, id="nothing at all"),
        pytest.param([Script([delta(content="")]), OK], 2, id="cut before a word"),
        pytest.param([Script([b'data: {"cho']), OK], 2, id="cut in the first event"),
    ],
)
async def test_retry_of_an_answer_that_fails_before_anything_was_shown(
    fake: FakeUpstream, asker: Asker, scripts: list[Script], requests: int
) -> None:
    fake.play(*scripts)
    assert await asker.ask() == HI
    assert len(fake.requests) == requests


async def test_retry_of_an_empty_answer_counts_its_tokens(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(BLANK, OK)
    assert await asker.ask() == [HI[0], Usage(9), HI[1]]
    fake.play(BLANK)
    assert await asker.ask() == [Usage(18), Finish(FinishReason.STOP)]
    assert len(fake.requests) == 4


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(in_stream("Bad", type="invalid_request_error"), id="bad request"),
        pytest.param(in_stream("insufficient_quota"), id="no money"),
        pytest.param(in_stream("Invalid API key"), id="bad key"),
        pytest.param(in_stream("content_filter"), id="filter"),
        pytest.param(Script([b"<html>"], headers={}), id="a web page"),
    ],
)
async def test_no_retry_of_what_the_same_request_will_meet_again(
    fake: FakeUpstream, asker: Asker, script: Script
) -> None:
    fake.play(script, OK)
    await asker.fail()
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("shown", "given"),
    [
        (delta(content="One"), [TextDelta("One")]),
        (delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f"}}]), []),
    ],
    ids=["text", "a tool call"],
)
async def test_no_retry_after_a_part_of_the_answer(
    fake: FakeUpstream, asker: Asker, shown: bytes, given: list[StreamEvent]
) -> None:
    fake.play(Script([shown, event({"error": {"message": "Overloaded"}})]), OK)
    events, error = await asker.fail()
    assert (events, error.code) == (given, "upstream_overloaded")
    assert len(fake.requests) == 1


async def test_no_retry_after_the_first_event(fake: FakeUpstream, asker: Asker) -> None:
    fake.play(Script([delta(content="One")], end="reset"), OK)
    events, error = await asker.fail()
    assert events == [TextDelta("One")]
    assert error.code == "upstream_cut"
    assert len(fake.requests) == 1


@pytest.mark.case("F01")
async def test_a_refused_connection_is_retried_twice(transports: Transports) -> None:
    asker = Asker(transports, dead_url())
    _, error = await asker.fail()
    assert isinstance(error, UpstreamUnreachable)
    assert error.code == "upstream_connect"
    assert len(asker.slept) == 2


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


async def test_a_model_that_reasons_may_be_silent_for_longer(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([0.4, delta(content="Hi."), 0.4, delta(finish="stop"), DONE]))
    brief = Timeouts(first_byte=0.1, idle=0.1)
    facts = {"m": ModelFacts("m", thinking=True)}
    assert await Asker(transports, fake.url, timeouts=brief, facts=facts).ask() == HI
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("header", "slept"),
    [("7", [7.0]), ("2", [2.0]), ("0", []), (formatdate(0, usegmt=True), [])],
)
@pytest.mark.case("F09")
async def test_retry_after_is_honoured_and_a_long_wait_is_told(
    fake: FakeUpstream, asker: Asker, header: str, slept: list[float]
) -> None:
    fake.play(refusal(429, headers={"Retry-After": header}), OK)
    told = Notice("fake: its rate limit is reached, waiting 7 s.", at_once=True)
    assert await asker.ask() == ([told, *HI] if header == "7" else HI)
    assert asker.slept == slept


@pytest.mark.case("F09")
async def test_a_long_retry_after_is_passed_on(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(429, headers={"Retry-After": "3600"}), OK)
    error = await asker.refused()
    assert (error.status, error.retry_after) == (429, 3600)
    assert asker.slept == []


# Parameters that an upstream dislikes


async def test_a_refused_parameter_is_dropped_once_and_remembered(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(400, "Unsupported parameter: 'parallel_tool_calls'"), OK)
    assert await asker.ask() == HI
    assert await asker.ask() == HI
    first, second, third = fake.requests
    assert first.pop("parallel_tool_calls") is False
    assert second == third == first
    assert asker.slept == []


async def test_a_remedy_is_remembered_for_one_model(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(400, "temperature is not supported"), OK)
    await asker.ask()
    async with aclosing(ask(Destination(asker.upstream, "other"), CHAT)) as stream:
        await anext(stream)
    assert ["temperature" in body for body in fake.requests] == [True, False, True]


async def test_several_refused_parameters_are_dropped_one_after_the_other(
    fake: FakeUpstream, asker: Asker
) -> None:
    names = ["temperature", "stream_options", "tool_choice", "parallel_tool_calls"]
    statuses = (422, 400, 404, 422)
    fake.play(
        *(
            refusal(status, f"{name}: not permitted")
            for status, name in zip(statuses, names, strict=True)
        ),
        OK,
    )
    assert await asker.ask() == HI
    assert len(fake.requests) == 5
    assert not fake.requests[-1].keys() & set(names)


async def test_a_refused_max_tokens_is_renamed(
    fake: FakeUpstream, asker: Asker
) -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."
    fake.play(refusal(400, message), OK)
    assert await asker.ask() == HI
    caps = [{k: v for k, v in b.items() if "max_" in k} for b in fake.requests]
    assert caps == [{"max_tokens": 9}, {"max_completion_tokens": 9}]


@pytest.mark.case("F09")
async def test_a_refusal_that_no_remedy_helps_is_passed_on(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(400, "max_tokens or max_completion_tokens or temperature"))
    error = await asker.refused()
    assert error.upstream_status == 400
    assert len(fake.requests) == 4


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


async def test_an_api_key_is_sent_as_a_bearer_token(
    fake: FakeUpstream, asker: Asker
) -> None:
    asker.key.key = "sk-1"
    await asker.ask()
    assert fake.headers[0]["Authorization"] == "Bearer sk-1"


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
        pytest.param([b"<!DOCTYPE html>"], {}, "upstream_not_json", id="a web page"),
        pytest.param([], {}, "upstream_empty", id="nothing"),
        pytest.param([b": ping\n\n"], {}, "upstream_empty", id="only comments"),
        pytest.param([DONE], {}, "upstream_empty", id="only [DONE]"),
        pytest.param(
            [b"x"], {"Content-Encoding": "br"}, "upstream_encoding", id="brotli"
        ),
        pytest.param(
            [b"oops"], {"Content-Encoding": "gzip"}, "upstream_encoding", id="no gzip"
        ),
        pytest.param(
            [gzip.compress(b"\0" * 2**23)],
            {"Content-Encoding": "gzip"},
            "upstream_event_too_large",
            id="a bomb",
        ),
        pytest.param(
            [event({"error": {"message": "Over"}})], {}, "upstream_failed", id="error"
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
        pytest.param(
            b'{"error": "No ' + b"x" * 200_000 + b'"}', "No …", id="long JSON"
        ),
        pytest.param(b"No way. " * 20_000, "No way. No way.", id="long text"),
        pytest.param(b"y" * 200_000, "…", id="one long word, which may be a key"),
        pytest.param(b"<html>" + b"z" * 200_000, "a web page", id="a long web page"),
        pytest.param(b"\xff\xfe", "", id="no text"),
        pytest.param(b"", "no reason given", id="nothing"),
        pytest.param(b"[" * 5000, "", id="brackets"),
    ],
)
async def test_an_odd_refusal_becomes_a_short_sentence(
    fake: FakeUpstream, asker: Asker, body: bytes, said: str
) -> None:
    fake.play(Script([body], status=400, headers={}))
    error = await asker.refused()
    assert said in str(error)
    assert error.upstream_status == 400


@pytest.mark.case("F10")
async def test_a_gzip_refusal_is_read(fake: FakeUpstream, asker: Asker) -> None:
    packed = gzip.compress(b'{"error": {"message": "Too shy"}}')
    fake.play(Script([packed], 400, {"Content-Encoding": "gzip"}))
    assert "Too shy" in str(await asker.refused())


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(event({"error": {"message": "Over"}}), id="an error event"),
        pytest.param(b"data: oops\n\n", id="garbage"),
    ],
)
async def test_events_before_an_error_in_the_same_read_are_kept(
    fake: FakeUpstream, asker: Asker, after: bytes
) -> None:
    fake.play(Script([delta(content="One") + delta(content="Two") + after]))
    events, _ = await asker.fail()
    assert events == [TextDelta("OneTwo")]
    assert len(fake.requests) == 1


async def test_a_stream_that_ends_early_is_an_error(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play([delta(content="One")])
    events, error = await asker.fail()
    assert events == [TextDelta("One")]
    assert error.code == "upstream_cut"


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


async def test_closing_the_stream_disconnects(fake: FakeUpstream, asker: Asker) -> None:
    fake.play(Script([delta(content="One")], end="hang"))
    stream = ask(Destination(asker.upstream, "m"), CHAT)
    assert await anext(stream) == [TextDelta("One")]
    await stream.aclose()
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


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


async def test_a_finished_answer_keeps_the_connection(
    fake: FakeUpstream, asker: Asker
) -> None:
    for _ in range(3):
        assert await asker.ask() == HI
    assert not fake.hung_up.is_set()
    assert fake.open == 0


# Models


def canned(status: int, body: bytes) -> Canned:
    """Answer everything so; the body is still to be read, as from a socket."""
    return Canned(lambda _: httpx.Response(status, stream=httpx.ByteStream(body)))


async def test_models_are_listed(fake: FakeUpstream, asker: Asker) -> None:
    fake.models = ["a", "b"]
    asker.key.key = "sk-1"
    assert await asker.upstream.models() == ["a", "b"]
    assert fake.list_headers[0]["Authorization"] == "Bearer sk-1"


async def test_a_model_list_may_hold_context_windows() -> None:
    rows = b'{"data": [{"id": "a", "context_length": 32768}, {"id": "b"}]}'
    upstream = Asker(canned(200, rows), "http://fake.test/v1").upstream
    assert await upstream.known.window("a") == 0
    await upstream.models()
    assert [await upstream.known.window(m) for m in "abc"] == [32_768, 0, 0]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        pytest.param(404, b"", "upstream_not_found", id="404"),
        pytest.param(401, b"", "upstream_auth", id="401"),
        pytest.param(200, b"<html>", "upstream_garbled", id="a web page"),
        pytest.param(200, b"", "upstream_garbled", id="nothing"),
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


async def test_a_model_list_without_model_ids_is_empty() -> None:
    asker = Asker(canned(200, b'{"data": 7}'), "http://fake.test/v1")
    assert await asker.upstream.models() == []


async def test_an_invalid_base_url_is_an_error(transports: Transports) -> None:
    asker = Asker(transports, "http://[bad/v1")
    _, error = await asker.fail()
    assert isinstance(error, UpstreamUnreachable | UpstreamGarbled)


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
