"""The endpoints of `byok embed`: what vectors there are, and who may make them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

from byok.augment.body import first_text
from byok.chat import Json
from byok.embeddings.types import EmbeddingControl
from byok.routing import Service


class EmbedEndpoints:
    """Answers the endpoints about vectors; each answer has the status afterwards."""

    def __init__(self, control: EmbeddingControl) -> None:
        self._control = control
        self.handlers: Mapping[str, Callable[[Json], Awaitable[Json]]] = {
            Service.EMBED_STATUS: self._status,
            Service.EMBED_ESTIMATE: self._estimate,
            Service.EMBED_ENABLE: self._enable,
            Service.EMBED_DISABLE: self._disable,
            Service.EMBED_PAUSE: self._pause,
            Service.EMBED_RESUME: self._resume,
            Service.EMBED_CLEAR: self._clear,
            Service.EMBED_PUSH: self._push,
            Service.EMBED_PULL: self._pull,
        }

    async def _status(self, body: Json) -> Json:
        del body
        return asdict(await self._control.status())

    async def _estimate(self, body: Json) -> Json:
        del body
        return asdict(await self._control.estimate())

    async def _enable(self, body: Json) -> Json:
        """Consent to what the user was shown, which the body repeats."""
        await self._control.enable(first_text(body, "host"), first_text(body, "model"))
        return await self._status(body)

    async def _disable(self, body: Json) -> Json:
        await self._control.disable()
        return await self._status(body)

    async def _pause(self, body: Json) -> Json:
        await self._control.pause()
        return await self._status(body)

    async def _resume(self, body: Json) -> Json:
        await self._control.resume()
        return await self._status(body)

    async def _clear(self, body: Json) -> Json:
        removed = await self._control.clear()
        return {"removed": removed, **await self._status(body)}

    async def _push(self, body: Json) -> Json:
        count = await self._control.push()
        return {"pushed": count, **await self._status(body)}

    async def _pull(self, body: Json) -> Json:
        count = await self._control.pull()
        return {"pulled": count, **await self._status(body)}
