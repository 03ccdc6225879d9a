"""Reading an answer: nothing that came before a failure is lost."""

import httpx
import pytest

from byok.core.errors import (
    UpstreamUnreachable,
)
from byok.upstream.http_call import (
    Timeouts,
    hang_up,
    pass_on,
)
from byok.upstream.transport import Route, Transports
from tests.fakes.upstream import FakeUpstream, Script


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (Script([b"one", 0.05, b"two"]), ""),
        (Script([b"one", 0.05, b"two"], end="reset"), "box: the connection"),
        (Script([b"one", 0.05, b"two"], end="hang"), "box: it fell silent"),
    ],
    ids=["whole", "broken", "silent"],
)
async def test_http_body_reads_come_as_they_are_until_the_answer_breaks(
    fake: FakeUpstream, script: Script, told: str
) -> None:
    fake.play(script)
    transports, reads = Transports(), []
    request = httpx.Request("POST", f"{fake.url}/x", content=b"{}")
    response = await transports.by(Route()).handle_async_request(request)
    failure = ""
    try:
        async for data in pass_on(response, "box", fake.url, Timeouts(idle=0.2)):
            reads.append(data)
    except UpstreamUnreachable as error:
        failure = str(error)
    await hang_up(response)
    await transports.close()
    assert reads == [b"one", b"two"]
    assert failure.startswith(told)
    assert bool(failure) is bool(told)
