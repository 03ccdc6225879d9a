"""Find model servers that run on this machine."""

import asyncio
from collections.abc import Mapping

import httpx

from byok.upstream.http_call import hang_up, read_limited
from byok.upstream.spec import Api
from byok.upstream.transport import Route, Transports

_PROBE_SECONDS = 0.5
_ENOUGH = 64


async def find_answering(
    transports: Transports,
    candidates: Mapping[str, Api],
    seconds: float = _PROBE_SECONDS,
) -> list[str]:
    """Return the names of the APIs that list models, in the given order."""
    transport = transports.by(Route())

    async def probe(api: Api) -> bool:
        url = api.url(api.dialect.models_path())
        request = httpx.Request("GET", url, headers=dict(api.dialect.headers("")))
        try:
            async with asyncio.timeout(seconds):
                response = await transport.handle_async_request(request)
                try:
                    start = await read_limited(response, _ENOUGH, cut=True)
                finally:
                    await hang_up(response)
        except (httpx.HTTPError, TimeoutError):
            return False
        return response.is_success and start[:1] in (b"{", b"[")

    answers = await asyncio.gather(*(probe(api) for api in candidates.values()))
    return [name for name, ok in zip(candidates, answers, strict=True) if ok]
