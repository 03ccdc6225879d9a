"""The check of an address: its name is known, and a server takes connections there.

What else is asked of an upstream waits for this one.
"""

import asyncio
import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from byok.doctor.background import in_background
from byok.doctor.results import CannotCheck, CheckResult, CheckState, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.upstream.spec import UpstreamSpec
from byok.urls import is_link_local, is_loopback
from byok.wiring.upstreams import make_spec

PORTS = {"http": 80, "https": 443}
CONNECT_SECONDS = 5.0
_MOST_ADDRESSES = 4


async def spec_of(around: Surroundings, name: str) -> UpstreamSpec:
    """Return what an upstream is built from."""
    section = (await around.upstreams())[name]
    return make_spec(name, section, await around.settings())


async def expect_address(around: Surroundings, name: str) -> None:
    """Do nothing if an upstream takes connections.

    Raises:
        CannotCheck: it does not.
    """
    if (await check_address(around, name)).state is not CheckState.OK:
        raise CannotCheck("it takes no connection")


async def check_address(around: Surroundings, name: str) -> CheckResult:
    """Check that the name of a host is known, and that it takes connections."""
    return await around.once(f"address {name}", lambda: _check_address(around, name))


async def _check_address(around: Surroundings, name: str) -> CheckResult:
    spec = await spec_of(around, name)
    parts, what = _place(spec)
    host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    if isinstance(found := await _look_up(host, port), CheckResult):
        return found
    tries = await asyncio.gather(*(_connect(address, port) for address in found))
    if not any(failure is None for failure in tries):
        return _no_connection(
            f"{host}:{port}", what, tries[0], is_loopback=_is_own(spec)
        )
    return good(f"{what}{host}:{port} takes connections ({', '.join(found)})")


def _place(spec: UpstreamSpec) -> tuple[SplitResult, str]:
    """Return what is connected to: the server, or the proxy before it."""
    if spec.route.proxy:
        return urlsplit(spec.route.proxy), "the proxy "
    return urlsplit(spec.api.base_url), ""


def _is_own(spec: UpstreamSpec) -> bool:
    return is_loopback(spec.api.base_url)


async def _look_up(host: str, port: int) -> Sequence[str] | CheckResult:
    try:
        found = await in_background(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
    except (OSError, UnicodeError):
        return wrong(
            f"the name {host} has no address here (DNS)",
            "Is this machine online, in its VPN, and is base_url right?",
        )
    addresses = [*dict.fromkeys(str(row[4][0]) for row in found)]
    usable = [address for address in addresses if not is_link_local(address)]
    if not usable:
        return wrong(
            f"{host} is a link-local address, which byok never asks",
            "Give base_url the server's own address",
        )
    return usable[:_MOST_ADDRESSES]


async def _connect(address: str, port: int) -> OSError | None:
    """Connect and hang up; return why that failed."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(address, port)
    except TimeoutError:  # an OSError, too
        return OSError(errno.ETIMEDOUT, "no answer in time")
    except OSError as error:
        return error
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None


def _no_connection(
    place: str, what: str, error: OSError | None, *, is_loopback: bool
) -> CheckResult:
    if what:
        return wrong(
            f"{what}{place} cannot be reached", "Correct proxy in [network] or here"
        )
    if error is not None and error.errno == errno.ETIMEDOUT:
        return wrong(
            f"{place} did not take a connection in {CONNECT_SECONDS:g} s",
            "Does a firewall or a missing VPN keep this machine from it?",
        )
    cure = "Start the model server (ollama serve, if it is Ollama), or correct base_url"
    if not is_loopback:
        cure = "Is it running, is base_url right, and is this machine online?"
    return wrong(f"nothing answers at {place}", cure)
