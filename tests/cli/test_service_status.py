"""Whether a daemon is the service's; what is shown of both is in test_service.py."""

import pytest

from byok.cli.service_status import is_of
from byok.daemon.instance import Instance
from byok.service.base import ServiceState

DAEMON = Instance(pid=7, port=1, instance="x", started=0.0)


@pytest.mark.parametrize(
    ("state", "is_so"),
    [
        (ServiceState(running=True, pid=7), True),
        (ServiceState(running=True, pid=8), False),
        (ServiceState(running=True), True),  # Windows tells no pid
        (ServiceState(), False),
    ],
)
def test_daemon_is_the_one_of_the_service(state: ServiceState, is_so: bool) -> None:
    assert is_of(state, DAEMON) is is_so
