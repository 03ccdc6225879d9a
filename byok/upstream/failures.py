"""Translates errors of httpx and aiohttp to byok's errors with a cause and a hint."""

import errno
import os
import ssl
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import aiohttp
import httpx

from byok.core.errors import (
    ConnectFailed,
    NameNotFound,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.urls import is_loopback
from byok.dialects.presets import is_ollama_here
from byok.dialects.refusals import class_of_words

_UNREACHABLE_ERRNOS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
)
_DATE_VERIFY_CODES = (9, 10)  # OpenSSL's: the certificate is not valid yet, or expired
# OpenSSL's reasons when the server speaks plain HTTP
_NOT_TLS_REASONS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


class translate_errors:
    """Context manager that translates errors of httpx and aiohttp."""

    def __init__(
        self, url: str | httpx.URL, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._url = url
        self._environ = environ

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (httpx.HTTPError, aiohttp.ClientError)):
            raise _unreachable(error, str(self._url), self._environ) from error
        if isinstance(error, httpx.InvalidURL):
            raise UpstreamUnreachable(
                f"{self._url} is not a valid address.", retryable=False
            ) from error


def is_refused(error: BaseException) -> bool:
    """Tell whether the connection was refused (ECONNREFUSED)."""
    numbers = (c.errno for c in _causes(error) if isinstance(c, OSError))
    return next(filter(None, numbers), None) == errno.ECONNREFUSED


def missing_path_hint(error: UpstreamError, path: str) -> str:
    """Return a hint if the upstream does not have the path, else "".

    Unknown models are refused with the same status, but the message mentions a model.
    """
    if not isinstance(error, UpstreamRefused) or path == "chat/completions":
        return ""
    if error.upstream_status not in (404, 405, 501):
        return ""
    refusal = class_of_words(error.message)
    if refusal and refusal.kind is RefusalKind.NOT_FOUND:
        return ""
    return f"This upstream has no /{path}: choose one that has it."


def _unreachable(
    error: Exception, url: str, environ: Mapping[str, str]
) -> UpstreamUnreachable:
    causes = _causes(error)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _tls_error(causes, url)
    # The aiohttp transport raises ConnectTimeout for every lost connection: its cause
    # tells whether the connection was ever established.
    for cause in causes:
        # A failed look-up of the proxy's name is a failure of the proxy, too.
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            is_proxy = cause.host != _host(url)
        else:
            failures = (httpx.ProxyError, aiohttp.ClientProxyConnectionError)
            is_proxy = isinstance(cause, failures)
        if is_proxy:
            return _proxy_error(causes)
        if (
            isinstance(cause, aiohttp.ClientConnectorDNSError)
            and cause.errno != errno.EADDRNOTAVAIL
        ):
            reason = f"the name {cause.host} could not be found."
            hint = "Is this machine online, and is the address (base_url) right?"
            return _connect_error(reason, hint, url, environ, NameNotFound)
        if isinstance(cause, aiohttp.ClientConnectorError):
            return _connect_error(*_reason_and_hint(cause, url), url, environ)
        if isinstance(cause, aiohttp.ConnectionTimeoutError):
            reason = f"{_host(url)} did not take the connection in time."
            hint = "Does a firewall or a missing VPN keep this machine from it?"
            if url.startswith("https:"):
                hint += " If it speaks plain HTTP, base_url must begin with http://."
            return _connect_error(reason, hint, url, environ)
    match error:
        case httpx.ReadTimeout() | httpx.PoolTimeout() | httpx.WriteTimeout():
            return UpstreamTimeout(
                "it stopped responding in the middle of a request.",
                hint="A higher timeout for this upstream may help.",
            )
        case _:
            return UpstreamUnreachable(
                "the connection to it was lost.", code="upstream_cut"
            )


def _reason_and_hint(error: aiohttp.ClientConnectorError, url: str) -> tuple[str, str]:
    if isinstance(error, aiohttp.ClientConnectorDNSError):  # see transport.py
        return f"{error.host} is a link-local address.", "No such address is asked."
    if error.errno in _UNREACHABLE_ERRNOS:
        reason = f"the network of this machine does not reach {error.host}."
        return reason, "Is it online, and in the VPN if it needs one?"
    if is_ollama_here(url):
        hint = "Start it with its app or by ollama serve; ollama.com has it."
        return f"Ollama does not run: nothing answers at {url}.", hint
    return (
        f"nothing answers at {url}.",
        "Is it running, and is the address (base_url) right?",
    )


def _connect_error(
    reason: str,
    hint: str,
    url: str,
    environ: Mapping[str, str],
    kind: type[ConnectFailed] = ConnectFailed,
) -> ConnectFailed:
    if variable := _proxy_variable(url, environ):
        hint += f" {variable} is set, but byok takes a proxy only from network.proxy."
    return kind(reason, hint=hint)


def _proxy_variable(url: str, environ: Mapping[str, str]) -> str:
    """Return the environment variable with a proxy for a URL, else ""."""
    if is_loopback(url):
        return ""
    name = f"{urlsplit(url).scheme}_proxy"
    names = (name.upper(), name, "ALL_PROXY", "all_proxy")
    return next((name for name in names if environ.get(name)), "")


def _proxy_error(causes: Iterable[BaseException]) -> ConnectFailed:
    statuses = (c.status for c in causes if isinstance(c, aiohttp.ClientHttpProxyError))
    problem = "cannot be reached"
    if status := next(statuses, 0):
        problem = f"refused the connection ({status})"
    return ConnectFailed(
        f"the proxy {problem}.",
        hint="Check proxy in this upstream's section, or network.proxy.",
    )


def _tls_error(causes: Sequence[BaseException], url: str) -> UpstreamUnreachable:
    reason = _cause_text(causes, "reason")
    message = f"no TLS connection to {url} came about{reason}."
    hint = "Does a firewall or a proxy stand between?"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        message = f"the TLS certificate of {url} is not trusted"
        message += f"{_cause_text(causes, 'verify_message')}."
        hint = "If your company inspects TLS, set ca_file to its certificate."
        codes = (getattr(cause, "verify_code", 0) for cause in causes)
        if any(code in _DATE_VERIFY_CODES for code in codes):
            hint = "Is this machine's clock right? If so, only they can renew it."
    elif any(text in reason for text in _NOT_TLS_REASONS):
        hint = "It speaks plain HTTP: base_url must begin with http://."
    return UpstreamUnreachable(message, code="upstream_tls", hint=hint, retryable=False)


def _cause_text(causes: Iterable[BaseException], attribute: str) -> str:
    """Return the first text of an attribute in parentheses, else ""."""
    texts = (getattr(cause, attribute, "") for cause in causes)
    return next((f" ({text})" for text in texts if text), "")


def _causes(error: BaseException) -> list[BaseException]:
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return causes


def _host(url: str) -> str:
    """Return the host name in ASCII."""
    return httpx.URL(url).raw_host.decode("ascii")
