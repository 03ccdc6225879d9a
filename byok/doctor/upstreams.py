"""Checks of each upstream: its address, its TLS certificate, its list of models."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from byok.doctor.background import in_background
from byok.doctor.results import (
    CannotCheck,
    CheckResult,
    CheckState,
    doubtful,
    good,
    wrong,
)
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import list_models, open_upstream, section_of
from byok.errors import ConfigError, UpstreamError, UpstreamRefused
from byok.routing import Service
from byok.upstream.spec import UpstreamSpec
from byok.upstream.transport import tls_context
from byok.urls import is_link_local, is_loopback

_NAME_ONE = "byok serve --upstream NAME, or add [upstreams.NAME] to the settings"
_PORTS = {"http": 80, "https": 443}
_CONNECT_SECONDS = 5.0
_MOST_ADDRESSES = 4
_NOT_YET, _EXPIRED = 9, 10  # of OpenSSL's verify codes
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


async def upstream_names(around: Surroundings) -> Sequence[str]:
    """Return the upstreams that are looked at."""
    return [*await around.upstreams()]


async def tls_upstreams(around: Surroundings) -> Sequence[str]:
    """Return the upstreams that are reached by TLS and without a proxy."""
    specs = [(await open_upstream(around, n)).spec for n in await around.upstreams()]
    return [
        spec.name
        for spec in specs
        if spec.api.base_url.startswith("https:") and not spec.route.proxy
    ]


async def check_choice(around: Surroundings, about: str) -> CheckResult:
    """Check that there is a model to ask at all."""
    del about
    names = [*await around.upstreams()]
    if names:
        return good(f"{len(names)} of the settings or the daemon: {', '.join(names)}")
    status = await around.ask_if_running(Service.DAEMON)
    if status is not None:
        return doubtful(
            f"the daemon uses {status.get('upstream')}: no model", _NAME_ONE
        )
    return doubtful(
        "none is named and no local server answers: byok would use a key that it "
        "finds, or its demo",
        _NAME_ONE,
    )


async def check_address(around: Surroundings, name: str) -> CheckResult:
    """Check that the name of a host is known, and that it takes connections."""
    return await around.once(f"address {name}", lambda: _check_address(around, name))


async def _check_address(around: Surroundings, name: str) -> CheckResult:
    spec = (await open_upstream(around, name)).spec
    parts, what = _place(spec)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
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
        async with asyncio.timeout(_CONNECT_SECONDS):
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
            f"{place} did not take a connection in {_CONNECT_SECONDS:g} s",
            "Does a firewall or a missing VPN keep this machine from it?",
        )
    cure = "Start the model server, or correct base_url"
    if not is_loopback:
        cure = "Is it running, is base_url right, and is this machine online?"
    return wrong(f"nothing answers at {place}", cure)


async def check_tls(around: Surroundings, name: str) -> CheckResult:
    """Check the certificate, with the authorities that byok trusts."""
    await _expect_address(around, name)
    spec = (await open_upstream(around, name)).spec
    try:
        context = await in_background(lambda: tls_context(spec.route.ca_file))
    except ConfigError as error:
        return wrong(str(error), "Let ca_file name a PEM file, or remove it")
    parts = urlsplit(spec.api.base_url)
    host, port = parts.hostname or "", parts.port or _PORTS["https"]
    try:
        async with asyncio.timeout(2 * _CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as error:
        return _no_tls(error, host, spec.route.ca_file)
    version = writer.get_extra_info("ssl_object").version()
    writer.transport.abort()
    return good(f"{version}, and its certificate is trusted")


async def _expect_address(around: Surroundings, name: str) -> None:
    if (await check_address(around, name)).state is not CheckState.OK:
        raise CannotCheck("it takes no connection")


def _no_tls(error: ssl.SSLError, host: str, ca_file: str) -> CheckResult:
    if not isinstance(error, ssl.SSLCertVerificationError):
        if any(plain in str(error.reason) for plain in _PLAIN):
            return wrong(
                f"{host} speaks plain HTTP", "base_url must begin with http://"
            )
        return wrong(
            f"no TLS connection to {host} ({error.reason})",
            "Does a firewall or a proxy stand between?",
        )
    said = f"the TLS certificate of {host} is not trusted ({error.verify_message})"
    if error.verify_code in (_NOT_YET, _EXPIRED):
        return wrong(
            said, "Is this machine's clock right? If so, only they can renew it"
        )
    if ca_file:
        return wrong(said, f"{ca_file} does not hold the authority that signed it")
    return wrong(
        said,
        "If your company inspects TLS, set ca_file under [network] to its certificate",
    )


def _has_no_list(error: UpstreamError) -> bool:
    """Tell a server that knows no such path: some answer chats alone."""
    if not isinstance(error, UpstreamRefused):
        return False
    return error.upstream_status in (404, 405, 501)


async def check_models(around: Surroundings, name: str) -> CheckResult:
    """Check that an upstream lists its models with the key as it is."""
    await _expect_address(around, name)
    try:
        listed = await list_models(around, name)
    except UpstreamError as error:
        if not _has_no_list(error):
            return wrong(error.message, error.hint or f"byok keys test {name}")
        listed = ()
    section = await section_of(around, name)
    if not listed and (own := [*filter(None, (section.model, *section.models))]):
        return good(f"it has none; {len(own)} of the settings")
    if not listed:
        cure = f"Name one: model under [upstreams.{name}]"
        return doubtful("it has none, and the settings name no model", cure)
    return good(f"{len(listed)} listed, such as {listed[0]}")
