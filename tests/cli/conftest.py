"""Commands run inside the test, through the program's own entry."""

import gc
import io
import logging
import socket
import sys
from collections.abc import Iterator

import pytest

from byok.cli import main
from tests.fakes.commands import Cli, Done


@pytest.fixture
def unused_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let byok's port be one where nobody listens, whoever has the usual one."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        monkeypatch.setenv("BYOK_SERVER__PORT", str(sock.getsockname()[1]))


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    """Run byok with these arguments, and standard input that is no terminal."""
    monkeypatch.setenv("COLUMNS", "100")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*arguments: object, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "argv", ["byok", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            with pytest.raises(SystemExit) as caught:
                main()
        finally:
            gc.enable()  # only the daemon does so itself
        out, err = capsys.readouterr()
        code = caught.value.code
        assert isinstance(code, int)
        return Done(code, out, err)

    yield run
    for handler in root.handlers:  # those of `byok serve`
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
