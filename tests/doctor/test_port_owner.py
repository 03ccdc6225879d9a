"""Who listens on a port, by /proc."""

import os
import socket
import sys
from pathlib import Path

import pytest

from byok.doctor.port_owner import PortOwner, find_owner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
PROC = Path("/proc")
HEAD = "  sl  local_address rem_address   st tx_queue tr tm->when uid  timeout inode\n"
ROW = "   0: {address} 00000000:0000 {state} 0:0 00:0 0 0 0 777 1 0 100 0 0 10 0\n"


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_real_listener_is_found(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as sock:
        try:
            sock.bind((host, 0))
        except OSError:
            pytest.skip("there is no such address here")
        port = sock.getsockname()[1]
        assert find_owner(PROC, family, host, port) is None  # it does not listen yet
        sock.listen()
        found = find_owner(PROC, family, host, port)
    assert found is not None
    assert found.pid == os.getpid()
    assert found.name
    assert find_owner(PROC, family, host, port) is None


def made(proc: Path, address: str, state: str = "0A") -> Path:
    (proc / "net").mkdir()
    (proc / "net" / "tcp").write_text(HEAD + ROW.format(address=address, state=state))
    handles = proc / "42" / "fd"
    handles.mkdir(parents=True)
    (handles / "3").symlink_to("socket:[777]")
    (proc / "42" / "comm").write_text("squatter\n")
    (proc / "7").mkdir()  # a process that may not be looked into
    (proc / "self").mkdir()
    return proc


@pytest.mark.skipif(sys.byteorder != "little", reason="written for it")
@pytest.mark.parametrize(
    ("address", "state", "found"),
    [
        ("0100007F:207D", "0A", PortOwner(42, "squatter")),
        ("00000000:207D", "0A", PortOwner(42, "squatter")),  # at any address
        ("0100007F:207E", "0A", None),
        ("0200007F:207D", "0A", None),
        ("0100007F:207D", "01", None),  # a connection
    ],
)
def test_rows_of_the_kernel(
    tmp_path: Path, address: str, state: str, found: PortOwner | None
) -> None:
    proc = made(tmp_path, address, state)
    assert find_owner(proc, socket.AF_INET, "127.0.0.1", 8317) == found


def test_a_listener_at_any_address_of_both_families_is_found() -> None:
    with socket.socket(socket.AF_INET6) as sock:
        try:
            sock.bind(("::", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        sock.listen()
        found = find_owner(PROC, socket.AF_INET, "127.0.0.1", sock.getsockname()[1])
    assert found is not None
    assert found.pid == os.getpid()


def test_a_machine_without_such_files_tells_nobody(tmp_path: Path) -> None:
    assert find_owner(tmp_path, socket.AF_INET, "127.0.0.1", 8317) is None


def test_a_name_that_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    proc = made(tmp_path, "0100007F:207D")
    (proc / "42" / "comm").unlink()
    found = find_owner(proc, socket.AF_INET, "127.0.0.1", 8317)
    assert found == PortOwner(42, "?")
    assert not found.is_systemd
