"""Which sockets of a service manager are taken, and which end the start."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from byok.core.daemon.sockets import pop_activation
from byok.core.errors import CannotStart
from tests.fakes.patience import START
from tests.fakes.service_manager import launch, loopback_sockets, passing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="systemd is Linux only")
TAKE = """
import os, sys
from byok.core.daemon.sockets import pop_activation
from byok.core.errors import ByokError
try:
    taken = pop_activation()
except ByokError as error:
    print(error.code, error)
    sys.exit()
left = [name for name in os.environ if name.startswith(("LISTEN_", "NOTIFY_"))]
open_ = [fd for fd in (3, 4) if os.get_inheritable(fd)] if taken.sockets else []
print([s.getsockname()[:2] for s in taken.sockets], left, open_, sep="|")
"""
V4, V6 = socket.AF_INET, socket.AF_INET6


def take(handles: list[int], **variables: str) -> str:
    """Let another process take what it is passed, and return what it says."""
    count = variables.pop("LISTEN_FDS", str(len(handles)))
    done = subprocess.run(
        launch(handles, "-c", TAKE),
        env=passing(count, variables),
        pass_fds=handles,
        capture_output=True,
        text=True,
        timeout=START,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("names", ["", "byok:byok", "byok.socket:byok.socket"])
def test_sockets_are_taken_and_nothing_is_left_for_children(names: str) -> None:
    more = {"LISTEN_FDNAMES": names, "NOTIFY_SOCKET": "/nowhere"}
    with loopback_sockets(V4, V6) as sockets:
        port = sockets[0].getsockname()[1]
        said = take([sock.fileno() for sock in sockets], **more)
    assert said == f"[('127.0.0.1', {port}), ('::1', {port})]|[]|[]"


@contextmanager
def other(kind: str) -> Iterator[list[int]]:
    """Give descriptors that are no sockets for byok."""
    with ExitStack() as stack:

        def new(*of: int) -> socket.socket:
            return stack.enter_context(socket.socket(*of))

        match kind:
            case "file":
                yield [stack.enter_context(tempfile.TemporaryFile()).fileno()]
            case "UDP":
                udp = new(V4, socket.SOCK_DGRAM)
                udp.bind(("127.0.0.1", 0))
                yield [udp.fileno()]
            case "UNIX":
                pair = [stack.enter_context(end) for end in socket.socketpair()]
                yield [pair[0].fileno()]
            case "silent":
                silent = new(V4)
                silent.bind(("127.0.0.1", 0))
                yield [silent.fileno()]
            case "everywhere":
                bare = new(V4)
                bare.listen()
                yield [bare.fileno()]
            case "elsewhere":
                near = new(V4)
                near.bind(("127.0.0.2", 0))
                near.listen()
                yield [near.fileno()]
            case "twice":
                [first] = stack.enter_context(loopback_sockets(V4))
                yield [first.fileno(), first.fileno()]
            case "two ports":
                both = [stack.enter_context(loopback_sockets(f))[0] for f in (V4, V6)]
                yield [sock.fileno() for sock in both]
            case _:
                raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("file", "is not a socket"),
        ("UDP", "is not a TCP socket"),
        ("UNIX", "is not a TCP socket"),
        ("silent", "does not listen"),
        ("everywhere", "loopback only"),
        pytest.param(
            "elsewhere",
            "listens on 127.0.0.2",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"),
        ),
        ("twice", "the same address"),
        ("two ports", "different ports"),
    ],
)
def test_other_descriptors_end_the_start(kind: str, why: str) -> None:
    with other(kind) as handles:
        said = take(handles)
    assert said.startswith("passed_sockets The sockets that were passed")
    assert why in said


def test_missing_descriptor_ends_the_start() -> None:
    with loopback_sockets(V4) as [sock]:
        said = take([sock.fileno()], LISTEN_FDS="2")
    assert "descriptor 4 is not open" in said


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"LISTEN_FDS": "10000"}, "10,000 were passed, and byok takes 2"),
        ({"LISTEN_FDS": "3"}, "3 were passed"),
        ({"LISTEN_FDS": "-1"}, "not a number"),
        ({"LISTEN_FDS": "two"}, "not a number"),
        ({"LISTEN_FDS": "9" * 5000}, "not a number"),
        ({"LISTEN_FDS": "2", "LISTEN_FDNAMES": "byok"}, "LISTEN_FDNAMES"),
        ({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "http"}, "LISTEN_FDNAMES"),
    ],
)
def test_wrong_variables_end_the_start_before_a_descriptor_is_touched(
    variables: dict[str, str], why: str
) -> None:
    environ = {"LISTEN_PID": str(os.getpid()), **variables}
    with pytest.raises(CannotStart, match=why):
        pop_activation(environ)
    assert environ == {}


@pytest.mark.parametrize(
    "of_another",
    [lambda: str(os.getppid()), lambda: "", lambda: "x", lambda: f" {os.getpid()}"],
)
def test_variables_for_another_process_are_dropped(
    of_another: Callable[[], str],
) -> None:
    environ = {"LISTEN_PID": of_another(), "LISTEN_FDS": "2", "PATH": "/bin"}
    assert pop_activation(environ).sockets == ()
    assert environ == {"PATH": "/bin"}
