"""Where byok listens: loopback only, IPv4 and IPv6 on one port, within its limits."""

import errno
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import byok
from byok.core.daemon.sockets import Notifier, listen
from byok.core.errors import CannotStart
from tests.fakes.patience import PATIENCE, START
from tests.fakes.service_manager import ServiceManager


def _has_ipv6() -> bool:
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")
BOTH = [
    pytest.param("127.0.0.1", socket.AF_INET, id="IPv4"),
    pytest.param("::1", socket.AF_INET6, id="IPv6", marks=ipv6),
]


@contextmanager
def listening(port: int) -> Iterator[list[socket.socket]]:
    """Listen for the length of a block."""
    sockets = listen(port)
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


@ipv6
@pytest.mark.case("B99")
def test_port_zero_is_one_free_port_on_both_addresses() -> None:
    with listening(0) as sockets:
        names = [sock.getsockname()[:2] for sock in sockets]
    port = names[0][1]
    assert port > 0
    assert names == [("127.0.0.1", port), ("::1", port)]


@pytest.mark.parametrize(("host", "family"), BOTH)
def test_port_taken_on_either_address_is_refused(
    host: str, family: socket.AddressFamily
) -> None:
    with closing(socket.socket(family, socket.SOCK_STREAM)) as other:
        other.bind((host, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotStart) as caught:
            listen(port)
        assert str(port) in str(caught.value)
        assert host in str(caught.value)
        assert "--port" in caught.value.hint


@pytest.mark.parametrize(("host", "family"), BOTH)
def test_socket_accepts_on_either_address(
    host: str, family: socket.AddressFamily
) -> None:
    with listening(0) as sockets, closing(socket.socket(family)) as client:
        client.settimeout(PATIENCE)
        client.connect((host, sockets[0].getsockname()[1]))


def test_port_is_free_again_as_soon_as_it_is_closed() -> None:
    with listening(0) as sockets:
        port = sockets[0].getsockname()[1]
    with listening(port) as again:
        assert again[0].getsockname()[1] == port


@pytest.mark.case("B99")
def test_socket_addresses_are_loopback_in_every_module() -> None:
    modules = list(Path(byok.__file__).parent.rglob("*.py"))
    assert len(modules) > 50
    for module in modules:
        text = module.read_text(encoding="utf-8")
        every = re.findall(r'(?<![\d.])0\.0\.0\.0(?!/)|"::"', text)  # but no networks
        assert every == [], module


@pytest.mark.case("F44")
def test_socket_without_ipv6_is_ipv4_alone_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Old(socket.socket):
        def __init__(self, family: int = -1, *rest: int, **named: int) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported")
            super().__init__(family, *rest, **named)

    monkeypatch.setattr(socket, "socket", Old)
    [only] = listen(0)
    with only:
        assert only.getsockname()[0] == "127.0.0.1"
    assert "no IPv6" in caplog.text


def test_machine_without_ipv4_loopback_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Without(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(socket, "socket", Without)
    with pytest.raises(CannotStart) as caught:
        listen(0)
    assert "127.0.0.1/8" in caught.value.hint


# What a service manager is told, and what happens when it does not listen


linux = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux only")


@linux
async def test_each_state_is_one_message() -> None:
    with ServiceManager() as manager:
        notifier = Notifier(manager.address)
        notifier.ready("listening")
        notifier.reloading()
        notifier.ready("two\nlines")  # would be a second assignment
        notifier.stopping()
        told = [await manager.next() for _ in range(4)]
    assert told[0] == ["READY=1", "STATUS=listening"]
    state, clock = told[1]
    assert (state, clock.partition("=")[0]) == ("RELOADING=1", "MONOTONIC_USEC")
    assert clock.partition("=")[2].isdigit()
    assert told[2:] == [["READY=1"], ["STOPPING=1"]]


@pytest.mark.parametrize(
    "address", ["", "relative/path", "/none/there", "/" + "x" * 200, "@none", "vsock:2"]
)
def test_nobody_listening_is_no_error(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        Notifier(address).ready()
    assert len(caplog.records) == (sys.platform == "linux" and "none" in address)


# Files that may be open at once; tried in processes of their own


posix = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")


def run(code: str) -> "subprocess.CompletedProcess[str]":
    lines = ["import resource", "from byok.core.daemon.sockets import *", code]
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=START,
        check=False,
    )


def room(soft: int, hard: int, wanted: int) -> str:
    done = run(
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        f"print(max_connections({wanted}))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    return done.stdout or done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "told"),
    [
        pytest.param(256, 4096, 512, "512\n4096\n", id="raised to the hard limit"),
        pytest.param(256, 256, 512, "96\n256\n", id="as many as fit"),
        pytest.param(256, 256, 50, "50\n256\n", id="no more than wanted"),
    ],
)
@posix
@pytest.mark.case("F18")
def test_file_limit_leaves_room_for_all_connections(
    soft: int, hard: int, wanted: int, told: str
) -> None:
    assert room(soft, hard, wanted) == told


@posix
@pytest.mark.case("F18")
def test_file_limit_that_is_too_low_is_reported() -> None:
    assert room(100, 100, 512) == (
        "byok.core.errors.CannotStart: Only 100 files may be open at once; "
        "byok needs 128."
    )
