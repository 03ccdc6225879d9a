"""What a service manager is told, and what happens when it does not listen."""

import logging
import sys

import pytest

from byok.core.daemon.sockets import Notifier
from tests.fakes.service_manager import ServiceManager

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
