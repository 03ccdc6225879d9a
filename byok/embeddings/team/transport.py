"""The HTTP below the client library: the key, and limits on what comes back.

The library adds a key only where it is given one for good, reads answers of any size,
takes compressed ones and names its own version. This transport is put below it, so that
requests leave byok as those to other upstreams do: the key is looked up for each, the
answer is bounded, and no redirect is followed, because none is passed on as such.
"""

from collections.abc import Callable

import httpx

from byok import __version__
from byok.errors import UpstreamGarbled

MOST_BYTES = 4 * 2**20  # the largest answer that is asked for has a third of it


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends requests by another transport, which its owner closes."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, api_key: Callable[[], str]
    ) -> None:
        self._inner = inner
        self._api_key = api_key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, read to the end.

        Raises:
            UpstreamGarbled: the answer is too large or compressed.
        """
        request.headers["accept-encoding"] = "identity"
        request.headers["user-agent"] = f"byok/{__version__}"
        if key := self._api_key():
            request.headers["api-key"] = key
        response = await self._inner.handle_async_request(request)
        try:
            content = await _read(response)
        finally:
            await response.aclose()
        kind = response.headers.get("content-type", "")
        return httpx.Response(
            response.status_code, headers={"content-type": kind}, content=content
        )


async def _read(response: httpx.Response) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise UpstreamGarbled("Its answer is compressed, which was not asked for.")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > MOST_BYTES:
            raise UpstreamGarbled(f"Its answer is larger than {MOST_BYTES} bytes.")
    return bytes(content)
