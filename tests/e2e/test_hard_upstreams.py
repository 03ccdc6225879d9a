"""Upstreams that lie about their name, never end, never begin, or send too much."""

import asyncio
import contextlib
import gzip
import json
import socket
import sys
from collections.abc import Iterable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart
from byok.core.errors import UpstreamError
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import Timeouts
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.bodies import tool
from tests.fakes.cases import case_param
from tests.fakes.certificates import certificate, resolve_here, secure
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.program import Program, configure, serving
from tests.fakes.raw import put, request
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
MIB = 2**20
JSON = {"Content-Type": "application/json"}
CHAT = request(body=b'{"message": "x"}')


# Names and certificates.


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve every name of the .test domain to this machine, and .invalid to none."""
    resolve_here(monkeypatch)


@pytest.mark.usefixtures("addresses")
@pytest.mark.case("F01", "F44")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the refused handshake
async def test_tls_certificate_that_nobody_trusts_is_refused(tmp_path: Path) -> None:
    file = certificate(tmp_path, "model.test")
    async with (
        secure(file, "model.test") as (upstream, url),
        running(settings_for(url)) as editor,
    ):
        reply = await asyncio.wait_for(editor.chat(), PATIENCE)
    assert reply.last["error"]["code"] == "upstream_tls"
    assert upstream.requests == []


@pytest.mark.usefixtures("addresses")
@pytest.mark.case("F01", "F44")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_tls_certificate_that_is_trusted_counts_for_its_own_name_only(
    tmp_path: Path,
) -> None:
    file = certificate(tmp_path, "model.test")
    trusted = {"ca_file": str(file)}
    async with secure(file, "model.test") as (upstream, url):
        async with running(settings_for(url, **trusted)) as editor:
            assert (await editor.chat()).text == "Hi."
        other = url.replace("model.test", "other.test")
        async with running(settings_for(other, **trusted)) as editor:
            reply = await asyncio.wait_for(editor.chat(), PATIENCE)
    assert reply.last["error"]["code"] == "upstream_tls"
    assert len(upstream.requests) == 1


@pytest.mark.usefixtures("addresses")
@pytest.mark.case("F01")
async def test_dns_failure_is_reported() -> None:
    async with running(settings_for("https://model.invalid/v1")) as editor:
        reply = await asyncio.wait_for(editor.chat(), PATIENCE)
    assert reply.last["error"]["code"] == "upstream_name"
    assert "model.invalid" in reply.text


@pytest.mark.case("F44")
async def test_an_upstream_may_be_on_ipv6_alone() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no ::1")
    async with (
        FakeUpstream("::1") as upstream,
        running(settings_for(upstream.url)) as editor,
    ):
        assert (await editor.chat()).text == "Hi."


# Redirects.


@pytest.mark.case("B62")
@pytest.mark.parametrize("status", [302, 308])
@pytest.mark.parametrize("place", ["another port", "another host", "the same place"])
async def test_redirect_is_not_followed(
    fake: FakeUpstream, status: int, place: str
) -> None:
    async with FakeUpstream() as canary:
        path = "/models" if status < 307 else "/chat/completions"
        host = fake if place == "the same place" else canary
        location = host.url + path
        if place == "another host":
            location = location.replace("127.0.0.1", "localhost")
        fake.play(Script([], status, {"Location": location}))
        async with running(settings_for(fake.url)) as editor:
            refused = await put(editor, CHAT)
            assert (refused.status, refused.code) == (422, "upstream_redirect")
        assert canary.requests == canary.list_headers == []
        assert len(fake.requests) == 1
        assert len(fake.list_headers) < 2  # the list of models is asked for once


@pytest.mark.usefixtures("addresses")
@pytest.mark.case("B62")
async def test_redirect_from_https_to_http_is_not_followed(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    file = certificate(tmp_path, "model.test")
    location = {"Location": f"{fake.url}/chat/completions"}
    async with secure(file, "model.test") as (upstream, url):
        upstream.play(Script([], 308, location))
        async with running(settings_for(url, ca_file=str(file))) as editor:
            assert (await put(editor, CHAT)).code == "upstream_redirect"
    assert fake.requests == []


# Statuses.


def busy(status: int, wait: str) -> Script:
    return Script([b"{}"], status, {**JSON, **({"Retry-After": wait} if wait else {})})


IN_AN_HOUR = formatdate(4102444800, usegmt=True)


@pytest.mark.parametrize(
    ("script", "status", "requests"),
    [
        case_param(busy(429, "3600"), 429, 1, id="F09-429-in-an-hour"),
        case_param(busy(429, IN_AN_HOUR), 429, 1, id="F09-429-at-a-date"),
        case_param(busy(429, "0"), 429, 1, id="F09-429-at-once"),
        case_param(busy(500, "0"), 422, 1, id="F09-500"),
        case_param(busy(502, "0"), 422, 1, id="F09-502"),
        case_param(busy(503, "0"), 422, 1, id="F09-503"),
        case_param(busy(504, "0"), 422, 1, id="F09-504"),
        case_param(busy(529, "0"), 422, 1, id="F09-529"),
        case_param(busy(400, ""), 422, 1, id="F09-400"),
    ],
)
async def test_refusal_has_its_status_and_its_attempts(
    fake: FakeUpstream, editor: Editor, script: Script, status: int, requests: int
) -> None:
    fake.play(script)
    refused = await put(editor, CHAT)
    assert refused.status == status
    assert len(fake.requests) == requests
    assert status != 429 or refused.header("retry-after")
    assert refused.json["error"]["retryable"] is (script.status != 400)


# Silence, and what only looks like talking.


async def told(url: str, patience: Timeouts) -> tuple[str, UpstreamError]:
    """Ask an upstream directly, with limits that no setting has."""
    transports, text = Transports(), ""
    spec = UpstreamSpec("fake", (Api(OpenAIChat(), url),), timeouts=patience)
    upstream = HttpUpstream(spec, transports, Key())
    chat = ChatRequest((Message(Role.USER, (TextPart("Hi?"),)),))
    try:
        with pytest.raises(UpstreamError) as caught:
            async for batch in ask(Destination(upstream, "m"), chat):
                text += "".join(getattr(e, "text", "") for e in batch)
    finally:
        await transports.close()
    return text, caught.value


@pytest.mark.case("F06")
async def test_sse_comments_without_end_are_given_up(fake: FakeUpstream) -> None:
    drip = [piece for _ in range(400) for piece in (b": wait\n\n", 0.02)]
    fake.play(Script([delta(content="One"), *drip], end="hang"))
    patience = Timeouts(first_byte=5, idle=2, comments_only=0.3)
    text, error = await asyncio.wait_for(told(fake.url, patience), PATIENCE)
    assert (text, error.code) == ("One", "upstream_timeout")
    assert len(fake.requests) == 1


@pytest.mark.case("F06")
async def test_sse_comments_before_an_answer_are_ignored(
    fake: FakeUpstream, editor: Editor
) -> None:
    drip = [piece for _ in range(10) for piece in (b": wait\n\n", 0.02)]
    fake.play(Script([*drip, *answer("Whole.")]))
    assert (await editor.chat()).text == "Whole."


@pytest.mark.case("F05")
async def test_answer_without_end_is_limited(fake: FakeUpstream) -> None:
    drip = [piece for _ in range(400) for piece in (delta(content="a"), 0.02)]
    fake.play(Script(drip))
    text, error = await asyncio.wait_for(told(fake.url, Timeouts(total=2.0)), PATIENCE)
    assert error.code == "upstream_timeout"
    assert set(text) == {"a"}


@pytest.mark.case("F05")
async def test_connection_that_is_never_answered_is_given_up() -> None:
    asked = 0

    async def say_nothing(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal asked
        asked += bool(await reader.readuntil(b"\r\n\r\n"))
        await reader.read()  # until byok gives up
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, running(settings_for(url, model="m", timeout=1)) as editor:
        refused = await asyncio.wait_for(put(editor, CHAT), PATIENCE)
    assert (refused.status, refused.code) == (422, "upstream_timeout")
    assert asked <= 2  # the chat, and the list of models


@pytest.mark.case("F07")
async def test_answer_byte_by_byte_is_the_same(
    fake: FakeUpstream, editor: Editor
) -> None:
    whole = b"".join(answer("Slo", "w, né \U0001f600."))
    slow = [p for n in range(len(whole)) for p in (whole[n : n + 1], 0.001)]
    fake.play(Script(slow))
    reply = await editor.chat()
    assert (reply.text, reply.last["stop_reason"]) == ("Slow, né \U0001f600.", 1)


# Too much.


class Again:
    """The same piece many times, without holding them."""

    def __init__(self, piece: bytes, times: int) -> None:
        self._piece, self._times = piece, times

    def __iter__(self) -> Any:
        return (self._piece for _ in range(self._times))


def fragment(index: Any, arguments: str, **call: Any) -> bytes:
    function = {"arguments": arguments, **call.pop("function", {})}
    return delta(tool_calls=[{"index": index, "function": function, **call}])


async def memory(program: Program, stop: asyncio.Event) -> int:
    """Return the most memory that the daemon had."""
    most = program.rss
    with contextlib.suppress(FileNotFoundError):  # it has ended
        while not stop.is_set():
            most = max(most, program.rss)
            await asyncio.sleep(0.05)
    return most


TOO_LARGE = "upstream_event_too_large"
GIANTS: dict[str, tuple[Iterable[bytes], str]] = {
    "one line": (Again(b"x" * MIB, 64), TOO_LARGE),
    "one event": (Again(b"data: x\n" * 10_000, 800), TOO_LARGE),
    "comments": (Again(b": x\n\n" * 10_000, 100), "upstream_empty"),
    "events that tell nothing": (
        Again(event({"choices": [], "usage": {}}) * 2000, 50),
        "upstream_empty",
    ),
    "100,000 fragments": (
        Again(fragment(0, "x", function={"name": "view"}) * 500, 200),
        "upstream_cut",
    ),
    "a bomb of gzip": ((gzip.compress(bytes(50 * MIB), 1) for _ in "1"), TOO_LARGE),
}


@linux
@pytest.mark.case("F08")
@pytest.mark.case("F10")
async def test_giant_event_is_cut_and_costs_little_memory(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    configure(tmp_path / "home", fake.url)
    async with serving(tmp_path / "home") as program:
        await program.check_well()
        before = program.rss
        for name, (pieces, code) in GIANTS.items():
            headers = {"Content-Encoding": "gzip"} if "gzip" in name else {}
            fake.play(Script(pieces, headers=headers))
            stop = asyncio.Event()
            measuring = asyncio.ensure_future(memory(program, stop))
            reply = await program.ask(CHAT)
            stop.set()
            assert reply.json["error"]["code"] == code, name
            assert await measuring - before < 40 * MIB, name
        fake.play(answer("Hi."))
        await program.check_well()


async def calls(fake: FakeUpstream, editor: Editor, *pieces: bytes) -> Answer:
    fake.play([*pieces, delta("tool_calls"), DONE])
    return await editor.chat(tool_definitions=[tool()])


@pytest.mark.case("F08")
async def test_tool_call_of_100000_fragments_is_whole(
    fake: FakeUpstream, editor: Editor
) -> None:
    opened = fragment(0, '{"path": "', id="c", function={"name": "view"})
    rest = [fragment(0, "x") * 1000] * 100
    reply = await calls(fake, editor, opened, *rest, fragment(0, '"}'))
    [use] = reply.tool_uses
    assert json.loads(use["input_json"]) == {"path": "x" * 100_000}


@pytest.mark.case("F08")
@pytest.mark.parametrize("index", [10**9, -1, 1.5, "0", None, True, [0]])
async def test_tool_call_with_an_absurd_index_is_read(
    fake: FakeUpstream, editor: Editor, index: Any
) -> None:
    opened = fragment(index, '{"path":', id="c", function={"name": "view"})
    reply = await calls(fake, editor, opened, fragment(index, '"a"}'))
    assert [json.loads(u["input_json"]) for u in reply.tool_uses] == [{"path": "a"}]
    assert reply.last["stop_reason"] == 3


@pytest.mark.case("F08")
async def test_tool_calls_by_the_ten_thousand_are_limited(
    fake: FakeUpstream, editor: Editor
) -> None:
    many = b"".join(
        fragment(n, "{}", id=f"c{n}", function={"name": "view"}) for n in range(10_000)
    )
    reply = await calls(fake, editor, many)
    assert len(reply.tool_uses) <= 64
    assert reply.status == 200
