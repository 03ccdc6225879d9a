"""Commands beside which nobody listens."""

import socket

import pytest


@pytest.fixture
def unused_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let byok's port be one where nobody listens, whoever has the usual one."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        monkeypatch.setenv("BYOK_SERVER__PORT", str(sock.getsockname()[1]))
