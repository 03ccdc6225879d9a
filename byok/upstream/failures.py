"""Foreign failures become ours, at the one edge where they enter."""

import ssl

import aiohttp
import httpx

from byok.errors import UpstreamUnreachable

_NO_CONNECTION = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    httpx.ProxyError,
)


class translated:
    """Turns the errors of httpx and aiohttp into ours, where they enter."""

    def __init__(self, url: str | httpx.URL) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, (httpx.HTTPError, aiohttp.ClientError)):
            raise _unreachable(error, str(self._url)) from error
        if isinstance(error, httpx.InvalidURL):
            raise UpstreamUnreachable(f"{self._url} is no address.") from error


def _unreachable(error: Exception, url: str) -> UpstreamUnreachable:
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    if any(isinstance(c, (ssl.SSLError, ssl.CertificateError)) for c in causes):
        return UpstreamUnreachable(
            f"the TLS certificate of {url} is not trusted.",
            code="upstream_tls",
            hint="If your company inspects TLS, set ca_file to its certificate.",
            retryable=False,
        )
    # The aiohttp transport names every lost connection ConnectTimeout: the cause says
    # whether there ever was one.
    if any(isinstance(c, _NO_CONNECTION) for c in causes):
        return UpstreamUnreachable(
            f"nothing answers at {url}.",
            code="upstream_connect",
            hint="Is it running, and is base_url right?",
        )
    match error:
        case httpx.ReadTimeout() | httpx.PoolTimeout() | httpx.WriteTimeout():
            return UpstreamUnreachable(
                "it fell silent in the middle of a request.",
                code="upstream_timeout",
                hint="A higher timeout for this upstream may help.",
            )
        case _:
            return UpstreamUnreachable(
                "the connection to it was lost.", code="upstream_cut"
            )
