"""Foreign failures of the transport become ours, each with its cure."""

import ssl

import aiohttp
import httpx
import pytest

from byok.errors import UpstreamUnreachable
from byok.upstream.failures import translated

URL = "http://127.0.0.1:9/v1"


def caused(error: httpx.HTTPError, cause: BaseException) -> httpx.HTTPError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        pytest.param(
            caused(httpx.ConnectTimeout("x"), aiohttp.ConnectionTimeoutError()),
            "upstream_connect",
            True,
            id="no answer to the connection",
        ),
        pytest.param(
            caused(httpx.ConnectTimeout("x"), aiohttp.ServerDisconnectedError()),
            "upstream_cut",
            True,
            id="the transport's name for a lost connection",
        ),
        pytest.param(
            caused(httpx.ConnectError("x"), ssl.SSLCertVerificationError("bad")),
            "upstream_tls",
            False,
            id="a foreign certificate",
        ),
        pytest.param(httpx.ReadTimeout("x"), "upstream_timeout", True, id="silence"),
        pytest.param(httpx.ReadError("x"), "upstream_cut", True, id="reset"),
        pytest.param(httpx.ProxyError("x"), "upstream_connect", True, id="no proxy"),
        pytest.param(
            aiohttp.ClientPayloadError("x"), "upstream_cut", True, id="half a body"
        ),
    ],
)
@pytest.mark.case("F01")
def test_a_failure_gets_its_code(error: Exception, code: str, retryable: bool) -> None:
    with pytest.raises(UpstreamUnreachable) as caught, translated(URL):
        raise error
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.__cause__ is error


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(UpstreamUnreachable, match="no address"), translated(URL):
        raise httpx.InvalidURL("x")


def test_what_is_not_the_transports_passes_through() -> None:
    with pytest.raises(KeyError), translated(URL):
        raise KeyError("bug")
