"""What an upstream says of its models: in its list, and when it is asked about one."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from byok.dialects.base import ModelFacts, Probe
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
    """Knows what the list of models said, and asks local servers about loaded ones.

    A server is asked once a minute at most: it may load a model anew, with another
    window.
    """

    def __init__(self, sender: Sender, api: Api) -> None:
        self._sender = sender
        self._api = api
        self._listed: dict[str, ModelFacts] = {}
        self._loaded: dict[str, tuple[int, float]] = {}  # window, until when it holds

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Take what the list of models says."""
        self._listed = {model.id: model for model in models}

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model by now."""
        known = self._listed.get(model) or ModelFacts(model)
        window, _ = self._loaded.get(model, (0, 0.0))
        return replace(known, window=window) if window else known

    async def window(self, model: str) -> int:
        """Return the window of a model in tokens, 0 where nobody says."""
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
