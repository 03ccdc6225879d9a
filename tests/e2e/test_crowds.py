"""Too much at once, or too slowly: sockets, requests, bytes, open files, memory."""

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from byok.core.daemon.token import rotate_token
from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.patience import PATIENCE, until
from tests.fakes.program import Program, configure, serving
from tests.fakes.raw import RawConnection, connected, filled, request
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

resource = pytest.importorskip("resource", reason="this system has no such limits")
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
MIB = 2**20
QUICK = Timing(
    head_after=0.2, grace=0.3, last_words=0.4, head=1.0, body_gap=1.0, patience=0.5
)
CHAT = request(target=b"/chat-stream", body=b'{"message": "Flood."}')


@asynccontextmanager
async def crowd(port: int, size: int) -> AsyncIterator[list[RawConnection]]:
    """Open many connections."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connected(port)) for _ in range(size)]


async def closed(connection: RawConnection) -> bool:
    with contextlib.suppress(ConnectionError):
        await connection.rest()
    return True


@pytest.mark.case("F17")
@pytest.mark.parametrize(
    "half",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"POST /chat-stream HT", id="half-a-line"),
        pytest.param(b"POST /chat HTTP/1.1\r\nHost: HOST\r\nX-Half", id="half-a-head"),
        pytest.param(request(length=b"Content-Length: 9", body=b"{"), id="half-a-body"),
    ],
)
async def test_hundreds_that_say_half_are_closed_and_keep_nobody_waiting(
    half: bytes,
) -> None:
    async with running(upstream="demo", timing=QUICK) as editor:
        port = editor.daemon.port
        async with crowd(port, 150) as half_open:
            for connection in half_open:
                await connection.send(filled(half, port, editor.token))
            for _ in range(5):
                reply = await asyncio.wait_for(editor.chat("Still there?"), PATIENCE)
                assert reply.last["stop_reason"] == 1
            ends = [closed(connection) for connection in half_open]
            assert all(await asyncio.wait_for(asyncio.gather(*ends), PATIENCE))


async def test_deadline_ends_with_a_complete_head() -> None:
    async with (
        running(upstream="demo", timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        whole = filled(request(), editor.daemon.port, editor.token)
        await connection.send(whole)
        assert (await connection.answer()).status == 200
        await asyncio.sleep(2 * QUICK.head)
        await connection.send(whole)
        assert (await connection.answer()).status == 200


@pytest.mark.case("F17")
async def test_deadline_of_a_request_body_is_408() -> None:
    async with (
        running(upstream="demo", timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        half = request(body=b'{"message": "ha', length=b"Content-Length: 100")
        await connection.send(filled(half, editor.daemon.port, editor.token))
        refused = await connection.answer()
        assert (refused.status, refused.code) == (408, "body_timeout")


@pytest.mark.case("F16")
async def test_deadline_of_a_client_that_does_not_read(
    fake: FakeUpstream,
) -> None:
    flood = [delta(content="x" * 60_000)] * 250
    fake.play(Script(flood, end="hang"), answer("Fine."))
    settings = {**settings_for(fake.url), "limits": {"streams": 1, "waiting": 0}}
    async with (
        running(settings, timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        asked = request(target=b"/chat-stream", body=b'{"message": "Flood."}')
        await connection.send(filled(asked, editor.daemon.port, editor.token))
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
        assert (await editor.chat("And now?")).text == "Fine."


@pytest.mark.case("B94")
async def test_a_thousand_requests_on_one_connection_are_answered_in_order() -> None:
    paths = [b"/health", b"/chat", b"/get-models", b"/no/such-stream"]
    async with running(upstream="demo") as editor:
        port = editor.daemon.port
        data = b"".join(
            filled(request(target=path), port, editor.token) for path in paths[1:]
        )
        async with connected(port) as connection:
            sending = asyncio.ensure_future(connection.send(data * 333))
            for _ in range(333):
                chat, models, stream = [await connection.answer() for _ in range(3)]
                assert "stop_reason" in chat.json
                assert "default_model" in models.json
                assert stream.body == b""
            await sending


@pytest.mark.case("B94")
async def test_requests_that_wait_behind_a_slow_one_are_not_begun(
    fake: FakeUpstream, editor: Editor
) -> None:
    go_on = asyncio.Event()
    fake.play(Script([go_on, *answer("First.")]), answer("Later."))
    port = editor.daemon.port
    one = filled(request(body=b'{"message": "x"}'), port, editor.token)
    async with connected(port) as connection:
        await connection.send(one * 50)
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        assert (await editor.chat()).text == "Later."  # which came behind the fifty
        assert len(fake.requests) == 2
        go_on.set()
        texts = [(await connection.answer()).json["text"] for _ in range(50)]
    assert texts == ["First."] + ["Later."] * 49


@linux
@pytest.mark.case("B105")
async def test_ever_new_paths_and_headers_leave_no_trace_in_memory(
    tmp_path: Path,
) -> None:
    async def odd(program: Program, count: int, begin: int) -> None:
        async with connected(program.port) as connection:
            for n in range(begin, begin + count):
                name = b"%d" % n
                data = request(
                    b"X-Odd-%b: %b" % (name, name * 50), target=b"/odd/%b" % name * 20
                )
                await connection.send(program.filled(data))
                assert (await connection.answer()).status == 200

    async with serving(tmp_path / "home", "--upstream", "demo") as program:
        await odd(program, 1200, 0)  # until every pool and table is filled
        before = program.rss
        await odd(program, 2000, 10_000)
        assert program.rss - before < 3 * MIB
        assert program.log_file.stat().st_size < MIB * 3 // 4
        await program.check_well()


class Flood:
    """Pieces of an answer that counts how many were taken."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._size):
            self.taken += 1
            yield delta(content="x" * 60_000)

    async def stuck(self) -> None:
        """Wait until nobody takes any more."""
        before = -1
        while self.taken > before:
            before = self.taken
            await asyncio.sleep(0.3)


