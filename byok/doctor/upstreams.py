"""Checks of each upstream: its TLS certificate, and its list of models."""

import asyncio
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from byok.doctor.addresses import CONNECT_SECONDS, PORTS, expect_address, spec_of
from byok.doctor.background import in_background
from byok.doctor.results import (
    CheckResult,
    doubtful,
    good,
    wrong,
)
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import list_models, section_of
from byok.errors import ConfigError, UpstreamError, UpstreamRefused
from byok.routing import Service
from byok.upstream.transport import tls_context

_NAME_ONE = "byok serve --upstream NAME, or add [upstreams.NAME] to the settings"
_NO_ANSWER = "If it speaks plain HTTP, base_url must begin with http://"
_NOT_YET, _EXPIRED = 9, 10  # of OpenSSL's verify codes
_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


async def upstream_names(around: Surroundings) -> Sequence[str]:
    """Return the upstreams that are looked at."""
    return [*await around.upstreams()]


async def tls_upstreams(around: Surroundings) -> Sequence[str]:
    """Return the upstreams that are reached by TLS and without a proxy."""
    specs = [await spec_of(around, name) for name in await around.upstreams()]
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


async def check_tls(around: Surroundings, name: str) -> CheckResult:
    """Check the certificate, with the authorities that byok trusts."""
    await expect_address(around, name)
    spec = await spec_of(around, name)
    try:
        context = await in_background(lambda: tls_context(spec.route.ca_file))
    except ConfigError as error:
        return wrong(str(error), "Let ca_file name a PEM file, or remove it")
    parts = urlsplit(spec.api.base_url)
    host, port = parts.hostname or "", parts.port or PORTS["https"]
    try:
        async with asyncio.timeout(2 * CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as error:
        return _no_tls(error, host, spec.route.ca_file)
    except OSError:  # also a time-out: it waits for a request in plain text
        return wrong(f"{host} takes connections, but answers no TLS", _NO_ANSWER)
    version = writer.get_extra_info("ssl_object").version()
    writer.transport.abort()
    return good(f"{version}, and its certificate is trusted")


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
