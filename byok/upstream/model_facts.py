"""Facts about an upstream's models: from its model list, and from local servers."""

import asyncio
import logging
from collections.abc import Iterable

from byok.dialects.base import Probe
from byok.dialects.model_facts import FactSource, ModelFacts, combine_facts
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

    A server is asked about a model at most once a minute: a local one may load the
    model again with another context window.
    """

    def __init__(self, sender: Sender, api: Api) -> None:
        self._sender = sender
        self._api = api
        self._listed: dict[str, ModelFacts] = {}
        self._probed: dict[str, tuple[ModelFacts, float]] = {}  # until when it holds

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Store the facts of the model list."""
        self._listed = {model.id: model for model in models}

    def facts(self, model: str) -> ModelFacts:
        """Return what is known about a model so far."""
        listed = self._listed.get(model) or ModelFacts(model)
        probed, _ = self._probed.get(model, (listed, 0.0))
        layers = [(FactSource.LOADED, probed), (FactSource.SERVER, listed)]
        return combine_facts(model, layers).facts

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown."""
        await self.ask(model)
        return self.facts(model).window

    async def ask(self, model: str) -> None:
        """Ask the server about a model, where its dialect knows how."""
        now = asyncio.get_running_loop().time()
        _, until = self._probed.get(model, (None, now))
        probes = self._api.dialect.probes(model)
        if now < until or not probes:
            return
        answers = await asyncio.gather(*(self._probe(model, p) for p in probes))
        layers = [(FactSource.LOADED, facts) for facts, _ in answers]
        facts = combine_facts(model, layers).facts
        # Without the window of a loaded model the next question may find it loaded.
        is_fresh = facts.window or any(failed for _, failed in answers)
        if len(self._probed) > _MAX_MODELS:
            self._probed.clear()
        self._probed[model] = (facts, now + (_FRESH_SECONDS if is_fresh else 0.0))

    async def _probe(self, model: str, probe: Probe) -> tuple[ModelFacts, bool]:
        """Return the facts of one answer, and whether there was none."""
        content = None if probe.body is None else write_json(probe.body)
        asked = self._sender.open(self._api, probe.path, content)
        try:
            async with asyncio.timeout(_SECONDS), asked as response:
                body = parse_json(await read_limited(response, _MAX_BYTES))
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("nothing is learned of %.80s: %s", model, error)
            return ModelFacts(model), True
        return self._api.dialect.read_probe(body, model), False