@linux
@pytest.mark.case("F16")
async def test_clients_that_do_not_read_stop_the_upstream_and_not_the_daemon(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home, size = tmp_path / "home", 8
    configure(home, fake.url)
    async with serving(home) as program:
        await program.check_well()
        flood = Flood(1000)  # 60 MB for each client
        fake.play(Script(flood, end="hang"))
        before = program.rss
        async with crowd(program.port, size) as clients:
            for client in clients:
                await client.send(program.filled(CHAT))
            await until(lambda: fake.open == size)
            await asyncio.wait_for(flood.stuck(), PATIENCE)
            assert flood.taken < size * 500
            assert program.rss - before < size * 20 * MIB
            assert fake.open == size
            for client in clients:
                client.abort()
        fake.play(answer("Hi."))
        await program.check_well()


@pytest.mark.case("F18")
async def test_more_connections_than_files_are_turned_away_quietly(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    room = asyncio.Semaphore(8)  # all speak before the time for a head has passed

    async def is_served(program: Program, client: RawConnection) -> bool:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            async with room:
                await client.send(program.filled(request(body=b'{"message":"x"}')))
                return (await client.answer()).status == 200
        return False

    async with serving(home, limits="RLIMIT_NOFILE=160") as program:
        async with crowd(program.port, 400) as clients:
            asking = (is_served(program, client) for client in clients)
            served = sum(await asyncio.gather(*asking))
            assert 40 <= served <= 80  # the other half is for upstreams
        assert len(program.err.splitlines()) < served * 4 + 50
        assert b"accept" not in program.err
        await until(partial(_served, program))
        await program.check_well()


async def _served(program: Program) -> bool:
    try:
        return (await program.ask(request())).status == 200
    except (ConnectionError, asyncio.IncompleteReadError):
        return False


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no further file or socket."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Those three are always open; of any other, one may be closed meanwhile.
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.case("F19")
async def test_without_a_file_left_the_upstream_is_said_to_be_away(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(*[Script([delta(content="One")], end="hang")] * 3, answer("Hi."))
    await editor.services.catalog.settle(PATIENCE)  # its file is closed again
    held = [asyncio.ensure_future(editor.chat()) for _ in range(3)]
    await until(lambda: fake.open == len(held))  # no connection is left over
    await editor.post("/find-missing")  # but one to the daemon
    with no_more_files():
        reply = await editor.post("/chat", {"message": "x"})
        assert (reply.status, reply.json["error"]["retryable"]) == (422, True)
        assert (await editor.post("/find-missing")).status == 200
    assert (await editor.chat("And now?")).text == "Hi."
    for one in held:
        one.cancel()


@pytest.mark.case("F19")
async def test_a_token_rotated_while_no_file_can_be_opened_counts_afterwards(
    clean_environment: Path,
) -> None:
    async with running(upstream="demo") as editor:
        await editor.post("/find-missing")
        editor.token = rotate_token(clean_environment / "state" / "token")
        with no_more_files():
            assert (await editor.post("/find-missing")).status == 401
        assert (await editor.post("/find-missing")).status == 200


@linux
@pytest.mark.case("F40")
async def test_large_bodies_in_little_memory_do_not_end_the_daemon(
    tmp_path: Path,
) -> None:
    large = request(body=b'{"message": "x", "z": "%b"}' % (b"y" * 40 * MIB))
    async with serving(tmp_path / "home", "--upstream", "demo") as program:
        await program.check_well()  # whose threads have their memory now
        pid = program.process.pid
        status = Path(f"/proc/{pid}/status").read_text()
        found = re.search(r"^VmSize:\s+(\d+) kB$", status, re.MULTILINE)
        assert found
        room = int(found[1]) * 1024 + 150 * MIB
        resource.prlimit(pid, resource.RLIMIT_AS, (room, room))

        async def ask() -> int:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                return (await program.ask(large)).status
            return 0  # the connection was closed in the middle

        statuses = await asyncio.gather(*(ask() for _ in range(6)))
        assert set(statuses) <= {0, 200, 500, 503}
        assert (await program.ask(request(body=b'{"message": "x"}'))).status == 200
        assert program.process.returncode is None


def count_open(program: Program) -> int:
    """Count what a process has open, but not the files of its home, such as a log."""
    links = Path(f"/proc/{program.process.pid}/fd").iterdir()
    home = program.home.resolve()
    return sum(not link.resolve().is_relative_to(home) for link in links)


@linux
@pytest.mark.case("F02", "F15", "F17")
async def test_after_many_broken_exchanges_nothing_stays_open(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    async def leave(program: Program, data: bytes) -> None:
        async with connected(program.port) as client:
            await client.send(program.filled(data))
            await asyncio.sleep(0.02)
            client.abort()

    configure(tmp_path / "home", fake.url)
    cut = Script([delta(content="One")], end="reset")
    hung = Script([delta(content="One")], end="hang")
    half = CHAT[: len(CHAT) // 2]
    async with serving(tmp_path / "home") as program:
        await program.check_well()
        try:
            before = count_open(program)
        except PermissionError:
            pytest.skip("only root may look at the files of a process that hides them")
        for script in (cut, hung, Script(before_head=True)):
            fake.play(script)
            data = [CHAT, half, b"", b"\0\r\n\r\n"] * 8
            await asyncio.gather(*(leave(program, one) for one in data))
        fake.play(answer("Hi."))
        await program.check_well()
        await until(lambda: count_open(program) <= before + 2)
        assert fake.open == 0
