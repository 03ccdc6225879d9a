"""Foreign failures of the transport become ours, each with its cure."""

import errno
import ssl

import aiohttp
import httpx
import pytest
from aiohttp.client_reqrep import ConnectionKey, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL as Address

from byok.core.errors import UpstreamUnreachable
from byok.dialects.error_bodies import refusal_of
from byok.upstream.failures import missing_path_hint, translate_errors

URL = "http://127.0.0.1:9/v1"
REQUEST = RequestInfo(
    Address(URL), "GET", CIMultiDictProxy(CIMultiDict()), Address(URL)
)


def caused(error: httpx.HTTPError, cause: BaseException) -> httpx.HTTPError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
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
        (aiohttp.ClientPayloadError("x"), "upstream_cut", True),  # half a body
    ],
)
@pytest.mark.case("F01")
def test_a_failure_gets_its_code(error: Exception, code: str, retryable: bool) -> None:
    with pytest.raises(UpstreamUnreachable) as caught, translate_errors(URL):
        raise error
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert caught.value.__cause__ is error


HOST = "https://api.model.test/v1"
KEY = ConnectionKey("api.model.test", 443, True, True, None, None, None)
OTHER = KEY._replace(host="proxy.test", port=3128)


def connector(number: int, text: str = "x") -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(KEY, OSError(number, text))


def no_name(key: ConnectionKey) -> aiohttp.ClientConnectorDNSError:
    return aiohttp.ClientConnectorDNSError(key, OSError(-2, "unknown"))


def ssl_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("cause", "sentence", "cure"),
    [
        # refused
        (connector(errno.ECONNREFUSED), f"nothing answers at {HOST}.", "Is it running"),
        # no name
        (no_name(KEY), "the name api.model.test could not be found.", "online"),
        pytest.param(
            connector(errno.ENETUNREACH),
            "the network of this machine does not reach api.model.test.",
            "VPN",
            id="no route",
        ),
        pytest.param(
            aiohttp.ConnectionTimeoutError(),
            "api.model.test did not take the connection in time.",
            "firewall or a missing VPN keep this machine from it? If it speaks plain",
            id="no answer to the connection",
        ),
        pytest.param(
            aiohttp.ClientProxyConnectionError(OTHER, OSError(errno.ECONNREFUSED, "x")),
            "the proxy cannot be reached.",
            "network.proxy",
            id="no proxy",
        ),
        pytest.param(
            caused(
                httpx.ProxyError("x"),
                aiohttp.ClientHttpProxyError(REQUEST, (), status=407),
            ),
            "the proxy refused the connection (407).",
            "network.proxy",
            id="a proxy that refuses",
        ),
        pytest.param(
            ssl.SSLCertVerificationError("x"),
            f"the TLS certificate of {HOST} is not trusted.",
            "ca_file",
            id="a foreign certificate",
        ),
        pytest.param(
            ssl_error("WRONG_VERSION_NUMBER"),
            f"no TLS connection to {HOST} came about (WRONG_VERSION_NUMBER).",
            "http://",
            id="no TLS",
        ),
        pytest.param(
            aiohttp.ClientConnectorDNSError(KEY, OSError(errno.EADDRNOTAVAIL, "x")),
            "api.model.test is a link-local address.",
            "is asked",
            id="link-local",
        ),
    ],
)
def test_each_failure_of_a_connection_is_told_apart(
    cause: Exception, sentence: str, cure: str
) -> None:
    error = caused(httpx.ConnectTimeout("x"), cause)
    with pytest.raises(UpstreamUnreachable) as told, translate_errors(HOST, {}):
        raise error
    assert sentence in str(told.value)
    assert cure in told.value.hint


@pytest.mark.parametrize(
    ("url", "environ", "named"),
    [
        (HOST, {"HTTPS_PROXY": "http://p:1"}, "HTTPS_PROXY"),
        (HOST, {"ALL_PROXY": "socks5://p:1"}, "ALL_PROXY"),
        (HOST, {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": ""}, ""),
        (URL, {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, ""),
        (HOST, {}, ""),
    ],
)
def test_a_connection_failure_mentions_an_ignored_environment_proxy(
    url: str, environ: dict[str, str], named: str
) -> None:
    error = caused(httpx.ConnectTimeout("x"), no_name(KEY))
    if url == URL:
        error = caused(httpx.ConnectTimeout("x"), connector(errno.ECONNREFUSED))
    with pytest.raises(UpstreamUnreachable) as told, translate_errors(url, environ):
        raise error
    hint = told.value.hint
    assert ("network.proxy" in hint) is bool(named)
    assert f" {named} is set" in hint or not named
    assert "http://p:1" not in hint


def test_a_connection_failure_keeps_a_host_name_beyond_ascii() -> None:
    cause = no_name(KEY._replace(host="xn--mller-kva.test"))
    error = caused(httpx.ConnectTimeout("x"), cause)
    with (
        pytest.raises(UpstreamUnreachable, match=r"the name xn--mller-kva\.test could"),
        translate_errors("https://Müller.test/v1", {}),
    ):
        raise error


@pytest.mark.parametrize(
    ("status", "said", "path", "missing"),
    [
        (404, "Not Found", "responses", True),
        (405, "Method Not Allowed", "embeddings", True),
        (501, "This server does not support embeddings.", "embeddings", True),
        (404, "model 'x' not found, try pulling it first", "responses", False),
        (404, "The model `x` does not exist", "embeddings", False),
        (404, "Not Found", "chat/completions", False),
    ],
)
def test_a_missing_path_404_is_told_from_a_missing_model_404(
    status: int, said: str, path: str, *, missing: bool
) -> None:
    error = refusal_of({"error": {"message": said}}, status)
    hint = missing_path_hint(error, path)
    assert hint.startswith(f"This upstream has no /{path}: choose one") is missing
    assert bool(hint) is missing
