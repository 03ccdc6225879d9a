"""Fetching an upstream's list of models: all its pages, within limits."""

import asyncio
from typing import Any

from byok.dialects.model_facts import ModelFacts
from byok.errors import UpstreamGarbled, UpstreamTimeout
from byok.upstream.http_body import read_limited
from byok.upstream.http_sender import Sender
from byok.upstream.spec import Api
from byok.wire.json_body import parse_json

_MAX_BYTES = 16 * 2**20  # of a page
_MAX_PAGES = 20
_SECONDS = 12.0


async def fetch_models(
    sender: Sender, api: Api, *, seconds: float = _SECONDS
) -> list[ModelFacts]:
    """Return the models of all pages; no page is fetched twice.

    Raises:
        UpstreamError: a page is missing, no JSON or too large, or it took too long.
    """
    found: dict[str, ModelFacts] = {}
    path, paths = api.dialect.models_path(), set[str]()
    try:
        async with asyncio.timeout(seconds):
            while path and path not in paths and len(paths) < _MAX_PAGES:
                paths.add(path)
                page = api.dialect.read_models(await _get(sender, api, path))
                for model in page.models:
                    found.setdefault(model.id, model)
                path = page.next_path
    except TimeoutError as error:
        raise UpstreamTimeout("it did not list its models in time.") from error
    return [*found.values()]


async def _get(sender: Sender, api: Api, path: str) -> Any:
    async with sender.open(api, path) as response:
        raw = await read_limited(response, _MAX_BYTES)
    try:
        return parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise UpstreamGarbled("its list of models is not JSON.") from error
