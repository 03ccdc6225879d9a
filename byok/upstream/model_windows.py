"""How many tokens the models of an upstream take, as far as it tells."""

import asyncio
import logging
from collections.abc import Mapping

from byok.dialects.openai_chat.loaded_window import read_loaded_window
from byok.errors import ByokError
from byok.upstream.http_body import read_limited
from byok.upstream.http_sender import Sender
from byok.wire.json_body import parse_json

_log = logging.getLogger(__name__)
_MAX_BYTES = 2**20
_MAX_MODELS = 1000
_SECONDS, _FRESH_SECONDS = 1.0, 60.0


class Windows:
    """Knows what the list of models told, and asks a local server about loaded ones.

    `loaded` is the path where such a server tells them, "" for others. It is asked once
    a minute: it may load a model anew, with another window.
    """

    def __init__(self, sender: Sender, loaded: str) -> None:
        self._sender = sender
        self._path = loaded
        self._listed: Mapping[str, int] = {}
        self._loaded: dict[str, tuple[int, float]] = {}  # window, until when it holds

    def set_listed(self, windows: Mapping[str, int]) -> None:
        """Take what the list of models tells."""
        self._listed = windows

    async def of(self, model: str) -> int:
        """Return the window of a model in tokens, 0 where nobody tells."""
        loaded = await self._of_loaded(model) if self._path else 0
        return loaded or self._listed.get(model, 0)

    async def _of_loaded(self, model: str) -> int:
        now = asyncio.get_running_loop().time()
        window, until = self._loaded.get(model, (0, now))
        if now < until:
            return window
        fresh = _FRESH_SECONDS
        try:
            async with asyncio.timeout(_SECONDS):
                async with self._sender.open(self._path) as response:
                    body = parse_json(await read_limited(response, _MAX_BYTES))
            window = read_loaded_window(body, model)
            fresh = fresh if window else 0.0  # the next question finds it loaded
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("the window of a loaded model is not told: %s", error)
        if len(self._loaded) > _MAX_MODELS:
            self._loaded.clear()
        self._loaded[model] = (window, now + fresh)
        return window
