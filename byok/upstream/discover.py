"""Find a model server that runs on this machine."""

import asyncio
from collections.abc import Mapping

import httpx

from byok.upstream.transport import Route, Transports

_PROBE_SECONDS = 0.5


async def answering(
    transports: Transports,
    candidates: Mapping[str, str],
    seconds: float = _PROBE_SECONDS,
) -> list[str]:
    """Return the names whose base URL answers `GET models`, in the given order."""
    client = transports.client(Route())

    async def probe(url: str) -> bool:
        try:
            async with asyncio.timeout(seconds):
                response = await client.get(f"{url}/models", timeout=seconds)
        except (httpx.HTTPError, TimeoutError):
            return False
        return response.is_success and response.content[:1] in (b"{", b"[")

    answers = await asyncio.gather(*(probe(url) for url in candidates.values()))
    return [name for name, ok in zip(candidates, answers, strict=True) if ok]
