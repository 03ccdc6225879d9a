"""Facts about an upstream's models: from its model list, and from local servers."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from byok.dialects.base import Probe
from byok.dialects.model_facts import ModelFacts
from byok.errors import ByokError
from byok.upstream.http_body import read_limited
from byok.upstream.http_sender import Sender
from byok.upstream.spec import Api
from byok.wire.json_body import parse_json, write_json

_log = logging.getLogger(__name__)
_MAX_BYTES = 2**20
_MAX_MODELS = 1000
_SECONDS, _FRESH_SECONDS = 1.0, 60.0


class KnownModels:
    """What is known about the models of one upstream.

    A local server is asked about a loaded model at most once a minute: it may load the
    model again with another context window.
    """

    def __init__(self, sender: Sender, api: Api) -> None:
        self._sender = sender
        self._api = api
        self._listed: dict[str, ModelFacts] = {}
        self._loaded: dict[str, tuple[int, float]] = {}  # window, until when it holds

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Store the facts of the model list."""
        self._listed = {model.id: model for model in models}

    def facts(self, model: str) -> ModelFacts:
        """Return what is known about a model so far."""
        known = self._listed.get(model) or ModelFacts(model)
        window, _ = self._loaded.get(model, (0, 0.0))
        return replace(known, window=window) if window else known

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown."""
        probe = self._api.dialect.probe(model)
        loaded = await self._probe(model, probe) if probe else 0
        return loaded or self.facts(model).window

    async def _probe(self, model: str, probe: Probe) -> int:
        now = asyncio.get_running_loop().time()
        window, until = self._loaded.get(model, (0, now))
        if now < until:
            return window
        fresh = _FRESH_SECONDS
        content = None if probe.body is None else write_json(probe.body)
        asked = self._sender.open(self._api, probe.path, content)
        try:
            async with asyncio.timeout(_SECONDS), asked as response:
                body = parse_json(await read_limited(response, _MAX_BYTES))
            window = self._api.dialect.read_probe(body, model).window
            fresh = fresh if window else 0.0  # the next question finds it loaded
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("the window of a loaded model is unknown: %s", error)
        if len(self._loaded) > _MAX_MODELS:
            self._loaded.clear()
        self._loaded[model] = (window, now + fresh)
        return window
