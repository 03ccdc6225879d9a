"""A daemon proves that it is this user's before anybody sends it anything."""

import asyncio
import secrets
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from byok.core.daemon.challenge import PATH, compute_proof, verify_daemon
from byok.core.daemon.instance import Instance
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.patience import PATIENCE

NONCE = "0123456789abcdef"


def secret() -> str:
    return read_token(find_paths().owner_secret)


def instance_of(editor: Editor) -> Instance:
    return Instance(1, editor.daemon.port, editor.daemon.instance, 0.0)


async def challenged(editor: Editor, body: Any) -> Answer:
    return await editor.post(PATH, body, headers={"Authorization": ""})


async def test_challenge_proves_the_daemon_without_sending_the_token() -> None:
    async with running(upstream="demo") as editor:
        told = (await challenged(editor, {"nonce": NONCE})).json
        port, name = editor.daemon.port, editor.daemon.instance
        assert told == {
            "instance": name,
            "proof": compute_proof(secret(), NONCE, port, name),
        }
        assert secret() not in str(told)
        assert await asyncio.to_thread(verify_daemon, instance_of(editor), secret())


@pytest.mark.case("B108")
async def test_challenge_with_another_token_or_instance_fails() -> None:
    async with running(upstream="demo") as editor:
        own = instance_of(editor)
        stranger = Instance(own.pid, own.port, "other", 0.0)
        assert not await asyncio.to_thread(verify_daemon, own, secrets.token_urlsafe())
        assert not await asyncio.to_thread(verify_daemon, stranger, secret())


async def test_an_odd_challenge_and_a_web_page_are_refused() -> None:
    odd: list[Any] = [None, 1, "short", "x" * 129, "0123456789abcde\n", "é" * 16, ["a"]]
    page = {"Authorization": "", "Origin": "https://evil.example"}
    async with running(upstream="demo") as editor:
        for nonce in odd:
            answer = await challenged(editor, {"nonce": nonce})
            assert (answer.status, answer.json["error"]["code"]) == (422, "bad_field")
        assert (await challenged(editor, {"nonce": "x" * 2000})).status == 413
        assert (await editor.post(PATH, {"nonce": NONCE}, headers=page)).status == 403


@pytest.fixture
def squatter() -> Iterator[socket.socket]:
    """Another program on the port; it answers to nobody."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


@pytest.mark.case("B108")
async def test_challenge_never_shows_the_token_to_a_squatter(
    squatter: socket.socket,
) -> None:
    port = squatter.getsockname()[1]
    squatter.setblocking(False)
    asking = asyncio.ensure_future(
        asyncio.to_thread(
            verify_daemon, Instance(1, port, "a", 0.0), "the-token-itself"
        )
    )
    loop = asyncio.get_running_loop()
    connection, _ = await loop.sock_accept(squatter)
    with connection:
        connection.setblocking(False)
        seen = b""
        while b"}" not in seen:
            seen += await loop.sock_recv(connection, 4096)
        body = b'{"instance":"a","proof":"' + b"0" * 64 + b'"}'
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        await loop.sock_sendall(connection, head + body)
        assert not await asyncio.wait_for(asking, PATIENCE)
    assert b"the-token-itself" not in seen
